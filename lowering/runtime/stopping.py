"""The word in memory by which compiled code that runs is stopped, where its run can be undone.

Compiled code finds the word's address in a cell.  The word is 0, unless a run that can be undone is to give
way (`dcarray.core.interrupts`).
"""

from __future__ import annotations

import ctypes

__all__ = ["STOP", "STOPPED", "Stopped", "look", "symbols"]

STOPPED = 1 << 4
"""Among the flags of a launch: it was stopped."""
STOP = "@dc_stop = external global ptr"
"""The declaration of the cell in LLVM text."""

_word = ctypes.c_int64(0)
_cell = ctypes.c_void_p(ctypes.addressof(_word))
symbols = {"dc_stop": ctypes.addressof(_cell)}
"""The addresses of what compiled code refers to by name, besides functions of libraries."""


class Stopped(Exception):
    """Raised where a run was stopped."""


def look() -> None:
    """Raise `Stopped` if the run is to be stopped."""
    if ctypes.c_int.from_address(_cell.value or 0).value:
        raise Stopped
