"""The conversion of lists among a site's values to arrays: its time, and whether that exceeds what it
saves."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from dcarray.core import unpatched
from dcarray.plans.slot import PlanState

from ..entry.lists import MOST_LEVELS, list_elements

__all__ = ["ListConversion"]

LEAST_SECONDS = 20e-3  # seconds of conversions before they are judged
LAST = 9  # conversions of which the median counts
IN_VAIN = 0.05  # the part of a loop's time that they may take where they lead to nothing
ITEM = 50e-9  # seconds for an item of a list, until it is known
FELT = 2e-3  # seconds of a conversion that comes once its statements have run for so long
FIRST = 4  # conversions that led to runs until Python has its turn once more; twice as many the next time
_NUMBERS = (bool, int, float, complex)


class ListConversion:
    """The times of the conversions of lists to arrays of one site."""

    __slots__ = ("_items", "_last", "_ran", "_seconds", "_until")

    def __init__(self) -> None:
        self._items, self._seconds = 0, 0.0
        self._ran, self._until = 0, FIRST
        self._last: deque[float] = deque(maxlen=LAST)

    def elements(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the values with arrays of elements in place of lists (`list_elements`); the time this takes
        is noted."""
        start = unpatched.perf_counter()
        elements = list_elements(values)
        self._last.append(unpatched.perf_counter() - start)
        self._seconds += self._last[-1]
        self._items += sum(map(_length, values))
        return elements

    def expected(self, values: tuple[Any, ...]) -> float:
        """Return how many seconds a conversion of these values will take; 0 if it is too short to matter."""
        each = self._seconds / self._items if self._items else ITEM
        seconds = each * sum(map(_length, values))
        return seconds if seconds > FELT else 0.0

    def is_pythons_turn(self) -> bool:
        """Whether Python is to run the statements this time although there is a plan, so that its time is
        known. Conversions may take longer than a run that uses few of the elements.  That comes after more
        and more runs."""
        if self._last[-1] < FELT:
            return False
        self._ran += 1
        if self._ran < self._until:
            return False
        self._ran, self._until = 0, 2 * self._until
        return True

    def ran(self, seconds: float) -> float:
        """Add the seconds of a compiled run, with the lists made of its results, to its conversion's time;
        return what that was."""
        conversion = self._last[-1]
        self._last[-1] += seconds
        return conversion

    def are_a_loss(self, entries: Iterable[Any]) -> bool:
        """Whether a conversion and the run after it usually take longer than Python's run.  If all
        ``entries`` are refused, so that no plan is to be expected, 5% of Python's time is too much."""
        known = [*entries]
        seconds = max((entry.gain.recent for entry in known), default=0.0)
        share = 1.0 if any(entry.state is not PlanState.REFUSED for entry in known) else IN_VAIN
        if seconds <= 0 or self._seconds <= LEAST_SECONDS:
            return False
        return sorted(self._last)[len(self._last) // 2] > share * seconds


def _length(value: Any) -> int:
    """Return the number of numbers in a list or nested lists, by the first item of each; else 0."""
    count = 1
    for _ in range(MOST_LEVELS):  # a list may contain itself
        if type(value) is not list or not value:
            break
        count, value = count * len(value), value[0]
    return count if count > 1 and type(value) in _NUMBERS else 0
