"""What compiled code has done for a program that asked a site."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Outcome"]


class Outcome:
    """What compiled code has done for a program that asked a site.

    A run changes memory, binds results, and has them taken here, which stores parts of objects; if any of
    this fails, all is undone.  What comes after that is for later runs, and its errors change nothing.

    Attributes
    ----------
    results : tuple
        ``(results,)``, the values of the live names; empty as long as Python has to run the statements.
    is_final : bool
        Whether memory has changed that cannot be restored, so that Python must not run the statements.
    is_alone : bool
        Whether there was no other thread before the values were read.
    is_brief : bool
        Whether the run is known to be brief, so that nobody waits for its end.
    was_stopped : bool
        Whether a signal has stopped the run.
    steps : list of callable
        What is done with the results, one function after the other, before they are taken.
    undo : list of callable
        What undoes these steps.
    """

    __slots__ = ("is_alone", "is_brief", "is_final", "results", "steps", "undo", "was_stopped")

    def __init__(self) -> None:
        self.results: tuple[Any, ...] = ()
        self.is_final = self.is_brief = self.was_stopped = False
        self.is_alone = threading.active_count() == 1
        self.steps: list[Callable[[tuple[Any, ...]], tuple[Any, ...]]] = []
        self.undo: list[Callable[[], None]] = []

    def take(self, values: tuple[Any, ...]) -> None:
        """Take the values of a plan's live names after its run."""
        try:
            for step in self.steps:
                values = step(values)
        except BaseException:
            self.drop()
            raise
        self.results = (values,)

    def drop(self) -> None:
        """Undo `take`."""
        self.results = ()
        while self.undo:
            self.undo.pop()()
