"""Scripts as processes: what agrees, what does not, and what goes wrong."""

import os
from pathlib import Path

import pytest

from benchmarks import measure
from benchmarks.whole_programs import difference, run


@pytest.mark.parametrize(("expected", "got"), [
    ("", ""),
    ("1.0000001 done", "1.0000002  done\n"),
    ("[ 1.  2.]", "[1. 2.]"),
    ("a=1e-17, b=nan, c=-inf", "a=-3e-16, b=nan, c=-inf"),
    ("(1.5-1e-17j)", "(1.5+2e-18j)"),
    ("at 12345678", "at 12345679"),
])  # fmt: skip
def test_outputs_that_agree(expected: str, got: str) -> None:
    assert not difference(expected, got)


@pytest.mark.parametrize(("expected", "got"), [
    ("1.0", "1.0001"), ("1 2", "1 2 3"), ("1 2 3", "1 2"), ("12 3", "1 23"),
    ("count 1000", "count 1001"), ("total 3", "sum 3"), ("a 1 b", "a 1 c"), ("True", "False"),
    ("1.0", "nan"), ("inf", "-inf"), ("text", ""), ("", "3"),
])  # fmt: skip
def test_outputs_that_differ(expected: str, got: str) -> None:
    assert difference(expected, got)


def test_the_place_of_a_difference_is_told() -> None:
    assert difference("a 1 b 2 c 3", "a 1 b 4 c 3") == "'b 4' instead of 'b 2'"
    assert difference("1 2 3", "1 2") == "'' instead of '3'"


def test_tolerances() -> None:
    assert not difference("1.00", "1.01", rtol=0.1)
    assert difference("0.0", "1e-6") and not difference("0.0", "1e-6", atol=1e-5)


def test_a_script_runs_in_the_folder(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import os\nprint(os.getcwd(), os.environ['DCARRAY_CACHE_DIR'], os.environ['WORD'])\n")
    (folder := tmp_path / "folder").mkdir()
    found = run(script, folder=str(folder), cache="kept", limit=60, settings={"WORD": "said"})
    assert found.output.split() == [str(folder), "kept", "said"] and found.seconds > 0 and not found.problem


@pytest.mark.parametrize(("text", "problem"), [
    ("raise ValueError('no\\nmore')", "ValueError: no"),
    ("import sys; sys.exit(3)", "exit status 3"),
    ("import time; print('begun', flush=True); time.sleep(60)", "not ready after 2 s"),
])  # fmt: skip
def test_a_script_that_goes_wrong(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(text)
    found = run(tmp_path / "script.py", folder=str(tmp_path), cache=str(tmp_path), limit=2)
    assert found.problem == problem


def test_busy_processes_end_with_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    popen = measure.subprocess.Popen

    def noted(*args: object, **kwargs: object) -> object:
        started.append(popen(*args, **kwargs))  # type: ignore[call-overload]
        return started[-1]

    monkeypatch.setattr(measure.subprocess, "Popen", noted)
    with measure.busy(2):
        assert [process.poll() for process in started] == [None, None]
    assert all(process.poll() is not None for process in started)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes cannot be bound here")
def test_one_processor() -> None:
    before = os.sched_getaffinity(0)
    with measure.one_core(False):
        assert os.sched_getaffinity(0) == before
    with measure.one_core():
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before
