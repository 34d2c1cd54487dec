"""Work that other threads have the main thread do, between two of its bytecode instructions.

Syntax trees are made there: CPython 3.11 counts the depth of all that are being made in one place, so that
two threads that make one at the same time may fail ("AST constructor recursion depth mismatch").
"""

from __future__ import annotations

import ctypes
import signal
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from dcarray.core.uncollected import uncollected

__all__ = ["have_done"]

_waiting: deque[Callable[[], None]] = deque()


def have_done(work: Callable[[], None]) -> None:
    """Have the main thread call ``work()`` soon, between two instructions; its exceptions are ignored."""
    _waiting.append(work)
    ctypes.pythonapi.Py_AddPendingCall(_CALL, None)  # if too many wait, one of them does this, too


def _do(_: object) -> int:
    while _waiting:
        try:
            with suppress(Exception), uncollected():
                _waiting.popleft()()
        except KeyboardInterrupt:  # it is meant for the program
            signal.raise_signal(signal.SIGINT)
    return 0


_CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_do)
