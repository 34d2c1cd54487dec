"""Functions that return the file and line of the user's code that called dcarray."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import TracebackType

import numpy as np

__all__ = ["Location", "caller", "caller_text", "location_text", "traceback_text"]

Location = tuple[str, int] | Callable[[], tuple[str, int]]  # a file and a line, or a function that finds them

# Files of dcarray and NumPy are no code of the user's: NumPy's dispatch calls dcarray.
_INSIDE = tuple(
    os.path.dirname(file) + os.sep for file in (os.path.dirname(os.path.dirname(__file__)), np.__file__)
)


def caller() -> tuple[str, int]:
    """Return the file and line of the innermost caller outside dcarray and NumPy."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_INSIDE) and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def location_text(where: Location) -> str:
    """Return a location as ``file:line``."""
    file, line = where() if callable(where) else where
    return f"{file}:{line}"


def caller_text() -> str:
    """Return the innermost caller outside dcarray and NumPy as text, ``file:line``."""
    return location_text(caller())


def traceback_text(trace: TracebackType | None) -> str:
    """Return the innermost location of a traceback outside dcarray and NumPy as text; empty if none."""
    place = ""
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_INSIDE):
            place = location_text((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return place
