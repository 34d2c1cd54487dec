"""Arrays that a result is taken from need not be stored: ``np.sum((x - y) ** 2)`` holds the square while it
sums it, and nobody may want it afterwards.

When a full reduction makes a recording run, an array that is cheap to compute is left out, as if nobody
held it, and the statements that compute it are recorded again: it stays pending, and costs a few
operations more should it be read after all.
"""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from .ir.ops import OPS
from .recording import Recording
from .store import Store

MAX_COST = 10.0  # additions for each element that may be done twice
MAX_INPUTS = 2  # arrays that may be read twice


class Spared:
    """The statements that compute one store, taken out of a recording that is about to run."""

    def __init__(self, store: Store, entries: list[tuple[Any, ...]], rec: Recording) -> None:
        self.store = store
        self.entries = entries
        declared = [entry for entry in rec.log if entry[0] in ("old", "new")]
        statements = rec.statements()
        used = {arg[0] for entry in entries for arg in entry[6:] if type(arg) is tuple}
        used |= {entry[4] for entry in entries}
        self.declared = {slot: declared[slot] for slot in used}
        self.stores = {slot: rec.store_at(slot) for slot in used}
        self.marks = [rec.marks[statements.index(entry)] for entry in entries]
        self.scalars = {
            arg: (rec.views[rec.kinds[arg]][arg], rec.kinds[arg])
            for entry in entries
            for arg in entry[6:]
            if type(arg) is int
        }

    def record(self, rec: Recording) -> None:
        """Record the statements again."""
        slots: dict[int, int] = {}
        scalars = {k: rec.scalar(value, char) for k, (value, char) in self.scalars.items()}

        def slot_of(old: int) -> int:
            if old not in slots:
                store = self.stores[old]
                if store is not None and store.mem is not None:
                    store.family.used = rec
                    slots[old] = store.slot if store.rec is rec else rec.declare(store)
                else:
                    _, char, shape, _ = self.declared[old]
                    slots[old] = rec.fresh(store or Store(shape, np.dtype(char)))
            return slots[old]

        for entry, (code, instruction, state) in zip(self.entries, self.marks, strict=True):
            kind, op, loop, shape, out, index, *args = entry
            again = [scalars[a] if type(a) is int else (slot_of(a[0]), a[1], a[2]) for a in args]
            rec.log.append((kind, op, loop, shape, slot_of(out), index, *again))
            rec.marks.append((code, instruction, state))
            rec.mask |= rec.session.watched(state)
        length = len(rec.log)
        rec.guard = weakref.ref(self.store, lambda _: rec.session.forget(rec, length))


def spare(rec: Recording, store: Store) -> Spared | None:
    """What to record again if ``store`` is left out of this run; None if it has to be stored."""
    if store.rec is not rec or store.mem is not None or store.family is not store:
        return None
    if rec.writes or rec.urgent:
        return None
    needed = {store.slot}
    entries: list[tuple[Any, ...]] = []
    cost = 0.0
    for entry in reversed(rec.log):
        kind = entry[0]
        if kind == "fold" and entry[6] in needed:
            return None
        if kind == "call" and not needed.isdisjoint(entry[2]):
            return None
        if kind != "map" or entry[4] not in needed:
            continue
        entries.append(entry)
        cost += OPS[entry[1]].cost
        needed.update(arg[0] for arg in entry[6:] if type(arg) is tuple)
    declared = [entry for entry in rec.log if entry[0] in ("old", "new")]
    inputs = sum(declared[k][0] == "old" and math.prod(declared[k][2]) * 4 > store.size for k in needed)
    heads = any(declared[k][-1] != k for k in needed)
    exported = any((s := rec.store_at(k)) is not None and s.exported() for k in needed)
    if cost > MAX_COST or inputs > MAX_INPUTS or heads or exported or not entries:
        return None
    return Spared(store, entries[::-1], rec)
