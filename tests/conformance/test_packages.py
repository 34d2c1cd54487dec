"""The command that runs packages' own tests: on a small package, with plain NumPy and accelerated."""

import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.packages import command, environments, files, suites
from conformance.packages.catalogue import PACKAGES, Package, package_of
from conformance.packages.command import document, table
from conformance.packages.environments import CannotRun, Environment
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


def test_files_of_tests_share_a_process_until_one_ends_it(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suites, "ROOT", f"{suites.ROOT}:{small}")
    (small / "small" / "tests" / "test_two.py").write_text("def test_two(): pass\n")
    names = [f"small/tests/test_{name}.py" for name in ("small", "two")]
    first, second = files.rows(Package("small"), _Here(small), names, 60, 60.0, 2)
    assert first[:2] == (names[0], 1) and second[:3] == (names[1], 1, {}) and len(second[3]) == 2
    assert {(way, name.rpartition("_")[2]) for way, name in map(str.split, first[2])} == {
        (way, test) for way in ("first", "again") for test in ("differs", "crash", "after")
    }


def test_tests_that_do_not_run_with_numpy(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "ROOT", f"{suites.ROOT}:{small}")
    (small / "small" / "tests" / "test_small.py").write_text("import no_such_module_1")
    with pytest.raises(CannotRun, match=r"tests of small do not run with plain NumPy.*no_such_module_1"):
        compare(Package("small"), _Here(small))
    (small / "small" / "tests" / "test_small.py").write_text("def test_it(): assert False, 'never'")
    with pytest.raises(CannotRun, match=r"no test of small passes with plain NumPy: .*never"):
        compare(Package("small"), _Here(small))
    (small / "small" / "tests" / "test_small.py").write_text("")
    with pytest.raises(CannotRun, match="no test"):
        run_tests(Path(sys.executable), small, ["small"], [], (), 60)


def test_packages_are_known_by_both_names() -> None:
    assert package_of("pywt") is package_of("pywavelets") is PACKAGES[0]
    assert package_of("scikit_image") is package_of("skimage") and package_of("other") == Package("other")


def test_the_command_says_what_it_cannot_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, result: Result
) -> None:
    def refuse(package: Package) -> Any:
        raise CannotRun(f"{package.name} cannot be installed: no such thing")

    monkeypatch.setattr(command, "environment_of", refuse)
    assert command.main(["nonsense"]) == 1
    assert "nonsense cannot be installed: no such thing" in capsys.readouterr().out
    monkeypatch.setattr(command, "environment_of", lambda package: None)
    monkeypatch.setattr(command, "compare", lambda *_: result)
    monkeypatch.setattr(command, "RESULTS", tmp_path / "results.json")
    page = tmp_path / "packages.md"
    assert command.main(["small", "--docs", str(page)]) == 1
    assert "| small | 1.0 |" in page.read_text() and command._stored()["small"] == result
    for words in ([], ["small", "--docs", str(page), "--tests-too"]):
        with pytest.raises(SystemExit):
            command.main(words)


def test_an_environment_has_what_dcarray_needs() -> None:
    needs = environments._requirements(Package("some", requirements=("other",)))
    assert needs[0] == "some" and "other" in needs and any(need.startswith("llvmlite") for need in needs)
    assert next(need for need in needs if need.startswith("numpy")).startswith("numpy==")
