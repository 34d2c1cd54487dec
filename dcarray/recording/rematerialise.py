"""Rematerialisation: operands of a full reduction are not stored if they are cheap to compute again.

``np.sum((x - y) ** 2)`` refers to the square only while it is summed.  When a full
reduction makes a recording run, such an array is left out as if it were dead, and the statements that compute
it are recorded again: it stays pending, and costs a few operations more should it be read after all.
"""

from __future__ import annotations

import math
import weakref

from dcarray.core import config
from dcarray.core.store import Store
from dcarray.ir.log_entries import Statement
from dcarray.ir.ops import OPS

from .log import Recording
from .replay import Replay

MAX_COST = 10.0  # cost of an element that may be computed twice, in additions
MAX_INPUTS = 2  # arrays that may be read twice
LEAST_LEFT_OUT = 1 << 18  # elements; to store fewer takes less time than this analysis


class Unstored:
    """The statements that compute a store which the current run leaves out."""

    def __init__(self, store: Store, entries: dict[int, Statement], rec: Recording) -> None:
        self.store = store
        self._replay = Replay(rec, entries)

    def record(self, rec: Recording) -> None:
        """Record the statements again."""
        self._replay.record(rec)
        length = len(rec.log)
        rec.guard = weakref.ref(self.store, lambda _: rec.session.forget(rec, length))


def leave_out(rec: Recording, store: Store) -> Unstored | None:
    """Return the statements to record again if this run does not store ``store``; None if it has to."""
    if store.rec is not rec or store.mem is not None or store.remote is not None or store.family is not store:
        return None
    if rec.writes or rec.urgent or (store.size < LEAST_LEFT_OUT and config.current().eager_below):
        return None
    needed = {store.slot}
    positions: list[int] = []
    cost = 0.0
    statements = rec.statements()
    for position in range(len(statements) - 1, -1, -1):
        entry = statements[position]
        if needed.isdisjoint(entry.outs):
            continue
        if entry.kind != "map":
            return None
        positions.append(position)
        cost += OPS[entry.op].cost
        needed.update(slot for slot, _, _ in entry.arrays)
    declared = rec.declarations()
    inputs = sum(not declared[k].is_new and math.prod(declared[k].shape) * 4 > store.size for k in needed)
    heads = any(declared[k].head != k for k in needed)
    exported = any((s := rec.store_at(k)) is not None and s.is_exported() for k in needed)
    if cost > MAX_COST or inputs > MAX_INPUTS or heads or exported or not positions:
        return None
    return Unstored(store, {k: statements[k] for k in reversed(positions)}, rec)
