"""The live statements of a log, with what the op-by-op interpreter has to know of each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from dcarray.ir.log_entries import Declaration, Statement


class Step(NamedTuple):
    """A statement of a log that is not dead, with the families of memory that it uses.  ``reads`` and
    ``writes`` are all families, ``dying`` those that no later statement needs, and ``born`` those that it is
    the first to write."""

    position: int
    reads: frozenset[int]
    writes: frozenset[int]
    dying: tuple[int, ...]
    born: tuple[int, ...]


def live_steps(
    declared: Sequence[Declaration], statements: Sequence[Statement], live: Collection[int]
) -> tuple[Step, ...]:
    """Return the steps of a log: its statements without dead ones.

    Parameters
    ----------
    declared, statements
        The entries of the log.
    live
        The slots of new arrays that are alive.
    """
    heads = [entry.head for entry in declared]
    needed = {entry.head for entry in declared if not entry.is_new}.union(live)
    steps: list[Step] = []
    for k in range(len(statements) - 1, -1, -1):
        entry = statements[k]
        outs = frozenset([heads[slot] for slot in entry.outs])
        if needed.isdisjoint(outs):
            continue
        ins = frozenset([heads[slot] for slot, _, _ in entry.arrays])
        steps.append(Step(k, ins, outs, tuple((ins | outs) - needed), ()))
        needed |= ins | outs
    seen: set[int] = set()
    for k in range(len(steps) - 1, -1, -1):
        born = steps[k].writes - seen
        seen |= born
        steps[k] = steps[k]._replace(born=tuple(born))
    steps.reverse()
    return tuple(steps)
