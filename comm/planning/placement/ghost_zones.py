"""Ghost-zone expansion: one wide halo exchange for several statements; some points are computed twice.

If a statement reads the result of an earlier one through a halo of width w, the earlier one is also computed
for w elements beyond the rank's own, so it needs a halo that is wider by w, and so on backwards: a single
exchange of the widest halo replaces those of all statements, for example several time steps of a stencil.
The number of statements in a group minimises the cost model of messages and redundant points.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dcarray.comm.layout.axes import BlockAxis
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning.analysis.halo_state import (
    Halo,
    ValidHalos,
    Widths,
    is_dense_box,
    margins,
    max_widths,
)
from dcarray.comm.planning.analysis.iteration_domain import halo_widths, layout_of_points
from dcarray.ir.analysis.effects import writes
from dcarray.ir.nodes import Call, Compute, Gather, Index, Load, Stmt, Window
from dcarray.ir.windows import loads

from .ghost_zone_cost import (
    COSTS,
    Costs,
    ExpandableStatement,
    GroupCosts,
    HaloRead,
    StatementGroup,
    any_width,
)

__all__ = ["ExpandedBody", "expand_ghost_zones"]

_BYTES_LIMIT = 1.01  # limit of bytes sent, relative to an exchange before each statement


@dataclass(frozen=True)
class ExpandedBody:
    """The statements of a region after ghost-zone expansion.

    Parameters
    ----------
    body : tuple of statements
        A call ``comm.beyond`` before a statement gives the widths of the ghost zone to compute as well.
    halo_rooms : mapping of str to Widths
        The widths of the halos for which arrays need memory.
    group_size : int
        The largest number of statements that share an exchange.
    loc
        The line of the user's code of the first statement in that group.
    """

    body: tuple[Stmt, ...]
    halo_rooms: Mapping[str, Widths]
    group_size: int
    loc: Any


def expand_ghost_zones(
    body: Sequence[Stmt], layouts: Mapping[str, Layout | None], partial: Collection[str], costs: Costs = COSTS
) -> ExpandedBody:
    """Return statements in groups with one halo exchange each, where that costs less than separate ones.

    Parameters
    ----------
    body : sequence of statements
        Placed statements, with ``comm.halo`` calls wherever a halo is read that may not be valid.
    layouts : mapping of str to (Layout or None)
    partial : collection of str
        Arrays of partial results.
    costs : Costs, optional

    Returns
    -------
    ExpandedBody
    """
    return _Expansion(layouts, partial, costs).run(body)


class _Expansion:
    """The construction of a body with fewer halo exchanges, group by group."""

    def __init__(self, layouts: Mapping[str, Layout | None], partial: Collection[str], costs: Costs) -> None:
        self.layouts, self.partial, self.costs = layouts, partial, costs
        self.group_costs = GroupCosts(layouts, costs)
        self.body: list[Stmt] = []
        self.halo_rooms: dict[str, Widths] = {}
        self.group_size, self.loc = 1, None
        self.known: dict[Compute, ExpandableStatement | None] = {}
        self.valid: dict[str, ValidHalos] = {}
        self.groups_by_items: dict[tuple[int, ...], StatementGroup | None] = {}  # of items, by their identity

    def run(self, body: Sequence[Stmt]) -> ExpandedBody:
        segment: list[Stmt] = []
        for stmt in body:
            if _is_halo(stmt) or (isinstance(stmt, Compute) and self.expandable(stmt) is not None):
                segment.append(stmt)
                continue
            # the halo exchanges after the last statement belong to this one
            last = max((k for k, s in enumerate(segment, 1) if not _is_halo(s)), default=0)
            self.segment(segment[:last])
            for one in (*segment[last:], stmt):
                self.emit(one)
            segment = []
        self.segment(segment)
        return ExpandedBody(tuple(self.body), self.halo_rooms, self.group_size, self.loc)

    def emit(self, stmt: Stmt) -> None:
        if isinstance(stmt, Call) and _is_halo(stmt):
            (window,), halo = stmt.reads, Halo.of_call(stmt)
            self.need_halo(window.array, halo.widths)
            self.valid[window.array] = self.valid.get(window.array, ValidHalos()).after_exchange(halo)
        elif isinstance(stmt, Compute) and (item := self.expandable(stmt)) is not None:
            name = stmt.target.array
            if name in self.valid:  # elements that are not written stay valid
                self.valid[name] = self.valid[name].after_write(min(map(min, item.margins)))
        else:
            for window in writes(stmt):
                self.valid.pop(window.array, None)
        self.body.append(stmt)

    def need_halo(self, name: str, widths: Widths) -> None:
        self.halo_rooms[name] = max_widths(self.halo_rooms.get(name, widths), widths)

    # ---- statements ------------------------------------------------------------------------------
    def expandable(self, stmt: Compute) -> ExpandableStatement | None:
        if stmt not in self.known:
            self.known[stmt] = self.analyse(stmt)
        return self.known[stmt]

    def analyse(self, stmt: Compute) -> ExpandableStatement | None:
        """Return the expandable form of a statement that is element-wise over blocks; None for others."""
        target = stmt.target
        layout = self.layouts.get(target.array)
        if layout is None or target.array in self.partial or stmt.combine is not None:
            return None
        domain = layout_of_points(target, layout)
        if (
            domain is None
            or not is_dense_box(target)
            or any(isinstance(load, Gather) for load in loads(stmt.body))
        ):
            return None
        for ix, part in zip(target.index, layout.parts, strict=True):
            if part.parts > 1 and (ix.axis is None or ix.stride != 1 or not isinstance(part, BlockAxis)):
                return None
        reads = []
        for load in loads(stmt.body):
            assert isinstance(load, Load)
            other = self.layouts.get(load.window.array)
            if other is None:
                continue
            read = self.read(load.window, other, target, domain)
            if read is None:
                return None
            reads.append(read)
        return ExpandableStatement(stmt, tuple(reads), margins(target, layout.shape))

    def read(self, window: Window, layout: Layout, target: Window, domain: Layout) -> HaloRead | None:
        widths = halo_widths(window, layout, domain)
        if isinstance(widths, str):
            return None
        places: dict[int | None, int] = {ix.axis: t for t, ix in enumerate(target.index)}
        follows: list[int | None] = []
        for ix, part in zip(window.index, layout.parts, strict=True):
            if part.parts == 1:
                follows.append(None)
            elif ix.stride != 1 or ix.axis not in places or not isinstance(part, BlockAxis):
                return None
            else:
                follows.append(places[ix.axis])
        return HaloRead(window.array, widths, tuple(follows))

    # ---- segments --------------------------------------------------------------------------------
    def segment(self, stmts: Sequence[Stmt]) -> None:
        """Emit statements, and exchanges of the halos that they read, in groups of the least total cost."""
        items = [item for stmt in stmts if isinstance(stmt, Compute) and (item := self.expandable(stmt))]
        groups = self.best_groups(items)
        if groups is None:
            for stmt in stmts:
                self.emit(stmt)
            return
        long = max((group.items for group in groups), key=len)
        if len(long) > self.group_size:
            self.group_size, self.loc = len(long), long[0].stmt.loc
        for group in groups:
            for name, widths in group.needs.items():
                self.exchange(name, widths, math.inf)
            for name, (widths, margin) in group.edges.items():
                self.exchange(name, widths, margin)
            for item, widths in zip(group.items, group.beyond, strict=True):
                if any_width(widths):
                    name = item.stmt.target.array
                    self.need_halo(name, widths)
                    self.body.append(self.call("comm.beyond", name, (("widths", widths),)))
                self.emit(item.stmt)

    def best_groups(self, items: Sequence[ExpandableStatement]) -> list[StatementGroup] | None:
        """Return the groups with the least cost, or None to keep an exchange before each statement.

        If bandwidth dominates, only groups that send few more bytes than single statements are considered.
        """
        each = self.groups(items, 1)
        if each is None:
            return None
        least, groups = self.group_costs.cost(each), None
        most = _BYTES_LIMIT * sum(self.group_costs.bytes_without_corners(group.needs) for group in each)
        short = self.costs.link.lines[0].latency * self.costs.link.lines[0].bandwidth
        lead = next((k for k, group in enumerate(each) if group.needs), 0)
        for first in dict.fromkeys(
            (0, lead)
        ):  # leading statements that read no halo may precede the first exchange
            for together in _group_sizes(len(items) - first):
                if (rest := self.groups(items[first:], together)) is None:
                    continue
                candidate = [*each[:first], *rest]
                sent = [self.group_costs.nbytes(group.needs) for group in candidate]
                if (sum(sent) <= most or max(sent) <= short) and (
                    cost := self.group_costs.cost(candidate)
                ) < least:
                    groups, least = candidate, cost
        return groups

    def exchange(self, name: str, widths: Widths, margin: float) -> None:
        """Emit the exchange of a halo unless it is up to date already."""
        halo = Halo(widths, sum(map(any, widths)) > 1, margin)
        if not self.valid.get(name, ValidHalos()).has(halo):
            self.emit(self.call("comm.halo", name, halo.attrs))

    def call(self, op: str, name: str, attrs: tuple[tuple[str, Any], ...]) -> Call:
        """Return a communication call that refers to a whole array."""
        layout = self.layouts[name]
        assert layout is not None
        index = tuple(Index(0, 1, a) for a in range(layout.ndim))
        return Call(op, (Window(name, layout.shape, index),), (), attrs)

    def groups(self, items: Sequence[ExpandableStatement], together: int) -> list[StatementGroup] | None:
        """Return statements in groups of `together`; None if a halo would be wider than a block."""
        groups = [self.group(items[k : k + together]) for k in range(0, len(items), together)]
        return None if None in groups else groups  # type: ignore[return-value]

    def group(self, items: Sequence[ExpandableStatement]) -> StatementGroup | None:
        key = tuple(map(id, items))  # unrolled loops repeat the same statements
        if key not in self.groups_by_items:
            self.groups_by_items[key] = self.make_group(items)
        return self.groups_by_items[key]

    def make_group(self, items: Sequence[ExpandableStatement]) -> StatementGroup | None:
        need: dict[str, Widths] = {}
        edges: dict[str, tuple[Widths, int]] = {}
        beyond: list[Widths] = []
        for item in reversed(items):
            name = item.stmt.target.array
            layout = self.layouts[name]
            assert layout is not None
            here = need.pop(name, ((0, 0),) * layout.ndim)
            if name in edges and min(map(min, item.margins)) < edges[name][1]:
                here = max_widths(here, edges.pop(name)[0])  # it writes elements that the others do not
            beyond.append(here)
            if any_width(here) and not self.writes_halo(item, here, layout):
                widths, margin = edges.get(name, (here, 0))
                edges[name] = max_widths(widths, here), max(margin, max(map(max, item.margins)))
            for read in item.reads:
                wide = tuple(
                    (0, 0) if t is None else (w[0] + here[t][0], w[1] + here[t][1])
                    for w, t in zip(read.widths, read.follows, strict=True)
                )
                need[read.name] = max_widths(need.get(read.name, wide), wide)
        every = [*need.items(), *((name, widths) for name, (widths, _) in edges.items())]
        every += [(item.stmt.target.array, w) for item, w in zip(reversed(items), beyond, strict=True)]
        if not all(self.fits(name, widths) for name, widths in every):
            return None
        needs = {name: widths for name, widths in need.items() if any_width(widths)}
        edges = {name: edge for name, edge in edges.items() if name not in needs or needs[name] != edge[0]}
        return StatementGroup(tuple(items), tuple(reversed(beyond)), needs, edges)

    def fits(self, name: str, widths: Widths) -> bool:
        """Whether no block of an array is smaller than a halo of some widths."""
        layout = self.layouts[name]
        assert layout is not None
        return all(
            max(pair) <= (part.smallest() if part.parts > 1 else 0)
            for part, pair in zip(layout.parts, widths, strict=True)
        )

    def writes_halo(self, item: ExpandableStatement, widths: Widths, layout: Layout) -> bool:
        """Whether a statement writes all elements of a halo of some widths, on every rank that has one."""
        wide = {axis for axis, pair in enumerate(widths) if any(pair)}
        for axis, (part, margin) in enumerate(zip(layout.parts, item.margins, strict=True)):
            if any(margin) and wide != {axis}:
                return False
            before, after = widths[axis]
            if axis in wide and part.smallest() < max(margin[0] + before, margin[1] + after):
                return False
        return True


def _group_sizes(count: int) -> list[int]:
    """Return candidate sizes for groups of `count` statements in nearly equal parts, the largest first."""
    parts, sizes = 1, list[int]()
    while parts < count:
        for number in (parts, parts * 3 // 2):
            if (size := -(-count // number)) > 1 and size not in sizes:
                sizes.append(size)
        parts *= 2
    return sizes


def _is_halo(stmt: Stmt) -> bool:
    return isinstance(stmt, Call) and stmt.op == "comm.halo"
