"""Functions as circuits: ``python -m conformance.fpga``."""

import json

import numpy as np
import pytest

from benchmarks.npbench_suite import benchmarks
from conformance.fpga import circuits, npbench, projects


def changes(x, y, times):
    x[:] = x * y + times
    return 3, x, x - y


def test_what_is_returned_and_what_is_changed_in_place():
    x, y = np.arange(5), np.arange(5)[::-1].copy()
    circuit = circuits.circuit_of(changes, (x.copy(), y, 7))
    assert circuit.names == ("x", "y", "times")
    found = circuit.outputs(projects.simulate(changes, (x.copy(), y, 7), "intel"), ("x", "y"))
    want = (*changes(x, y, 7), x, y)
    for got, value in zip(found, want, strict=True):
        np.testing.assert_array_equal(got, value)


def squares(x):
    return x * x


def test_a_function_that_is_no_circuit_is_refused_with_the_reason():
    with pytest.raises(circuits.Refused, match="complex128"):
        circuits.circuit_of(squares, (np.ones(3, complex),))


@pytest.fixture
def suite(tmp_path):
    """A checkout of one benchmark."""
    folder = tmp_path / "npbench" / "benchmarks" / "small_one"
    folder.mkdir(parents=True)
    (folder / "small_one.py").write_text(
        "import numpy as np\ndef initialize(N):\n    return np.arange(N) / 3.0, np.zeros(N)\n"
    )
    (folder / "small_one_numpy.py").write_text("def run(a, b):\n    b[:] = a * a\n    return a - b\n")
    info = {
        "relative_path": "small_one", "module_name": "small_one", "func_name": "run",
        "init": {"func_name": "initialize", "input_args": ["N"], "output_args": ["A", "B"]},
        "parameters": {"S": {"N": 50}}, "input_args": ["A", "B"], "array_args": ["A", "B"],
        "output_args": ["B"],
    }  # fmt: skip
    (tmp_path / "bench_info").mkdir()
    (tmp_path / "bench_info" / "small_one.json").write_text(json.dumps({"benchmark": info}))
    return tmp_path


def test_a_benchmark_is_compared_with_numpy(suite, monkeypatch):
    (bench,) = benchmarks(suite)
    made = npbench.measure(bench, "circuit")
    assert made["stages"] == 1 and made["processes"] >= 4 and made["cycles"] > 50
    assert npbench.measure(bench, "vitis") == {"wrong": ""}
    right = projects.simulate
    monkeypatch.setattr(projects, "simulate", lambda *given: {k: v + 1 for k, v in right(*given).items()})
    assert "output 0 differs" in npbench.measure(bench, "intel")["wrong"]


def test_a_smaller_size_is_named(suite, monkeypatch):
    monkeypatch.setitem(npbench.SIZES, "small_one", {"N": 9})
    monkeypatch.setitem(npbench.EMULATOR_SIZES, "small_one", {"N": 4})
    bench, size = npbench.sized(*benchmarks(suite), "vitis")
    assert size == "S, N=9" and bench.inputs("S")["A"].shape == (9,)
    bench, size = npbench.sized(*benchmarks(suite), "emulator")
    assert size == "S, N=4" and bench.inputs("S")["A"].shape == (4,)


def test_a_step_runs_apart_and_ends_in_time(suite, monkeypatch):
    (bench,) = benchmarks(suite)
    assert npbench._apart(bench, "intel") == {"wrong": ""}
    monkeypatch.setattr(npbench, "LIMIT", 0.05)
    assert npbench._apart(bench, "intel") == {"failed": "no end within 0.05 s"}


def test_the_table_has_a_line_for_each_benchmark():
    rows = [
        npbench.Row("a", "S", "'x|y' is a Loop"),
        npbench.Row("b", "S", "", 5, 1, 1234, {"vitis": "right", "intel": "right"}),
        npbench.Row("c", "S", "", 5, 1, 9, {"vitis": "right", "intel": "output 0 differs"}),
    ]
    whole = npbench.table(rows)
    lines = whole.splitlines()
    assert all(text.count("|") - text.count("\\|") == 9 for text in lines) and len(lines) == 5
    assert "no circuit: 'x\\|y' is a Loop" in lines[2] and "1,234 | right | right | not installed" in lines[3]
    assert npbench.summary(whole).startswith(
        "2 of 3 are circuits; 1 are right in C simulation for both vendors, 1 of them at size S"
    )
    again = npbench.table(
        [npbench.Row("c", "S, N=2", "", 5, 1, 9, dict.fromkeys(npbench.STEPS, "right"))], whole
    )
    assert again.splitlines()[:4] == lines[:4] and "2 are right" in npbench.summary(again)
    assert "1 of them at size S, and 1 on the emulator" in npbench.summary(again)
