"""What `dcarray info` says where the C module is not used."""

import shutil
import subprocess
import sys
import sysconfig
from typing import Any

import pytest

import dcarray as dc
from dcarray.core import native
from dcarray.inspect import c_module

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """As if no C module had been found."""
    for name, value in {"BUILT": False, "REVISION": 0, "NOT_LOADED": "", "LOCKED": True}.items():
        monkeypatch.setattr(native, name, value)
    return monkeypatch


def test_nothing_is_said_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "BUILT", True)
    assert c_module.why_python() == "" and dc.info().speedups
    assert "in C" in str(dc.info())


def test_there_is_no_compiler(without: pytest.MonkeyPatch) -> None:
    without.setenv("CC", "no-such-compiler -O2")
    assert c_module.why_python() == "built without a C compiler: there is no no-such-compiler"
    assert "in Python: built without a C compiler" in str(dc.info()) and not dc.info().speedups


@needs_compiler
def test_the_compilers_first_error_is_shown(without: pytest.MonkeyPatch) -> None:
    without.setenv("CC", "gcc -include no_such_header.h")
    said = c_module.why_python()
    assert said.startswith("the C module does not compile: ") and "error" in said
    assert "no_such_header.h" in said and "\n" not in said


@needs_compiler
def test_the_headers_of_python_are_missing(without: pytest.MonkeyPatch) -> None:
    without.setenv("CC", "gcc")
    without.setattr(sysconfig, "get_path", lambda name: "/nowhere")
    assert "Python.h" in c_module.why_python()


@needs_compiler
def test_it_could_be_built(without: pytest.MonkeyPatch) -> None:
    without.setenv("CC", "gcc")
    assert c_module.why_python().endswith("though it can be: install dcarray again")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"REVISION": 1}, "another version of dcarray"),
        ({"NOT_LOADED": "undefined symbol: PyGone"}, "cannot be loaded: undefined symbol: PyGone"),
        ({"REVISION": 56, "LOCKED": False}, "without the interpreter's lock"),
    ],
)
def test_it_is_there_and_not_used(without: pytest.MonkeyPatch, found: dict[str, Any], said: str) -> None:
    for name, value in found.items():
        without.setattr(native, name, value)
    assert said in c_module.why_python()


def test_another_python(without: pytest.MonkeyPatch) -> None:
    without.setattr(sys.implementation, "name", "pypy")
    assert c_module.why_python().startswith("the C module is for CPython")


LOOK = """
import sys
sys.modules["dcarray._native.extension"] = None
import dcarray as dc
print(dc.info())
"""


def test_a_program_without_it_is_told_why() -> None:
    env = {"CC": "no-such-compiler", "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", LOOK], env=env, capture_output=True, text=True, check=True)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("small calls")]
    assert line.split(None, 2)[2] == "in Python: built without a C compiler: there is no no-such-compiler"
