"""Placement: the owner of a target element computes it; communication is inserted before each statement.

The result is again a region over whole arrays, with layouts in text form, in which calls of ``comm.*`` denote
communication.  The interpreter computes the same values from it in one process.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dcarray.comm.layout.axes import CyclicAxis
from dcarray.comm.layout.derived_layouts import without_cyclic
from dcarray.comm.layout.layouts import Block, Cyclic, Layout, Whole
from dcarray.comm.layout.notation import Partial, canonical
from dcarray.comm.planning.analysis.halo_state import Widths, max_widths
from dcarray.comm.planning.analysis.iteration_domain import (
    canonical_without_halo,
    covers,
    follows_cyclic_axis,
    halo_widths,
    is_movable,
    layout_from_domain,
    layout_of_points,
    preferred_domain,
)
from dcarray.comm.planning.analysis.normalise import (
    combine_with_start,
    is_zero,
    kept_axes,
    name_single_points,
    reduction_identity,
    start_values,
    with_point_axes,
    without_negative_strides,
)
from dcarray.ir.analysis.effects import touched_arrays, writes
from dcarray.ir.nodes import Array, Call, Compute, Expr, Gather, Index, Iota, Load, Region, Stmt, Window
from dcarray.ir.renaming import rename
from dcarray.ir.statements import flatten
from dcarray.ir.windows import identity, map_loads, walk

from .distributed_forms import DistributedForm, Operand, Planner
from .draft import PlacedRegion, RegionBuilder
from .ghost_zone_cost import COSTS, Costs
from .layout_preferences import final_arrays

__all__ = ["insert"]


class NotDistributable(Exception):
    """Raised for a statement without a distributed form; the message is the reason."""


def insert(
    region: Region,
    layouts: Mapping[str, Layout | None],
    ranks: int,
    replicate_limit: int,
    library: Mapping[str, Planner],
    costs: Costs | None = COSTS,
    serial_limit: int = 0,
) -> PlacedRegion:
    """Return a region with its statements placed and their communication; parameters: see `planner.plan`."""
    draft = _Inserter(region, layouts, ranks, replicate_limit, library, serial_limit)
    for stmt in flatten(region.body):
        draft.place(stmt)
    return draft.finished(costs)


class _Inserter(RegionBuilder):
    """The builder that places statements one after the other, each after the communication that it needs."""

    def __init__(
        self,
        region: Region,
        layouts: Mapping[str, Layout | None],
        ranks: int,
        replicate_limit: int,
        library: Mapping[str, Planner],
        serial_limit: int,
    ) -> None:
        super().__init__(region, layouts)
        self.ranks, self.library = ranks, library
        self.replicate_limit, self.serial_limit = replicate_limit, serial_limit
        self.destined = final_arrays(region)

    # ---- statements ------------------------------------------------------------------------------
    def place(self, stmt: Stmt) -> None:
        if isinstance(stmt, Compute):
            try:
                self.place_compute(without_negative_strides(stmt))
            except NotDistributable as error:
                self.place_replicated(stmt, str(error))
        elif isinstance(stmt, Call) and not self.is_replicated(stmt):
            self.place_call(stmt)
        else:
            self.place_replicated(stmt, "loops and conditions have no distributed form")

    def is_replicated(self, stmt: Stmt) -> bool:
        """Whether every rank has all arrays of a statement whole."""
        return all(self.layouts[name] is None for name in touched_arrays(stmt))

    def place_replicated(self, stmt: Stmt, why: str | None) -> None:
        """Place a statement on every rank: gather its arrays before, and distribute the results after it."""
        self.undecided -= touched_arrays(stmt)
        if self.is_replicated(stmt):
            self.emit(stmt)
            return
        loc = getattr(stmt, "loc", None)
        if why is not None:
            self.add_note(f"{why}: computed on every rank from whole arrays", loc, whole=True)
        written = {w.array for w in writes(stmt)}
        back: list[tuple[Array, Array]] = []
        for name in sorted(touched_arrays(stmt)):
            if self.layouts[name] is None:
                continue
            array = self.arrays[name]
            copy = self.copy_in(array, None, loc, name in self.written)
            stmt = rename(stmt, name, copy.name)
            if name in written:
                back.append((copy, array))
        self.emit(stmt)
        for copy, array in back:
            self.emit_redistribution(identity(copy), identity(array), loc)

    def place_call(self, stmt: Call) -> None:
        """Place a library call in its distributed form, or on every rank if it has none."""
        planner = self.library.get(stmt.op)
        one = all(math.prod(w.shape) == 1 and self.arrays[w.array].dtype.kind in "fc" for w in stmt.writes)
        if planner is None or (one and all(math.prod(w.shape) <= self.serial_limit for w in stmt.reads)):
            self.place_replicated(stmt, None if planner else f"{stmt.op} has no distributed form")
            return
        reads = tuple(w if self.is_matrix(w) else self.copy_of_window(w, stmt.loc) for w in stmt.reads)
        results = tuple(
            w
            if covers(w, self.arrays[w.array].shape)
            else identity(self.new_array(w.array, self.arrays[w.array].dtype, w.shape, None))
            for w in stmt.writes
        )
        self.undecided |= {new.array for old, new in zip(stmt.writes, results, strict=True) if old is not new}
        for new in results:
            end = self.destined.get(new.array)
            if len(new.shape) < 2 or end is None or end in self.undecided or new.array not in self.undecided:
                continue  # partial vectors are better summed by one reduction than by many messages
            self.undecided.discard(new.array)
            self.layouts[new.array] = canonical_without_halo(self.layouts[end])
        placed = replace(stmt, reads=reads, writes=results)
        given, written = (tuple(self.operand(w) for w in windows) for windows in (reads, results))
        form = planner(placed, given, written, self.ranks)
        if isinstance(form, str):
            self.place_replicated(placed, form)
        else:
            self.place_form(placed, form)
        for new, old in zip(results, stmt.writes, strict=True):
            if new is not old:
                self.place_copy(old, new, stmt.loc)

    def place_form(self, stmt: Call, form: DistributedForm) -> None:
        """Place a call over whole arrays, with redistributions to the layouts that its form requires."""
        self.add_note(form.reason, stmt.loc)
        for name, layout in ((w.array, lay) for w, lay in zip(stmt.reads, form.reads, strict=True)):
            if self.layouts[name] != canonical(layout):
                copy = self.copy_in(self.arrays[name], canonical(layout), stmt.loc)
                reads = tuple(replace(w, array=copy.name) if w.array == name else w for w in stmt.reads)
                stmt = replace(stmt, reads=reads)
        back: list[tuple[Array, Array]] = []
        for name, layout in ((w.array, lay) for w, lay in zip(stmt.writes, form.writes, strict=True)):
            array = self.arrays[name]
            if name in self.undecided:
                self.undecided.discard(name)
                self.layouts[name] = canonical(layout)
            if self.layouts[name] != canonical(layout):
                copy = self.new_array(name, array.dtype, array.shape, canonical(layout))
                stmt = rename(stmt, name, copy.name)  # type: ignore[assignment]
                back.append((copy, array))
        if form.parts is None:
            self.forms[stmt.writes[0].array] = form
            self.emit(stmt)
        else:
            self.place_partial(stmt, form, *form.parts)
        for copy, array in back:
            self.emit_redistribution(identity(copy), identity(array), stmt.loc)

    def place_partial(self, stmt: Call, form: DistributedForm, layout: Layout, over: tuple[int, ...]) -> None:
        """Place a call that computes partial results, and the sum of these over ranks."""
        result = stmt.writes[0]
        array = self.arrays[result.array]
        part = self.new_array(array.name, array.dtype, array.shape, layout)
        self.partial[part.name] = Partial("add", tuple((-1, Block(g)) for g in over))
        self.forms[part.name] = form
        self.emit(replace(stmt, writes=(identity(part),)))
        self.emit(Call("comm.reduce", (identity(part),), (result,), (("op", "add"),), stmt.loc))

    def is_matrix(self, window: Window) -> bool:
        """Whether a window covers its whole array, without broadcasting along its last two axes."""
        axes = {ix.axis for ix in window.index}
        last = range(len(window.shape))[-2:]
        return covers(window, self.arrays[window.array].shape) and all(
            a in axes or window.shape[a] == 1 for a in last
        )

    def operand(self, window: Window) -> Operand:
        array = self.arrays[window.array]
        return Operand(
            array.shape,
            array.dtype,
            canonical_without_halo(self.layouts[array.name]),
            array.name in self.undecided,
        )

    def copy_of_window(self, window: Window, loc: Any) -> Window:
        """Return a new array that is a copy of a window, as a window, after placing the copy statement."""
        array = self.arrays[window.array]
        copy = self.new_array(array.name, array.dtype, window.shape, None)
        self.undecided.add(copy.name)
        self.place_copy(identity(copy), window, loc)
        return identity(copy)

    def place_copy(self, target: Window, source: Window, loc: Any) -> None:
        """Place a statement that copies one window to another."""
        dtype = self.arrays[source.array].dtype
        self.place(Compute(target, Load(source, dtype), loc=loc))

    # ---- computations ----------------------------------------------------------------------------
    def place_compute(self, stmt: Compute) -> None:
        shape, kept = stmt.target.shape, kept_axes(stmt)
        folds = stmt.combine is not None and stmt.scan is None and len(kept) < len(shape)
        if 0 in shape:
            start_value = start_values(stmt) if folds and all(shape[a] for a in kept) else None
            if start_value is not None:
                self.place_compute(start_value)
            return
        if folds:
            self.place_reduction(stmt)
            return
        self.choose_layout(stmt)
        layout = self.layouts[stmt.target.array]
        if layout is None:
            self.emit(self.with_operands(stmt, None))
            return
        stmt = with_point_axes(stmt, layout)
        domain = layout_of_points(stmt.target, layout)
        if domain is None:
            self.place_in_blocks(stmt, layout)
            return
        self.check_placeable(stmt, domain)
        self.emit(self.with_operands(stmt, domain))

    def place_in_blocks(self, stmt: Compute, layout: Layout) -> None:
        """Place a statement that writes part of a cyclic axis: it writes a copy of the array in blocks."""
        if not any(isinstance(part, CyclicAxis) for part in layout.parts):
            raise NotDistributable("what is written lies along two axes that are dealt out")
        array = self.arrays[stmt.target.array]
        copy = self.copy_in(array, without_cyclic(layout), stmt.loc, array.name in self.written)
        self.place_compute(replace(stmt, target=replace(stmt.target, array=copy.name)))
        self.emit_redistribution(identity(copy), identity(array), stmt.loc)

    def check_placeable(self, stmt: Compute, domain: Layout) -> None:
        """Raise `NotDistributable` if a statement cannot be computed with its points in a layout."""
        if stmt.scan is not None and domain.parts[stmt.scan].parts > 1:
            raise NotDistributable("a scan goes along an axis that is dealt out")
        for node in walk(*stmt.exprs):
            if isinstance(node, Iota) and isinstance(domain.parts[node.axis], CyclicAxis):
                raise NotDistributable("coordinates are used along an axis that is dealt out in turn")

    def choose_layout(self, stmt: Compute) -> None:
        """Choose the layout of a statement's target, if still open, from the arrays that it reads."""
        name = stmt.target.array
        if name not in self.undecided:
            return
        self.undecided.discard(name)
        shape = self.arrays[name].shape
        if math.prod(shape) <= self.replicate_limit or not shape:
            return
        domain = preferred_domain(stmt, self.layouts)
        if domain is not None:
            self.layouts[name] = canonical(layout_from_domain(stmt.target, domain, shape))
        elif max(shape) > 1:
            self.layouts[name] = canonical(Layout.chosen(shape, self.ranks))

    # ---- folds -----------------------------------------------------------------------------------
    def place_reduction(self, stmt: Compute) -> None:
        """Place a reduction: each rank reduces its share of the points, then the results are reduced."""
        target, op = stmt.target, str(stmt.combine)
        domain = preferred_domain(stmt, self.layouts)
        array = self.arrays[target.array]
        kept = kept_axes(stmt)
        zero = reduction_identity(op, array.dtype)
        rounded = op in ("add", "multiply") and array.dtype.kind in "fc"
        if domain is None or (rounded and math.prod(target.shape) <= self.serial_limit):
            self.place_local_reduction(stmt, None)
            return
        along = tuple(
            (a, spec)
            for a, spec in enumerate(domain.axes)
            if a not in kept and not isinstance(spec, Whole) and domain.parts[a].parts > 1
        )
        if along and zero is None:
            domain = Layout(
                domain.shape, domain.grid, [s if a in kept else Whole() for a, s in enumerate(domain.axes)]
            )
            along = ()
        if not along or zero is None:
            self.place_local_reduction(stmt, domain)
            return
        self.check_placeable(stmt, domain)
        shape = tuple(target.shape[a] for a in kept)
        layout = Layout(shape, domain.grid, [domain.axes[a] for a in kept])
        part = self.new_array(array.name, array.dtype, shape, layout)
        self.partial[part.name] = Partial(op, along)
        onto = Window(part.name, target.shape, tuple(Index(0, 1, a) for a in kept))
        neutral = stmt.init is zero or (op == "add" and is_zero(stmt.init))
        begin = stmt.init if neutral else zero
        self.emit(self.with_operands(Compute(onto, stmt.body, op, begin, stmt.loc), domain))
        all_of_it = target.index == tuple(Index(0, 1, a) for a in kept) and shape == array.shape
        if neutral and all_of_it and array.name in self.undecided:
            self.undecided.discard(array.name)
            self.layouts[array.name] = canonical(layout)
        straight = (
            neutral and all_of_it and canonical_without_halo(self.layouts[array.name]) == canonical(layout)
        )
        result = array if straight else self.new_array(array.name, array.dtype, shape, canonical(layout))
        self.emit(Call("comm.reduce", (identity(part),), (identity(result),), (("op", op),), stmt.loc))
        if not straight:
            self.place_compute(combine_with_start(stmt, Load(identity(result), array.dtype), neutral))

    def place_local_reduction(self, stmt: Compute, domain: Layout | None) -> None:
        """Place a reduction along axes that are not distributed."""
        target = stmt.target
        array = self.arrays[target.array]
        if target.array in self.undecided:
            self.undecided.discard(target.array)
            if domain is not None and math.prod(array.shape) > self.replicate_limit:
                self.layouts[target.array] = canonical(layout_from_domain(target, domain, array.shape))
        layout, points = self.layouts[target.array], None
        if layout is not None:
            stmt = with_point_axes(stmt, layout)
            points = layout_of_points(stmt.target, layout)
            if points is None:
                raise NotDistributable("a fold into part of an axis that is dealt out in turn")
            self.check_placeable(stmt, points)
        self.emit(self.with_operands(stmt, points))

    # ---- operands --------------------------------------------------------------------------------
    def with_operands(self, stmt: Compute, domain: Layout | None) -> Compute:
        """Return a statement that reads only local memory, after emitting the communication for that."""
        halos: dict[str, list[Widths]] = {}
        fetched: dict[Any, Window] = {}

        def serve(load: Load | Gather) -> Expr:
            window = load.window
            layout = self.layouts[window.array]
            if layout is None and isinstance(load, Load) and follows_cyclic_axis(window, domain):
                return Load(self.fetch(window, domain, stmt.loc, fetched), load.dtype)
            if layout is None:
                return load
            if isinstance(load, Gather):
                self.add_note(f"{window.array} is read at places that depend on data: all of it", stmt.loc)
                whole = self.fetch(identity(self.arrays[window.array]), None, stmt.loc, fetched)
                return Gather(Window(whole.array, window.shape, ()), load.index, load.dtype)
            if domain is None:
                return Load(self.fetch(window, None, stmt.loc, fetched), load.dtype)
            window = name_single_points(window, layout, domain)
            widths = halo_widths(window, layout, domain)
            if isinstance(widths, str):
                self.add_note(f"{window.array} is brought where it is needed: {widths}", stmt.loc)
                return Load(self.fetch(window, domain, stmt.loc, fetched), load.dtype)
            if any(map(any, widths)):
                halos.setdefault(window.array, []).append(widths)
            return Load(window, load.dtype)

        body = map_loads(stmt.body, serve)
        init = None if stmt.init is None else map_loads(stmt.init, serve)
        for name, needs in halos.items():
            self.emit_halo(name, needs, stmt.loc)
        return replace(stmt, body=body, init=init)

    def emit_halo(self, name: str, needs: Sequence[Widths], loc: Any) -> None:
        """Emit the exchange of an array's halo in the widths that cover all of some reads."""
        widths = max_widths(*needs)
        corners = any(sum(map(any, one)) > 1 for one in needs)
        room = self.halo_rooms.get(name, widths)
        self.halo_rooms[name] = max_widths(room, widths)
        attrs = (("widths", widths), ("corners", corners))
        self.emit(Call("comm.halo", (identity(self.arrays[name]),), (), attrs, loc))

    def fetch(self, window: Window, domain: Layout | None, loc: Any, fetched: dict[Any, Window]) -> Window:
        """Return a window copied to an array that has each element on the rank of its point in a domain."""
        key = window, domain
        if key in fetched:
            return fetched[key]
        array, layout = self.arrays[window.array], self.layouts[window.array]
        source = array
        if layout is not None and not is_movable(window, layout):
            source = self.copy_in(array, without_cyclic(layout), loc)
        axes = [ix.axis for ix in window.index if ix.axis is not None]
        shape = tuple(window.shape[a] for a in axes)
        to: Layout | None = None
        if domain is not None:
            specs = [domain.axes[a] if a not in axes[:k] else Whole() for k, a in enumerate(axes)]
            to = canonical(Layout(shape, domain.grid, specs))
        place = iter(range(len(axes)))
        index = tuple(ix if ix.axis is None else replace(ix, axis=next(place)) for ix in window.index)
        read = Window(source.name, shape, index)
        copy = self.new_array(array.name, array.dtype, shape, to)
        apart = any(ix.axis is not None and ix.stride != 1 for ix in index)
        if apart and to is not None and any(isinstance(spec, Cyclic) for spec in to.axes):
            between = self.new_array(array.name, array.dtype, shape, without_cyclic(to))
            self.emit_redistribution(read, identity(between), loc)
            read = identity(between)
        self.emit_redistribution(read, identity(copy), loc)
        there = Window(copy.name, window.shape, tuple(Index(0, 1, a) for a in axes))
        fetched[key] = there
        return there
