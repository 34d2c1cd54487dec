"""Where in the user's code a call comes from."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import TracebackType

import numpy as np

__all__ = ["Where", "here", "place", "place_of", "said"]

Where = tuple[str, int] | Callable[[], tuple[str, int]]  # a file and a line, or what finds them out

# All of dcarray, of which this package is a folder, and NumPy, which passes calls on.
_INSIDE = tuple(
    os.path.dirname(file) + os.sep for file in (os.path.dirname(os.path.dirname(__file__)), np.__file__)
)


def here() -> tuple[str, int]:
    """File and line of the nearest caller outside dcarray and NumPy."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_INSIDE) and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def said(where: Where) -> str:
    """A file and a line in words."""
    file, line = where() if callable(where) else where
    return f"{file}:{line}"


def place() -> str:
    """File and line of the nearest caller outside dcarray and NumPy, in words."""
    return said(here())


def place_of(trace: TracebackType | None) -> str:
    """The line at which a traceback leaves the code outside dcarray and NumPy, in words."""
    found = ""
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_INSIDE):
            found = said((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return found
