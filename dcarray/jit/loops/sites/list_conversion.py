"""The lists among the values of a site, and whether to convert them takes longer than its statements."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from typing import Any

from dcarray.plans.slot import PlanState

from ..entry.lists import list_elements

__all__ = ["ListConversion"]

LEAST = 20e-3  # seconds of conversions before they are judged
LAST = 9  # conversions of which the median counts
IN_VAIN = 0.05  # the part of a loop's time that they may take where they lead to nothing
ITEM = 50e-9  # seconds for an item of a list, until it is known
FELT = 2e-3  # seconds of a conversion that comes once its statements have run for so long
_NUMBERS = (bool, int, float, complex)


class ListConversion:
    """The conversions of one site."""

    __slots__ = ("_items", "_last", "_seconds")

    def __init__(self) -> None:
        self._items, self._seconds = 0, 0.0
        self._last: deque[float] = deque(maxlen=LAST)

    def elements(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return `list_elements` of values."""
        start = time.perf_counter()
        found = list_elements(values)
        self._last.append(time.perf_counter() - start)
        self._seconds += self._last[-1]
        self._items += sum(map(_length, values))
        return found

    def expected(self, values: tuple[Any, ...]) -> float:
        """Return how many seconds a conversion of values will take; 0 if that does not matter."""
        each = self._seconds / self._items if self._items else ITEM
        seconds = each * sum(map(_length, values))
        return seconds if seconds > FELT else 0.0

    def are_a_loss(self, entries: Iterable[Any]) -> bool:
        """Whether conversions have taken longer than runs of the statements in Python; or a small part of it,
        if there is no hope of a plan."""
        known = [*entries]
        seconds = max((entry.gain.seconds for entry in known), default=0.0)
        share = 1.0 if any(entry.state is not PlanState.REFUSED for entry in known) else IN_VAIN
        if seconds <= 0 or self._seconds <= LEAST:
            return False
        return sorted(self._last)[len(self._last) // 2] > share * seconds


def _length(value: Any) -> int:
    """Return the number of items of a list of numbers, or of such lists, as its first items have it."""
    count = 1
    while type(value) is list and value:
        count, value = count * len(value), value[0]
    return count if count > 1 and type(value) in _NUMBERS else 0
