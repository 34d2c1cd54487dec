"""The status with which ``sys.exit`` ends this process, determined while the process still runs."""

from __future__ import annotations

import sys
import weakref
from typing import Any, NoReturn

from .call_location import caller_text

__all__ = ["ExitWatcher"]


class _ExitMarker:
    """An attribute of a `SystemExit` that is deleted with it, and so tells whether it was caught."""

    def __init__(self, leaving: ExitWatcher, status: int) -> None:
        self.exit_watcher, self.status = leaving, status

    def __del__(self) -> None:
        try:
            sys._getframe(1)
        except ValueError:  # no code runs below: it was not caught, the interpreter has dropped it
            self.exit_watcher._uncaught = self.status


class ExitWatcher:
    """Determines the exit status that ``sys.exit`` gives to this process.

    Python calls no hook for `SystemExit`, and its status cannot be asked for before the process is over.  But
    the interpreter drops the exception when it leaves, while one that is caught is dropped under a frame of
    the program's.
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
