"""Handlers of signals: those of the program, and a context that delays keyboard interrupts while memory is
written."""

from __future__ import annotations

import importlib
import signal
import threading
from typing import Any

__all__ = ["SIGNALS", "DelayedInterrupt", "has_handlers"]

# The functions under ``signal.signal`` and ``signal.getsignal``, which spend microseconds on enumerations.
_signal: Any = importlib.import_module("_signal")
SIGNALS = {int(number) for number in signal.valid_signals()}
"""The signals of which the program may have handlers."""


def has_handlers(besides: int = 0) -> bool:
    """Whether the program has handlers of signals, besides one of this number, and Python's own."""
    found = [_signal.getsignal(number) for number in SIGNALS if number != besides]
    return any(
        callable(one)
        and one is not signal.default_int_handler
        and not str(getattr(one, "__module__", "")).startswith("dcarray.")
        for one in found
    )


class DelayedInterrupt:
    """A context that delays an interrupt until the region is done, so that no array is left half written."""

    __slots__ = ("_caught", "_old")

    def __enter__(self) -> None:
        self._caught: list[Any] = []
        self._old = None
        if threading.get_ident() == threading.main_thread().ident:
            old = _signal.getsignal(signal.SIGINT)
            if callable(old):  # Python's own or the user's handler; otherwise nothing to delay
                _signal.signal(signal.SIGINT, lambda *args: self._caught.append(args))
                self._old = old

    def __exit__(self, *exc: object) -> None:
        old = self._old
        if old is not None:
            _signal.signal(signal.SIGINT, old)
            if self._caught:
                old(*self._caught[0])
