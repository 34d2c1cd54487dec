"""Signals that wait: handlers of the program run between its statements, not in the middle of compiled code,
or of what finds and plans it."""

from __future__ import annotations

import gc
import importlib
import signal
import threading
from typing import Any

from .native import BUILT

__all__ = ["Undisturbed", "hold", "may_stop"]

_signal: Any = importlib.import_module("_signal")  # without the enumerations of ``signal``, which take long


class _HeldInterrupt:
    """What holds them without the C module: only keyboard interrupts wait."""

    def __init__(self) -> None:
        self._uncollected = hold(True)
        self._caught: list[Any] = []
        self._old: Any = None
        if threading.get_ident() == threading.main_thread().ident:
            old = _signal.getsignal(signal.SIGINT)
            if callable(old):  # Python's own or the user's handler; otherwise nothing to delay
                caught = self._caught
                _signal.signal(signal.SIGINT, lambda *args: caught.append(args))
                self._old = old

    def end(self) -> None:
        """Run the handler if there was an interrupt."""
        if self._old is not None:
            _signal.signal(signal.SIGINT, self._old)
            if self._caught:
                self._old(*self._caught[0])


class Undisturbed:
    """A context in which signals wait, and no garbage is collected: neither handlers nor finalizers of the
    program run in this thread."""

    __slots__ = ("_held",)

    def __enter__(self) -> None:
        self._held: Any = hold(True) if BUILT else _HeldInterrupt()

    def __exit__(self, *exc: object) -> None:
        if not BUILT:
            self._held.end()
        self._held = None


if BUILT:
    from dcarray._native.extension import hold, may_stop
else:

    class hold:  # type: ignore[no-redef]
        """Have no garbage collected as long as the object lives, if ``uncollected``.  Signals only wait with
        the C module."""

        def __init__(self, uncollected: bool, /) -> None:
            self._collects = uncollected and gc.isenabled()
            if self._collects:
                gc.disable()

        def __del__(self) -> None:
            if self._collects:
                gc.enable()

    def may_stop(allowed: bool, /) -> bool:
        """Have the launches of this thread be stopped by signals from now on, or not; return whether that is
        possible: in the main thread, while it holds signals."""
        return False
