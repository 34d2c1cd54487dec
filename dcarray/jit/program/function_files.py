"""Functions that a command line names: ``FILE.py:function``."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

__all__ = ["UsageError", "function_at"]


class UsageError(Exception):
    """A command line that does not make sense; the text says why."""


def function_at(place: str) -> Any:
    """Return the function at a place; its file runs as a module, which can import what is beside it.

    Parameters
    ----------
    place : str
        "FILE.py:function".

    Raises
    ------
    UsageError
        If there is no such file or function.
    """
    file, _, name = place.rpartition(":")
    if not file or not name.isidentifier():
        raise UsageError(f"FILE.py:function is expected, not {place!r}")
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"there is no file {file}")
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is no file of Python: its name ends in .py")
    sys.path.insert(0, str(path.resolve().parent))
    module = module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if not callable(found):
        own = [n for n, value in vars(module).items() if getattr(value, "__module__", None) == path.stem]
        known = ", ".join(sorted(own))
        raise UsageError(f"{file} has no function {name}" + (f"; it has {known}" if known else ""))
    return found
