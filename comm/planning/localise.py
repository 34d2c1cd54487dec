"""Localisation: from a region with layouts and communication to the steps of one rank, over its own
memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dcarray.comm.exchange.halo import halo_exchange
from dcarray.comm.exchange.redistribute import Side, move
from dcarray.comm.layout.axes import BlockAxis, CyclicAxis
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.layout.notation import Partial, read
from dcarray.comm.planning.analysis.halo_state import Halo, ValidHalos, Widths, boxes_around
from dcarray.comm.planning.analysis.iteration_domain import domain_of
from dcarray.comm.planning.analysis.normalise import kept_axes, start_values
from dcarray.comm.planning.passes.redundancy import ExchangeGroup
from dcarray.comm.planning.placement.draft import PlacedRegion
from dcarray.comm.planning.rank_program.steps import (
    ArrayExchange,
    Exchanges,
    Frame,
    Local,
    Memory,
    Program,
    Reduce,
    Step,
)
from dcarray.ir.analysis.effects import touched_arrays, writes
from dcarray.ir.nodes import Array, Call, Compute, Index, Load, Region, Stmt, Window
from dcarray.ir.renaming import remap_points, rewindow

__all__ = ["localise"]


def localise(placed: PlacedRegion, ranks: int, rank: int, valid: Mapping[str, ValidHalos]) -> Program:
    """Return the program of one rank for a placed region; `valid` holds the halos up to date at its end."""
    return _Localiser(placed, ranks, rank).program(valid)


class _Localiser:
    """The construction of one rank's program, step by step."""

    def __init__(self, placed: PlacedRegion, ranks: int, rank: int) -> None:
        self.placed, self.ranks, self.rank = placed, ranks, rank
        self.arrays = {a.name: a for a in placed.region.arrays}
        self.layouts: dict[str, Layout | None] = {}
        self.partial: dict[str, Partial | None] = {}
        self.memory: dict[str, Memory] = {}
        for array in placed.region.arrays:
            layout, partial = read(array.layout, array.shape)
            self.layouts[array.name], self.partial[array.name] = layout, partial
            shape = array.shape if layout is None else layout.local_shape(rank)
            said = placed.given.get(array.name, layout)  # as given: the same memory
            self.memory[array.name] = Memory(array.name, array.dtype, shape, said)
        self.steps: list[Step | list[Stmt]] = []
        #: The widths of the ghost zone in which the next statement is computed, too.
        self.beyond: Widths | None = None
        self.group: ExchangeGroup | None = None  # the exchanges of the last step, if others may join them

    def program(self, valid: Mapping[str, ValidHalos]) -> Program:
        for stmt in self.placed.region.body:
            self.add(stmt)
        return Program(
            rank=self.rank,
            size=self.ranks,
            steps=self.with_temporaries(),
            memory=self.memory,
            given={name: name for name in self.placed.given},
            after=self.placed.after,
            valid=valid,
            notes=self.placed.notes,
            region=self.placed.region,
        )

    def add(self, stmt: Stmt) -> None:
        if isinstance(stmt, Compute):
            self.add_local(self.compute(stmt))
            self.beyond = None
        elif not isinstance(stmt, Call):
            self.add_local(stmt)
        elif stmt.op == "comm.beyond":
            self.beyond = dict(stmt.attrs)["widths"]
        elif stmt.op == "comm.halo":
            self.add_exchange(stmt, self.halo(stmt))
        elif stmt.op == "comm.frame":
            self.group = None
            self.steps.append(self.frame(stmt))
        elif stmt.op == "comm.redistribute":
            (source,), (target,) = stmt.reads, stmt.writes
            if self.layouts[source.array] is None and self.layouts[target.array] is None:
                self.add_local(Compute(target, Load(source, self.arrays[source.array].dtype), loc=stmt.loc))
            else:
                self.add_exchange(stmt, self.redistribution(stmt))
        elif stmt.op == "comm.reduce":
            self.add_reduction(stmt)
        elif stmt.writes and stmt.writes[0].array in self.placed.forms:
            self.add_library_call(stmt)
        else:
            self.add_local(stmt)

    # ---- steps -----------------------------------------------------------------------------------
    def add_local(self, stmt: Stmt | None) -> None:
        """Add a statement on local arrays to the last step, or to a new one if the last is communication.

        None (this rank has no points) starts a local step, too, so that all ranks group exchanges alike.
        """
        if not (self.steps and isinstance(self.steps[-1], list)):
            self.steps.append([])
        self.group = None
        group = self.steps[-1]
        assert isinstance(group, list)
        if stmt is not None:
            group.append(stmt)

    def add_exchange(self, call: Call, item: ArrayExchange) -> None:
        """Add an exchange to the last step if that is an independent exchange, or else to a new step."""
        last = self.steps[-1] if self.steps else None
        if self.group is not None and isinstance(last, Exchanges) and self.group.try_add(call):
            self.steps[-1] = Exchanges((*last.items, item))
            return
        self.group = ExchangeGroup()
        self.group.try_add(call)
        self.steps.append(Exchanges((item,)))

    def with_temporaries(self) -> tuple[Step, ...]:
        """Return the steps, with each array that only one step uses made a temporary of that step."""
        uses: dict[str, int] = {}
        for step in self.steps:
            names = _names(step) if isinstance(step, list) else {*step.reads, *step.writes}
            for name in names:
                uses[name] = uses.get(name, 0) + 1
        kept = {*self.placed.given, *self.placed.after.values()}
        return tuple(
            self.local_region(step, {n for n in _names(step) if uses[n] == 1 and n not in kept})
            if isinstance(step, list)
            else step
            for step in self.steps
            if step
        )

    def local_region(self, body: Sequence[Stmt], own: set[str]) -> Local:
        written = {w.array for stmt in body for w in writes(stmt)}
        names = _names(body)
        bases = {self.arrays[n].base for n in names}
        while more := {b for b in bases if b is not None and b not in names}:
            names |= more
            bases = {self.arrays[n].base for n in more}
        arrays = []
        for name, array in self.arrays.items():
            if name in names:
                role: Any = "temp" if name in own else "inout" if name in written else "in"
                arrays.append(
                    Array(name, array.dtype, self.memory[name].shape, role, array.strides, base=array.base)
                )
        return Local(Region((), tuple(arrays), tuple(body)))

    # ---- communication ---------------------------------------------------------------------------
    def halo(self, call: Call) -> ArrayExchange:
        name, halo = call.reads[0].array, Halo.of_call(call)
        layout = self.layouts[name]
        assert layout is not None
        listing = partial(halo_exchange, layout, self.rank, halo.widths, corners=halo.corners, rim=halo.rim)
        return ArrayExchange(listing, name, name, self.arrays[name].dtype.itemsize)

    def frame(self, call: Call) -> Frame:
        name, hole = call.reads[0].array, dict(call.attrs)["hole"]
        layout, shape = self.layouts[name], self.memory[name].shape
        if layout is not None and any(isinstance(part, CyclicAxis) for part in layout.parts):
            hole = None
        if hole is not None and layout is not None:
            places = zip(hole, layout.parts, layout.part_indices(self.rank), layout.halo, strict=True)
            firsts = [
                (low, high, before - (part.low(c) if isinstance(part, BlockAxis) else 0))
                for (low, high), part, c, (before, _) in places
            ]
            hole = [(low + moved, high + moved) for low, high, moved in firsts]
        if hole is None:
            boxes = [tuple((0, n) for n in shape)]
        else:
            inside = [(min(max(0, a), n), min(max(0, b), n)) for (a, b), n in zip(hole, shape, strict=True)]
            boxes = boxes_around(shape, tuple(inside))
        target = call.writes[0].array
        self.memory[target] = replace(self.memory[target], layout=self.memory[name].layout)
        return Frame(name, target, tuple(boxes))

    def redistribution(self, call: Call) -> ArrayExchange:
        """Return the exchange that copies one window to another, with an axis for each fixed index of
        both."""
        (read_,), (written,) = call.reads, call.writes
        shape = list(read_.shape)
        grid = next(lay.grid for w in (read_, written) if (lay := self.layouts[w.array]) is not None)
        sides = []
        for window in (read_, written):
            index = []
            for ix in window.index:
                if ix.axis is None:
                    index.append(Index(ix.offset, 1, len(shape)))
                    shape.append(1)
                else:
                    index.append(ix)
            layout = self.layouts[window.array] or Layout.copies(self.arrays[window.array].shape, grid)
            sides.append((layout, index))
        source, target = (Side(layout, index, shape) for layout, index in sides)
        listing = partial(move, source, target, self.rank)
        itemsize = self.arrays[read_.array].dtype.itemsize
        return ArrayExchange(listing, read_.array, written.array, itemsize, source.view, target.view)

    def add_reduction(self, call: Call) -> None:
        source, target = call.reads[0].array, call.writes[0].array
        layout, partial = self.layouts[source], self.partial[source]
        assert layout is not None and partial is not None
        self.group = None
        keep = tuple(g in partial.over for g in range(layout.grid.ndim))
        self.steps.append(
            Reduce(self.memory[source], self.memory[target], partial.op, layout.grid, keep, self.rank)
        )

    def add_library_call(self, call: Call) -> None:
        def make(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Memory:
            k = 1
            while f"w_{k}" in self.memory:
                k += 1
            self.memory[f"w_{k}"] = Memory(f"w_{k}", dtype, shape)
            return self.memory[f"w_{k}"]

        self.group = None
        form = self.placed.forms[call.writes[0].array]
        reads, results = ([self.memory[w.array] for w in windows] for windows in (call.reads, call.writes))
        self.steps.extend(form.steps(self.rank, tuple(reads), tuple(results), make))

    # ---- statements ------------------------------------------------------------------------------
    def compute(self, stmt: Compute) -> Compute | None:
        """Return a statement restricted to this rank's points, over its own memory; None if it has none."""
        layout = self.layouts[stmt.target.array]
        domain = domain_of(stmt.target, layout, self.partial[stmt.target.array])
        if domain is None:
            return stmt
        begin, shape = [], []
        for part, c in zip(domain.parts, domain.part_indices(self.rank), strict=True):
            begin.append(part.low(c) if isinstance(part, BlockAxis) else 0)
            shape.append(part.size(c))
        if self.beyond is not None:
            assert layout is not None
            places = zip(
                stmt.target.index, layout.parts, layout.part_indices(self.rank), self.beyond, strict=True
            )
            for ix, part, c, (before, after) in places:
                if ix.axis is not None and isinstance(part, BlockAxis) and part.parts > 1:
                    low, high = part.low(c) - before - ix.offset, part.high(c) + after - ix.offset
                    begin[ix.axis] = min(max(0, low), domain.shape[ix.axis])
                    shape[ix.axis] = max(0, min(high, domain.shape[ix.axis]) - begin[ix.axis])
        kept = kept_axes(stmt)
        if any(shape[a] == 0 for a in kept):
            return None
        if 0 in shape:  # a reduction over no values
            first = start_values(stmt)
            if first is None:
                return None
            stmt, begin, shape = first, [begin[a] for a in kept], [shape[a] for a in kept]
        amap = tuple(Index(low, 1, a) for a, low in enumerate(begin))
        local = rewindow(remap_points(stmt, amap, tuple(shape)), self.to_local)
        assert isinstance(local, Compute)
        return local

    def to_local(self, window: Window) -> Window:
        """Return a window with indices of this rank's memory instead of global indices."""
        layout = self.layouts[window.array]
        if layout is None or not window.index:
            return window
        index = []
        places = zip(window.index, layout.parts, layout.part_indices(self.rank), layout.halo, strict=True)
        for ix, part, c, (before, _) in places:
            first = part.low(c) if isinstance(part, BlockAxis) else 0
            index.append(replace(ix, offset=ix.offset - first + before))
        return replace(window, index=tuple(index))


def _names(body: Sequence[Stmt]) -> set[str]:
    return {name for stmt in body for name in touched_arrays(stmt)}
