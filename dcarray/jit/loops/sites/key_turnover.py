"""Which keys a loop site keeps: a new one that comes again and again takes the place of one long unused."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Protocol

__all__ = ["KeyTurnover"]

COMES_BACK = 3  # runs with a new key after which it may have a place
UNUSED = 16  # runs of the site without a key after which that may lose its place
_REMEMBERED = 64  # new keys


class _Used(Protocol):
    used: int


class KeyTurnover:
    """The count of runs of a compiled loop, which decides which kinds of arguments keep their plans.

    Sizes that change with each run get no plans, while a program that goes over to other sizes for good gets
    them."""

    __slots__ = ("_new", "runs")

    def __init__(self) -> None:
        self.runs = 0
        self._new: dict[Any, int] = {}

    def mark(self, entry: _Used) -> None:
        """Note a run with the key of an entry."""
        self.runs += 1
        entry.used = self.runs

    def has_made_room(self, key: Any, entries: MutableMapping[Any, Any]) -> bool:
        """Whether an entry has been taken out for a new key: that which was not used for longest."""
        self.runs += 1
        if len(self._new) >= _REMEMBERED:
            self._new.clear()
        seen = self._new[key] = self._new.get(key, 0) + 1
        there = dict(entries)  # other threads may add some
        oldest = min(there, key=lambda one: there[one].used)
        if seen < COMES_BACK or self.runs - there[oldest].used < UNUSED:
            return False
        self._new.pop(key, None)
        entries.pop(oldest, None)
        return True
