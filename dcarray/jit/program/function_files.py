"""Functions that a command line names: ``FILE.py:function``, ``FILE.py:Class.function``."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from dcarray.core.errors import ProgramError

__all__ = ["UsageError", "function_at"]


class UsageError(Exception):
    """Raised when a command line is invalid; the text says why."""


def function_at(place: str) -> Any:
    """Return the function at a place; its file runs as a module, which can import what is beside it.

    Parameters
    ----------
    place : str
        "FILE.py:function", or "FILE.py:Class.function" of a static method.

    Raises
    ------
    UsageError
        If there is no such file or function.
    ProgramError
        If the file raises an error, with its line there.
    """
    file, _, name = place.rpartition(":")
    if not file or not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(f"FILE.py:function is expected, not {place!r}")
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"there is no file {file}")
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is not a Python file: its name ends in .py")
    sys.path.insert(0, str(path.resolve().parent))
    module = module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        reason = f"the file fails: {type(error).__name__}: {error}"
        raise ProgramError(reason, file, _line(error, path)) from error
    function: Any = module
    for part in name.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        own = [n for n, value in vars(module).items() if getattr(value, "__module__", None) == path.stem]
        known = ", ".join(sorted(own))
        raise UsageError(f"{file} has no function {name}" + (f"; it has {known}" if known else ""))
    return function


def _line(error: BaseException, path: Path) -> int:
    """The line of a file in which an error was raised."""
    if isinstance(error, SyntaxError) and error.lineno:
        return error.lineno
    trace, line = error.__traceback__, 1
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).resolve() == path.resolve():
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
