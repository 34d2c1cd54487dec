"""The table of peak memory, from figures."""

from __future__ import annotations

import numpy as np

from benchmarks import memory, memory_worker


def test_a_section_has_what_was_measured() -> None:
    rows = {
        "b": {
            "numpy": {"inputs": 20e6, "first": 10e6, "settled": 11e6},
            "dcarray": {"inputs": 20e6, "first": 12.5e6, "settled": 10e6},
        },
        "a": {
            "numpy": {"inputs": 1e6, "first": 1e6, "settled": 1e6},
            "dcarray": {"inputs": 1e6, "first": 1e6, "settled": 1e6},
        },
    }
    text = memory.section({"cpu": "some processor", "cores": 2}, rows)
    lines = text.splitlines()
    assert "| b | 20.0 | 10.0 | 12.5 | +2.5 | 11.0 | 10.0 | -1.0 |" in lines
    assert lines.index("| a | 1.0 | 1.0 | 1.0 | +0.0 | 1.0 | 1.0 | +0.0 |") < len(lines) - 4
    assert "first call: 1 of 2 not above NumPy's; b +2.5" in lines
    assert lines[-1] == "settled call: 2 of 2 not above NumPy's"


def test_arguments_get_their_values_back_in_place() -> None:
    inputs = {"x": np.arange(3.0), "n": 3}
    arguments = {"x": inputs["x"].copy(), "n": 3}
    x = arguments["x"]
    x[...] = -1
    memory_worker.restore(arguments, inputs)
    assert arguments["x"] is x and np.array_equal(x, inputs["x"])
