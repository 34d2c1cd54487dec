"""The NPBench harness on a suite of two tiny benchmarks in NPBench's layout."""

import json
from pathlib import Path

import numpy as np
import pytest
import tiny_npbench

from benchmarks import gpu, measure, npbench, npbench_figures, npbench_suite


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return tiny_npbench.written(tmp_path)


def test_runs_validates_and_writes(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = suite / "out.json"
    options = ["--rounds", "3", "--turn", "0.001", "--warm", "0.1", "--against", "numpy", "--json", str(out)]
    assert npbench.main(["--suite", str(suite), *options]) == 0
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


def test_a_folder_without_a_suite_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no checkout of NPBench"):
        npbench_suite.benchmarks(tmp_path)


def test_a_benchmark_that_is_not_there_is_refused(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        npbench.main(["--suite", str(suite), "--only", "halves"])
    assert "no benchmark has 'halves' in its name: broken, halve" in capsys.readouterr().err


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


def test_comparing_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npbench_suite, "_BLOCK", 7)
    a = np.random.default_rng(1).random((5, 6))
    a[2, 2] = np.nan
    b = a.copy()
    assert npbench_suite.error(a, b) == 0.0 and npbench_suite.agrees(a, b, 1e-5, 1e-8, 1e-5)
    b[4, 5] += 0.5
    assert npbench_suite.error(a, b) == pytest.approx(0.5 / np.sqrt(np.nansum(a * a)))
    assert not npbench_suite.agrees(a, b, 1e-5, 1e-8, 1e-5)
    b[4, 5], b[0, 0] = a[4, 5], np.nan
    assert npbench_suite.error(a, b) == np.inf and not npbench_suite.agrees(a, b, 1e-5, 1e-8, 1e-5)


def test_intervals() -> None:
    assert measure.interval([3.0]) == (3.0, 3.0, 3.0)
    assert measure.interval(range(9)) == (4, 1, 7)  # 96%
    assert measure.interval([5.0, 1.0, 3.0]) == (3.0, 1.0, 5.0)


def test_first_calls_are_counted() -> None:
    rows = {
        "soon": {"numpy": {"first": 1.0}, "dcarray": {"first": 1.11}},
        "late": {"numpy": {"first": 1.0}, "dcarray": {"first": 1.13}},
        "none": {"numpy": {"first": 1.0}, "dcarray": {"wrong": "output"}},
    }
    told = npbench_figures.first_calls(rows)
    assert told.endswith("20 ms: 1 of 2; not late 1.130 s instead of 1.000 s")


def test_peers_on_a_device_that_nobody_knows_are_refused_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        gpu.main(["--against", "numpy,cupi"])
    assert "--against knows no 'cupi'; the peers are: numpy, cupy, jax" in capsys.readouterr().err
