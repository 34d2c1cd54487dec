"""Scripts as processes: what agrees, what does not, and what goes wrong."""

from pathlib import Path

import pytest

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


@pytest.mark.parametrize(("text", "problem"), [
    ("raise ValueError('no\\nmore')", "ValueError: no"),
    ("import sys; sys.exit(3)", "exit status 3"),
    ("import time; print('begun', flush=True); time.sleep(60)", "not ready after 2 s"),
])  # fmt: skip
def test_a_script_that_goes_wrong(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(text)
    found = run(tmp_path / "script.py", folder=str(tmp_path), cache=str(tmp_path), limit=2)
    assert found.problem == problem
