"""The cost of one halo exchange for several statements: messages, redundant points, memory passes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning.analysis.halo_state import Widths
from dcarray.comm.planning.performance_model import Line, Link
from dcarray.ir.nodes import Compute

__all__ = [
    "COSTS", "Costs", "ExpandableStatement", "GroupCosts", "HaloRead", "StatementGroup", "any_width",
]  # fmt: skip


@dataclass(frozen=True)
class Costs:
    """The costs of exchanges and local work, in seconds.

    Parameters
    ----------
    link : Link
        The cost of messages.
    point : float
        The cost of each redundant point and array of a statement.
    processor : float, optional
        The processor time of an exchange, which cannot overlap with other work.
    memory_pass : float, optional
        The cost of each byte of arrays that statements between two exchanges read, if these are more than
        ``cached``; once for at most ``chain`` statements, which share a pass.
    """

    link: Link
    point: float
    processor: float = 0.0
    memory_pass: float = 0.0
    cached: int = 2 << 20
    chain: int = 16


# For processes of one machine or a fast network: most of the time is the sender's and receiver's own work.
COSTS = Costs(Link((Line(20e-6, 5e9),), gap=5e-6), 0.3e-9, 40e-6, 2e-10)


@dataclass(frozen=True)
class HaloRead:
    """The read of an array through its halo: the widths, and the target's axes that its axes follow."""

    name: str
    widths: Widths
    follows: tuple[int | None, ...]


@dataclass(frozen=True)
class ExpandableStatement:
    """A statement that can be computed in the ghost zone as well as on a rank's own elements."""

    stmt: Compute
    reads: tuple[HaloRead, ...]
    margins: Widths  # elements of the target that it does not write, at both ends of each axis and no others


@dataclass(frozen=True)
class StatementGroup:
    """Statements that share one exchange of halos before them.

    Parameters
    ----------
    items : tuple of ExpandableStatement
    beyond : tuple of Widths
        The widths of the ghost zone in which each is computed.
    needs : mapping of str to Widths
        The halos that are exchanged.
    edges : mapping of str to (Widths, int)
        Halos of which only elements that no statement writes are read, within a margin of the array's ends.
    """

    items: tuple[ExpandableStatement, ...]
    beyond: tuple[Widths, ...]
    needs: Mapping[str, Widths]
    edges: Mapping[str, tuple[Widths, int]]


class GroupCosts:
    """The costs of statement groups, for given layouts of the arrays."""

    def __init__(self, layouts: Mapping[str, Layout | None], costs: Costs) -> None:
        self.layouts, self.costs = layouts, costs

    def cost(self, groups: Sequence[StatementGroup]) -> float:
        """Return the seconds of the exchanges, redundant points and passes through memory of groups."""
        total = 0.0
        for group in groups:
            total += self.exchange_time(group.needs)
            own: dict[str, int] = {}
            for item, widths in zip(group.items, group.beyond, strict=True):
                arrays = {item.stmt.target.array, *(read.name for read in item.reads)}
                own |= {name: 8 * self.block_size(name) for name in arrays - own.keys()}
                if any_width(widths):
                    total += (
                        self.halo_elements(item.stmt.target.array, widths) * len(arrays) * self.costs.point
                    )
            if (held := sum(own.values())) > self.costs.cached:
                total += held * self.costs.memory_pass * -(-len(group.items) // self.costs.chain)
        return total

    def exchange_time(self, needs: Mapping[str, Widths]) -> float:
        """Return the seconds of exchanging halos together."""
        messages = 0
        for widths in needs.values():
            sides = [1 + sum(map(bool, pair)) for pair in widths]
            messages = max(messages, math.prod(sides) - 1)
        return self.costs.link.time(self.nbytes(needs), messages) + (
            self.costs.processor if messages else 0.0
        )

    def nbytes(self, needs: Mapping[str, Widths]) -> int:
        """Return the approximate bytes of halos."""
        return sum(8 * self.halo_elements(name, widths) for name, widths in needs.items())

    def bytes_without_corners(self, needs: Mapping[str, Widths]) -> int:
        """Return the approximate bytes of halos without corners."""
        found = 0
        for name, widths in needs.items():
            own = self.extents(name)
            found += sum(8 * math.prod(own) // n * sum(pair) for n, pair in zip(own, widths, strict=True))
        return found

    def halo_elements(self, name: str, widths: Widths) -> int:
        """Return the approximate number of elements of a halo."""
        own = self.extents(name)
        return math.prod(n + sum(w) for n, w in zip(own, widths, strict=True)) - math.prod(own)

    def block_size(self, name: str) -> int:
        """Return the approximate number of elements of an array that a rank owns."""
        return math.prod(self.extents(name))

    def extents(self, name: str) -> list[int]:
        """Return the approximate extents of a block."""
        layout = self.layouts[name]
        assert layout is not None
        return [max(1, part.extent // part.parts) for part in layout.parts]


def any_width(widths: Widths) -> bool:
    """Whether any width of a halo is positive."""
    return any(map(any, widths))
