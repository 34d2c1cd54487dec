"""Value numbering of a recording: which computations are equal, and which memory was written in between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dcarray.core.store import Store
from dcarray.ir.log_entries import Declaration, read

from .log import Recording

__all__ = ["is_same_value", "is_written"]

_ALIKE = 64  # entries that a comparison of two arrays visits at most


class _History:
    """Write history of a log: for each slot the first and the last entry that writes it, extended
    incrementally.

    Attributes
    ----------
    heads : list of int
        For each slot, the slot of its family's head.
    last : dict of int to int
        The position of the last entry that writes a family's memory, by the slot of its head.
    first, single : dict of int to int, set of int
        For each slot, the position of the first entry that writes it; the slots that only one entry writes.
    """

    __slots__ = ("_seen", "declared", "first", "heads", "last", "single")

    def __init__(self) -> None:
        self._seen = 0
        self.declared: list[Declaration] = []
        self.heads: list[int] = []
        self.last: dict[int, int] = {}
        self.first: dict[int, int] = {}
        self.single: set[int] = set()

    def follow(self, log: list[tuple[Any, ...]]) -> None:
        """Extend the tables by the new entries of the log."""
        for position in range(self._seen, len(log)):
            entry = read(log[position])
            if isinstance(entry, Declaration):
                self.declared.append(entry)
                self.heads.append(entry.head)
                continue
            for slot in entry.outs:
                self.last[self.heads[slot]] = position
                if slot in self.first:
                    self.single.discard(slot)
                else:
                    self.first[slot] = position
                    self.single.add(slot)
        self._seen = len(log)


def _history(rec: Recording) -> _History:
    if rec.history is None:
        rec.history = _History()
    history: _History = rec.history
    history.follow(rec.log)
    return history


def is_written(rec: Recording, stores: Sequence[Store], start: int) -> bool:
    """Whether the memory of stores is written after the first ``start`` entries of the log."""
    last = _history(rec).last
    for store in stores:
        head = store._head or store
        if head.rec is rec and last.get(head.slot, -1) >= start:
            return True
    return False


def is_same_value(rec: Recording, one: int, two: int) -> bool:
    """Whether the arrays of two slots have been computed in the same way from unchanged inputs."""
    return _is_same_value(rec, _history(rec), one, two, [_ALIKE])


def _is_same_value(rec: Recording, history: _History, one: int, two: int, left: list[int]) -> bool:
    """Whether two slots have the same value, by comparing the operations that made it: ``left`` at most."""
    if one == two:
        return True
    declared = history.declared
    if not declared[one].is_new or declared[one]._replace(head=two) != declared[two]._replace(head=two):
        return False
    for slot in (one, two):
        if slot not in history.single or declared[slot].head != slot:
            return False
    origins = history.first[one], history.first[two]
    a, b = (read(rec.log[k]) for k in origins)
    if isinstance(a, Declaration) or isinstance(b, Declaration):
        return False
    left[0] -= 1
    if left[0] < 0 or a.kind != "map" or a._replace(outs=(), args=()) != b._replace(outs=(), args=()):
        return False
    for p, q in zip(a.args, b.args, strict=True):
        if type(p) is int or type(q) is int:
            if type(p) is not type(q) or not _same_scalar(rec, p, q):
                return False
        elif p[1:] != q[1:] or not _is_same_value(rec, history, p[0], q[0], left):
            return False
        elif p[0] == q[0]:
            changed = history.last.get(history.heads[p[0]], -1)
            if changed >= min(origins):
                return False
    return True


def _same_scalar(rec: Recording, p: int, q: int) -> bool:
    a, b = (rec.views[rec.kinds[k]][k] for k in (p, q))
    return bool(rec.kinds[p] == rec.kinds[q] and a.tobytes() == b.tobytes())
