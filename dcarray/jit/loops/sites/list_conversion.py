"""The lists among the values of a loop site, and whether to convert them takes longer than the loop."""

from __future__ import annotations

import time
from typing import Any

from ..entry.lists import list_elements

__all__ = ["ListConversion"]

LEAST = 20e-3  # seconds of conversions before they are judged


class ListConversion:
    """The conversions of one site."""

    __slots__ = ("_count", "_seconds")

    def __init__(self) -> None:
        self._count, self._seconds = 0, 0.0

    def elements(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return `list_elements` of values."""
        start = time.perf_counter()
        found = list_elements(values)
        self._seconds += time.perf_counter() - start
        self._count += 1
        return found

    def lasts_longer(self, seconds: float) -> bool:
        """Whether conversions have taken longer than runs of the loop in Python that take so many seconds."""
        return self._seconds > LEAST and self._seconds > self._count * seconds
