"""Tools that see a thread's calls and lines: debuggers, profilers, coverage.

They are to see those of the program, all of them: where a thread has a tool, no compiled code runs.
"""

from __future__ import annotations

import sys
from functools import cache

__all__ = ["unseen"]


class _Unseen:
    """What `unseen` returns without the C module: a tool sees that it is asked."""

    def __bool__(self) -> bool:
        return sys.gettrace() is None and sys.getprofile() is None


@cache
def unseen() -> object:
    """Return an object that is true in a thread that no tool sees, and far from the limit of recursion, and
    false in others."""
    from .native import BUILT  # which imports NumPy

    if not BUILT:
        return _Unseen()
    from dcarray._native.extension import listen

    return listen()
