"""The docstrings of the package's own public names: complete, and their examples run."""

import doctest
import inspect
from typing import Any

import pytest

import dcarray as dc

NAMES = [
    "accelerate", "devices", "distribute", "evaluate", "explain", "info", "ndarray", "options", "pmap",
    "report", "wait",
]  # fmt: skip
NAMES += ["asarray", "random.block", "hdf5.load", "hdf5.save"]
NOTHING_TO_GIVE = {"hdf5.save", "ndarray"}


def _public(name: str) -> Any:
    found: Any = dc
    for part in name.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_sections(name: str) -> None:
    found = _public(name)
    text = inspect.getdoc(found)
    assert text is not None
    first = text.partition("\n")[0]
    assert first.endswith(".") and text.startswith(first + "\n\n")
    assert "\nExamples\n--------\n" in text
    if name not in NOTHING_TO_GIVE:
        assert "\nReturns\n-------\n" in text or "\nYields\n------\n" in text
    if name != "ndarray" and inspect.signature(found).parameters:
        assert "\nParameters\n----------\n" in text


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = _public(name)
    example = doctest.DocTestParser().get_doctest(inspect.getdoc(found) or "", {}, name, None, 0)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0
