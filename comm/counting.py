"""What a region makes one rank of many send and receive: planned without data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dcarray.ir.parse import parse

from .layout import Layout
from .library import planners
from .model import Collective, Phase
from .planner import plan
from .prefer import preferred
from .program import Local, Program, Reduce
from .protocol import Counts

__all__ = ["Counted", "count", "suited"]


@dataclass(frozen=True)
class Counted:
    """One rank's part in a region.

    Parameters
    ----------
    counts : Counts
        Messages and bytes.
    phases : tuple of Phase
        The same as the model takes them, without local work: one for each point at which the rank waits.
    statements : int
        Steps of local work.
    whole : tuple of str
        Why something is computed from gathered arrays, if anything is.
    """

    counts: Counts
    phases: tuple[Phase, ...]
    statements: int
    whole: tuple[str, ...]


def suited(region: str, layouts: Mapping[str, Layout | None], ranks: int) -> dict[str, Layout | None]:
    """Layouts that suit the products of a region, where arrays may lie as they like.

    Parameters
    ----------
    region : str
        In the text form of regions, with sizes that are known.
    layouts : mapping of str to (Layout or None)
        Usual layouts; None, or no entry: whole on every rank.
    ranks : int

    Returns
    -------
    dict of str to (Layout or None)

    Raises
    ------
    ParseError
        When the text is none of a region.
    """
    return preferred(parse(region), layouts, layouts.keys(), ranks)


def count(
    region: str, layouts: Mapping[str, Layout | None], ranks: int, rank: int, *, again: bool = False
) -> Counted:
    """Count what one rank sends and receives when all run a region.

    Parameters
    ----------
    region : str
        In the text form of regions, with sizes that are known.
    layouts : mapping of str to (Layout or None)
        How its ``in`` and ``inout`` arrays lie; None, or no entry: whole on every rank.
    ranks, rank : int
        How many there are, and which one is looked at.
    again : bool, optional
        Count the second of two runs one after the other: what a time step takes.

    Returns
    -------
    Counted

    Raises
    ------
    ParseError
        When the text is none of a region.
    PlanError
        When the region cannot be planned.
    """
    what = parse(region)
    made = plan(what, layouts, ranks, rank, library=planners())
    if again:
        after = {a.name: made.layout(a.name) for a in what.arrays if a.role in ("in", "inout")}
        made = plan(what, after, ranks, rank, valid=made.valid, library=planners())
    return Counted(
        made.counts,
        tuple(_phases(made)),
        sum(isinstance(step, Local) for step in made.steps),
        tuple(note.text for note in made.notes if note.whole),
    )


def _phases(made: Program) -> Iterator[Phase]:
    """The steps of a rank at which it waits for others."""
    for step in made.steps:
        counts = step.counts()
        messages = max(counts.messages_sent, counts.messages_received)
        nbytes = max(counts.bytes_sent, counts.bytes_received)
        together: tuple[Collective, ...] = ()
        if isinstance(step, Reduce):
            together = (Collective("allreduce", len(step.ranks), counts.collective_bytes),)
        if messages or together:
            yield Phase(messages=messages, nbytes=nbytes, collectives=together, steps=0)
