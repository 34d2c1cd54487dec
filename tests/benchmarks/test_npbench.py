"""The NPBench harness on a suite of two tiny benchmarks in NPBench's layout."""

import json
from pathlib import Path

import numpy as np
import pytest
import tiny_npbench

from benchmarks import npbench, npbench_suite


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return tiny_npbench.written(tmp_path)


def test_runs_validates_and_writes(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, page = suite / "out.json", suite / "page.md"
    options = ["--rounds", "3", "--turn", "0.001", "--warm", "0.1", "--against", "numpy", "--json", str(out)]
    assert npbench.main(["--suite", str(suite), *options, "--docs", str(page)]) == 0
    assert "| halve |" in page.read_text()
    told = json.loads(out.read_text())
    ours = told["benchmarks"]["halve"]["dcarray"]
    assert ours["error"] == 0 and ours["notes"] == [] and len(ours["times"]) == 3
    assert ours["speedup"][1] <= ours["speedup"][0] <= ours["speedup"][2]
    assert "not today" in told["benchmarks"]["broken"]["numpy"]["wrong"]
    assert "left out: NumPy: ValueError: not today" in capsys.readouterr().out


def test_several_runs_make_one_file(suite: Path) -> None:
    out = suite / "out.json"
    options = ["--suite", str(suite), "--rounds", "0", "--against", "numpy", "--keep", "--json", str(out)]
    assert npbench.main([*options, "--only", "halve"]) == 0
    kept = json.loads(out.read_text())
    assert npbench.main([*options, "--only", "broken"]) == 0
    told = json.loads(out.read_text())
    assert list(told["benchmarks"]) == ["broken", "halve"]
    assert told["benchmarks"]["halve"] == kept["benchmarks"]["halve"] and "--only" not in told["command"]
    with pytest.raises(ValueError, match="another command"):
        npbench.main([*options, "--first", "2"])
    with pytest.raises(SystemExit):
        npbench.main([*options[:-2]])


def test_comparing() -> None:
    limits = {"rtol": 1e-5, "atol": 1e-8, "norm_error": 1e-5}
    a, b = np.array([1.0, np.nan, np.inf]), np.zeros(2)
    assert npbench_suite.compare([a, b], [a.copy(), b], limits, True, False) == ("", 0.0)
    assert npbench_suite.compare([a, b], [b, a], limits, False, True) == ("", 0.0)
    assert npbench_suite.compare([a, b], [b, a], limits, False, False)[0].startswith("output 0 differs")
    assert npbench_suite.compare([b], [b.astype(np.float32)], limits, True, False)[0].startswith(
        "output 0 is"
    )
    assert npbench_suite.compare([b], [b, b], limits, True, False)[0] == "2 outputs instead of 1"
    empty, one = np.zeros((0, 3)), np.array(1j)
    assert npbench_suite.compare([empty, one], [empty, one + 1e-14], limits, True, False)[0] == ""
