"""The command that runs packages' own tests: on a small package, with plain NumPy and accelerated."""

import sys
from pathlib import Path

import pytest

from conformance.packages import suites
from conformance.packages.catalogue import Package
from conformance.packages.command import document, table
from conformance.packages.environments import Environment
from conformance.packages.suites import Result, compare, run_tests

MODULE = """
import sys
import numpy as np
def halved(x): return np.asarray(x) / 2
def kind(): return "dcarray" if "dcarray" in sys.modules else "numpy"
def looped(x):
    for i in range(x.size):
        x[i] += 1
"""
TESTS = """
import os
import numpy as np
import pytest
from small import halved, kind

def test_same(): assert np.array_equal(halved([2, 4]), [1, 2])
def test_differs(): assert kind() == "numpy", "another NumPy"
def test_never(): assert False
@pytest.mark.skip
def test_skipped(): pass
def test_crash():
    if kind() != "numpy":
        os._exit(3)
def test_after(): pass
"""
LOOPS = """
import os
from dcarray.jit.loops.syntax.originals import original
from small import looped
def here(x):
    for i in range(x.size):
        x[i] += 1
def has_sites(function): return function.__code__ is not original(function)
def test_library(): assert has_sites(looped)
def test_tests(): assert not has_sites(here)
def test_plain(): assert not has_sites(looped)
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A folder with an installed package."""
    folder = tmp_path / "small"
    (folder / "tests").mkdir(parents=True)
    (folder / "__init__.py").write_text(MODULE)
    (folder / "tests" / "__init__.py").touch()
    (folder / "tests" / "test_small.py").write_text(TESTS)
    return tmp_path


class _Here(Environment):
    """This environment, and a package in a folder."""

    def __init__(self, folder: Path) -> None:
        self.python, self.site_packages = Path(sys.executable), folder
        self.module, self.version = "small", "1.0"


@pytest.fixture
def result(small: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    monkeypatch.setattr(suites, "ROOT", f"{suites.ROOT}:{small}")
    return compare(Package("small"), _Here(small), 60)


def test_tests_that_differ_have_a_message(result: Result) -> None:
    name = "small/tests/test_small.py::test_"
    assert (result.tests, result.passed, result.kept) == (5, 4, 1)
    assert list(result.differing) == [f"{name}{test}" for test in ("differs", "crash", "after")]
    differs, crash, after = result.differing.values()
    assert "another NumPy" in differs and "exit status 3" in crash and after == "it was not run"
    listed = {f"small/{name}differs": "the test asks for the class"}
    text = table([result], listed)
    assert "25.00%" in text and "the test asks for the class" in text and text.count("not looked into") == 2
    page = document([result], listed, "Here.")
    assert "| small | 1.0 | 5 | 4 | 1 | 25.00% |" in page and f"* small: `{name}differs`" in page


def test_tests_stay_plain_unless_they_are_asked_for(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "ROOT", f"{suites.ROOT}:{small}")
    monkeypatch.setenv("DCARRAY_JIT", "eager")  # at once, not after a while
    (small / "small" / "tests" / "test_small.py").write_text(LOOPS)

    def passing(folders: list[Path], *options: str) -> list[str]:
        found = run_tests(Path(sys.executable), small, ["small"], folders, options, 60).found
        return [test.rpartition("_")[2] for test, outcome in found.items() if outcome == "passed"]

    assert passing([]) == ["tests", "plain"]
    assert passing([small]) == ["library", "tests"]
    assert passing([small], "--tests-too") == ["library"]
