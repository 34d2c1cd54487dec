"""The reason why the C module is missing, so that small calls are slower."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from dcarray.core import native

__all__ = ["why_python"]

_SOURCE = Path(native.__file__).parents[1] / "_native" / "extension.c"


def why_python() -> str:
    """Return why the C module is not used, or "" if it is."""
    if native.BUILT:
        return ""
    if sys.implementation.name != "cpython":
        return f"the C module is for CPython, and this is {platform.python_implementation()}"
    if not native.LOCKED:
        return "this Python runs without the interpreter's lock, which the C module needs: PYTHON_GIL=1"
    if native.REVISION:
        return "the C module is of another version of dcarray: install dcarray again"
    if native.NOT_LOADED:
        return f"the C module cannot be loaded: {native.NOT_LOADED}"
    return _why_not_built()


def _why_not_built() -> str:
    """Compile the C module's source without keeping a result, and return the error."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    if shutil.which(compiler[0]) is None:
        return f"built without a C compiler: there is no {compiler[0]}"
    folders = [f"-I{sysconfig.get_path(name)}" for name in ("include", "platinclude")]
    command = [*compiler, "-fsyntax-only", *folders, _SOURCE.name]
    done = subprocess.run(command, cwd=_SOURCE.parent, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return "the C module was not built for this Python, though it can be: install dcarray again"
    lines = done.stderr.splitlines()
    first = next((line for line in lines if "error" in line), f"{compiler[0]} gave up")
    return f"the C module does not compile: {first}"
