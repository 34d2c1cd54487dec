"""Verdicts: a script that gains nothing from compiled code runs without sites, but for one run in ten."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fresh import python

import dcarray as dc
from dcarray.jit.loops.sites import verdicts
from dcarray.jit.loops.sites.sampler import SAMPLER
from dcarray.jit.loops.sites.verdicts import Verdict, need_plans

SOURCE = "print(sum(range(9)))\n"


def run(
    monkeypatch: pytest.MonkeyPatch, took: float, gain: float = 0.0, guess: float = 0.0, *args: str
) -> bool:
    """A run of the script that takes so many seconds; returns whether it had sites."""
    # compiled code takes half of Python's time, and saves two fifths of a loop's time before there is any
    seen, source = 2 * gain or guess / 0.4, SimpleNamespace(is_loop=True, source="for")
    site: Any = SimpleNamespace(
        kept=bool(gain), part=0.5, seconds=seen, compiled=0.0, waits=True, source=source, inner=[],
        outer=None, enabled=False, foreseen=False, runs=0, refused="",
    )  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["script.py", *args])
    monkeypatch.setattr(verdicts, "process_time", lambda: took)
    monkeypatch.setattr(SAMPLER, "sites", lambda: [site])
    verdict = Verdict(SOURCE, "script.py")
    monkeypatch.setattr(verdicts, "OF_PROGRAM", [verdict])
    assert need_plans() == (verdict._after(took)[1] <= verdict._after(took)[2])
    verdict.end()
    return verdict.has_sites


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Any:
    with dc.options(cache_dir=str(tmp_path), debug=True):
        yield


def test_what_gained_nothing_has_no_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, 0.5)
    assert [run(monkeypatch, 0.4) for _ in range(8)] == [False] * 8
    assert run(monkeypatch, 0.5)  # one in ten tries again
    assert not run(monkeypatch, 0.4)
    assert run(monkeypatch, 0.5, 0.0, 0.0, "another argument")


def test_what_gained_has_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(run(monkeypatch, 0.5, 1.0) for _ in range(25))  # too far away to be tried


def test_what_was_not_ready_in_the_first_run_is_tried_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, 0.5, 0.0, 0.2) and run(monkeypatch, 0.5, 0.0, 0.2)
    assert not run(monkeypatch, 0.4)


def test_a_much_longer_run_is_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, 0.5)
    assert not run(monkeypatch, 60.0)
    assert run(monkeypatch, 60.0, 30.0)


def test_the_faster_way_is_the_measured_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(run(monkeypatch, 1.0, 0.2) for _ in range(9))
    assert not run(monkeypatch, 0.8) and not run(monkeypatch, 0.8)  # expected to be slower, and is faster


def test_a_script_is_judged(tmp_path: Path) -> None:
    """The second run of a short script has no sites, nor have the modules beside it; the report says so."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, beside\nprint(beside.total(9), 'dcarray.jit.loops.sites.site' in sys.modules)\n"
    )
    (tmp_path / "beside.py").write_text(
        "def total(n):\n    for k in range(n):\n        n += k\n    return n\n"
    )
    for option, has_sites in ((), True), ((), False), (("--report",), True):
        found = python("-m", "dcarray", "run", *option, script)
        assert found.stdout == f"45 {has_sites}\n"
        assert ("without --report it has no sites" in found.stderr) == bool(option)


def test_a_run_that_failed_is_no_evidence(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\nprint('dcarray.jit.loops.sites.site' in sys.modules)\nif os.getenv('FAIL'): 1 / 0\n"
    )
    for variables, has_sites in ({"FAIL": "1"}, True), ({}, True), ({}, False):
        found = python("-m", "dcarray", "run", script, status=None, **variables)
        assert (found.stdout, found.returncode) == (f"{has_sites}\n", len(variables))
