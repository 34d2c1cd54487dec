"""The cost model of ghost-zone expansion: messages, redundantly computed points, passes over memory."""

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
        The cost of each redundantly computed point, for each array of the statement.
    processor : float, optional
        The processor time of an exchange, during which the rank cannot compute.
    memory_pass : float, optional
        The cost of each byte of the arrays used between two exchanges, if these have more than ``cached``
        bytes; counted once for each ``chain`` statements, which share a pass over memory.
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
    """The read of an array through its halo.

    `widths` are those of the halo that is read; `follows` gives for each axis of the array the axis of the
    target whose index it depends on, or None.
    """

    name: str
    widths: Widths
    follows: tuple[int | None, ...]


@dataclass(frozen=True)
class ExpandableStatement:
    """A statement that can be computed for elements of its target's halo as well as a rank's own elements."""

    stmt: Compute
    reads: tuple[HaloRead, ...]
    margins: Widths  # elements of the target that it does not write, at both ends of each axis and no others


@dataclass(frozen=True)
class StatementGroup:
    """A group of statements before which all halos that they need are exchanged at once.

    Parameters
    ----------
    items : tuple of ExpandableStatement
    beyond : tuple of Widths
        For each statement, the widths of the zone beyond the rank's own elements in which it is computed.
    needs : mapping of str to Widths
        The widths of the halos that are exchanged, by array.
    edges : mapping of str to (Widths, int)
        Halos of which only elements within a margin of the array's ends are read, that no statement writes.
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
        """Return the seconds that the exchanges, redundant points and passes over memory of groups take."""
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
        """Return the seconds that an exchange of several halos in the same messages takes."""
        messages = 0
        for widths in needs.values():
            sides = [1 + sum(map(bool, pair)) for pair in widths]
            messages = max(messages, math.prod(sides) - 1)
        return self.costs.link.time(self.nbytes(needs), messages) + (
            self.costs.processor if messages else 0.0
        )

    def nbytes(self, needs: Mapping[str, Widths]) -> int:
        """Return the approximate number of bytes in the halos of some arrays, corners included."""
        return sum(8 * self.halo_elements(name, widths) for name, widths in needs.items())

    def bytes_without_corners(self, needs: Mapping[str, Widths]) -> int:
        """Return the approximate number of bytes in the halos of some arrays, without the corners."""
        total = 0
        for name, widths in needs.items():
            own = self.extents(name)
            total += sum(8 * math.prod(own) // n * sum(pair) for n, pair in zip(own, widths, strict=True))
        return total

    def halo_elements(self, name: str, widths: Widths) -> int:
        """Return the approximate number of elements of a halo."""
        own = self.extents(name)
        return math.prod(n + sum(w) for n, w in zip(own, widths, strict=True)) - math.prod(own)

    def block_size(self, name: str) -> int:
        """Return the approximate number of elements of an array that a rank owns."""
        return math.prod(self.extents(name))

    def extents(self, name: str) -> list[int]:
        """Return the approximate extents of a rank's block of an array, at least one along each axis."""
        layout = self.layouts[name]
        assert layout is not None
        return [max(1, part.extent // part.parts) for part in layout.parts]


def any_width(widths: Widths) -> bool:
    """Whether any width of a halo is positive."""
    return any(map(any, widths))
