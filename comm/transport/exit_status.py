"""Determines, while this process still runs, the status with which ``sys.exit`` is ending it."""

from __future__ import annotations

import sys
import weakref
from typing import Any, NoReturn

from .call_location import caller_text

__all__ = ["ExitWatcher"]


class _ExitMarker:
    """An attribute of a `SystemExit`; from where it is deleted one sees whether the exception was caught."""

    def __init__(self, leaving: ExitWatcher, status: int) -> None:
        self.exit_watcher, self.status = leaving, status

    def __del__(self) -> None:
        try:
            sys._getframe(1)
        except ValueError:  # no code runs below: it was not caught, the interpreter has dropped it
            self.exit_watcher._uncaught = self.status


class ExitWatcher:
    """The observer of ``sys.exit`` that knows the exit status of this process before its end.

    Python calls no hook for `SystemExit`, and offers no way to read the status before the process ends.  But
    an uncaught exception is deleted by the interpreter, without a frame of the program on the stack, whereas
    one that was caught is deleted under such a frame.
    """

    def __init__(self) -> None:
        self._uncaught = 0
        self._last: weakref.ref[_ExitMarker] | None = None
        self.where = ""

    def install(self) -> None:
        """Replace ``sys.exit`` by a function that records its status."""
        plain = sys.exit

        def exit(status: Any = None, /) -> NoReturn:
            try:
                plain(status)
            except SystemExit as error:
                rider = _ExitMarker(self, code(status))
                self._last, self.where = weakref.ref(rider), caller_text()
                vars(error)["_dcarray_rider"] = rider
                raise

        sys.exit = exit

    def status(self) -> int:
        """Return the status of the `SystemExit` that ends this process; 0 if none does."""
        alive = None if self._last is None else self._last()
        return self._uncaught if alive is None else alive.status


def code(status: Any) -> int:
    """Return the exit status that a shell sees for an argument of ``sys.exit``."""
    if status is None:
        return 0
    return status & 0xFF if isinstance(status, int) else 1
