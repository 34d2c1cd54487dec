"""Counts of the messages and bytes of one rank for a region, without running it."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning.placement.layout_preferences import has_matrix_products, preferred_layouts
from dcarray.comm.planning.placement.matmul_call import PLANNERS
from dcarray.comm.planning.rank_program.steps import Local, Program, Reduce
from dcarray.comm.transport.protocol import Counts
from dcarray.ir.parse import parse

from .performance_model import Collective, Phase
from .planner import plan

__all__ = ["Counted", "count", "suited"]


@dataclass(frozen=True)
class Counted:
    """The counts of one rank for a region.

    Parameters
    ----------
    counts : Counts
        Messages and bytes.
    phases : tuple of Phase
        The same counts as phases of the cost model, without local work: one for each wait of the rank.
    statements : int
        The number of steps of local work.
    whole : tuple of str
        Reasons why statements are computed from gathered arrays, if any are.
    planning : float
        Seconds of planning, without listing the messages, which is done when a plan is first run or counted.
    """

    counts: Counts
    phases: tuple[Phase, ...]
    statements: int
    whole: tuple[str, ...]
    planning: float


def suited(region: str, spread: Collection[str], ranks: int) -> dict[str, Layout]:
    """Return the layouts that the planner prefers for arrays whose layouts the user left open.

    Parameters
    ----------
    region : str
        The region in text form, with known sizes.
    spread : collection of str
        The arrays to distribute; those for which copies on all ranks are better are not in the result.
    ranks : int

    Returns
    -------
    dict of str to Layout

    Raises
    ------
    ParseError
        When the text is not that of a region.
    """
    what = parse(region)
    rows = not has_matrix_products(what)
    usual: dict[str, Layout | None] = {
        a.name: Layout.chosen(a.shape, ranks, rows=rows) for a in what.arrays if a.name in spread
    }
    preferred = preferred_layouts(what, usual, usual.keys(), ranks)
    return {name: layout for name, layout in preferred.items() if layout is not None}


def count(
    region: str, layouts: Mapping[str, Layout | None], ranks: int, rank: int, *, again: bool = False
) -> Counted:
    """Count the messages and bytes of one rank when all ranks run a region.

    Parameters
    ----------
    region : str
        The region in text form, with known sizes.
    layouts : mapping of str to (Layout or None)
        The layouts of its ``in`` and ``inout`` arrays; None, or no entry: whole on every rank.
    ranks, rank : int
        The number of ranks, and the rank that is counted.
    again : bool, optional
        Count the second of two successive runs: a time step.

    Returns
    -------
    Counted

    Raises
    ------
    ParseError
        When the text is not that of a region.
    PlanError
        When the region cannot be planned.
    """
    what = parse(region)
    begun = time.perf_counter()
    program = plan(what, layouts, ranks, rank, library=PLANNERS)
    planning = time.perf_counter() - begun
    if again:
        after = {a.name: program.layout(a.name) for a in what.arrays if a.role in ("in", "inout")}
        program = plan(what, after, ranks, rank, valid=program.valid, library=PLANNERS)
    return Counted(
        program.counts,
        tuple(_phases(program)),
        sum(isinstance(step, Local) for step in program.steps),
        tuple(note.text for note in program.notes if note.whole),
        planning,
    )


def _phases(program: Program) -> Iterator[Phase]:
    """Yield the phases of a rank, one for each step at which it waits for others."""
    for step in program.steps:
        counts = step.counts()
        messages = max(counts.messages_sent, counts.messages_received)
        nbytes = max(counts.bytes_sent, counts.bytes_received)
        collectives: tuple[Collective, ...] = ()
        if isinstance(step, Reduce):
            collectives = (Collective("allreduce", len(step.ranks), counts.collective_bytes),)
        if messages or collectives:
            yield Phase(messages=messages, nbytes=nbytes, collectives=collectives, steps=0)
