"""What groups of statements cost that halos are exchanged once for: messages, points that are computed twice,
and ways through memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning.cost_model import Line, Link
from dcarray.ir.nodes import Compute

__all__ = ["COSTS", "Costs", "Group", "Item", "Read", "Weights", "Widths", "wider"]

Widths = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Costs:
    """What exchanges and local work take, in seconds.

    Parameters
    ----------
    link : Link
        Messages.
    point : float
        For each point and array that a statement computes twice.
    own : float, optional
        What an exchange takes of a rank's own time, which nothing else can be done in.
    passing : float, optional
        For each byte of arrays that statements between two exchanges go through, if these are more than
        ``cached``; once for at most ``chain`` statements, which then share it.
    """

    link: Link
    point: float
    own: float = 0.0
    passing: float = 0.0
    cached: int = 2 << 20
    chain: int = 16


# Between processes of one machine, and those of a fast network: most is the sender's and receiver's own work.
COSTS = Costs(Link((Line(20e-6, 5e9),), gap=5e-6), 0.3e-9, 40e-6, 2e-10)


@dataclass(frozen=True)
class Read:
    """An array that a statement reads: how far through its halo, and the target's axes it follows."""

    name: str
    widths: Widths
    follows: tuple[int | None, ...]


@dataclass(frozen=True)
class Item:
    """A statement that can be computed beyond a rank's own elements."""

    stmt: Compute
    reads: tuple[Read, ...]
    margins: Widths  # elements of the target that it does not write, at both ends of each axis and no others


@dataclass(frozen=True)
class Group:
    """Statements before which halos are exchanged once.

    Parameters
    ----------
    items : tuple of Item
    beyond : tuple of Widths
        How far beyond a rank's own elements each is computed.
    needs : mapping of str to Widths
        The halos that are read.
    edges : mapping of str to (Widths, int)
        Halos of which only those elements are read that no statement writes, so many at the array's ends.
    """

    items: tuple[Item, ...]
    beyond: tuple[Widths, ...]
    needs: Mapping[str, Widths]
    edges: Mapping[str, tuple[Widths, int]]


class Weights:
    """Seconds and bytes by a layout of each array."""

    def __init__(self, layouts: Mapping[str, Layout | None], costs: Costs) -> None:
        self.layouts, self.costs = layouts, costs

    def cost(self, groups: Sequence[Group]) -> float:
        """Seconds of a segment's exchanges, of what is computed twice and of going through memory."""
        total = 0.0
        for group in groups:
            total += self.travel(group.needs)
            own: dict[str, int] = {}
            for item, widths in zip(group.items, group.beyond, strict=True):
                arrays = {item.stmt.target.array, *(read.name for read in item.reads)}
                own |= {name: 8 * self.own(name) for name in arrays - own.keys()}
                if wider(widths):
                    total += self.rim(item.stmt.target.array, widths) * len(arrays) * self.costs.point
            if (held := sum(own.values())) > self.costs.cached:
                total += held * self.costs.passing * -(-len(group.items) // self.costs.chain)
        return total

    def travel(self, needs: Mapping[str, Widths]) -> float:
        """Seconds of exchanging halos together."""
        messages = 0
        for widths in needs.values():
            sides = [1 + sum(map(bool, pair)) for pair in widths]
            messages = max(messages, math.prod(sides) - 1)
        return self.costs.link.time(self.nbytes(needs), messages) + (self.costs.own if messages else 0.0)

    def nbytes(self, needs: Mapping[str, Widths]) -> int:
        """About how many bytes of halos there are."""
        return sum(8 * self.rim(name, widths) for name, widths in needs.items())

    def sides(self, needs: Mapping[str, Widths]) -> int:
        """The same without corners."""
        found = 0
        for name, widths in needs.items():
            own = self.extents(name)
            found += sum(8 * math.prod(own) // n * sum(pair) for n, pair in zip(own, widths, strict=True))
        return found

    def rim(self, name: str, widths: Widths) -> int:
        """About how many elements a halo has."""
        own = self.extents(name)
        return math.prod(n + sum(w) for n, w in zip(own, widths, strict=True)) - math.prod(own)

    def own(self, name: str) -> int:
        """About how many elements of an array a rank has."""
        return math.prod(self.extents(name))

    def extents(self, name: str) -> list[int]:
        """The extents of a block."""
        layout = self.layouts[name]
        assert layout is not None
        return [max(1, part.extent // part.parts) for part in layout.parts]


def wider(widths: Widths) -> bool:
    """Is there a halo at all?"""
    return any(map(any, widths))
