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
