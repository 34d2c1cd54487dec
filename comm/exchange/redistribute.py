"""Redistribution of an array from one layout to another: the messages of each rank, by formula.

Making a rank's plan visits only the ranks with which it exchanges elements, so that the time does not depend
on the number of other ranks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from dcarray.comm.layout.axes import Axis, BlockAxis, CyclicAxis, Run, WindowAxis, clip
from dcarray.comm.layout.axis_overlap import overlap, overlapping_range, peers
from dcarray.comm.layout.layouts import Layout, Whole
from dcarray.comm.transport.errors import LayoutError
from dcarray.comm.transport.protocol import Array
from dcarray.ir.nodes import Index

from .exchange_plan import Box, Exchange, Transfer

__all__ = ["Side", "move", "redistribute", "with_window_axes"]

# The parts of one axis at the other side that overlap this rank's part, with the shared points.
_Overlaps = list[tuple[int, tuple[Run, ...]]]


@dataclass(frozen=True)
class AxisWindow:
    """One axis of a moved window: which rank owns its points, and their indices in an array.

    `axis` says which part owns which points.  Point `t` has the index ``offset + stride * t`` along the
    array's axis `of`, which is distributed over the axis `grid` of the grid; both are None if the array lacks
    the axis.
    """

    axis: Axis
    of: int | None = None
    grid: int | None = None
    offset: int = 0
    stride: int = 1


class Side:
    """The source or target of a move: a window of an array, and the array's layout.

    Parameters
    ----------
    layout : Layout
        The layout of the array.
    index : sequence of Index
        For each axis of the array the indices of the points; each axis of the window at most once.
    shape : sequence of int
        The number of points along each axis of the window; 1 for an axis that no index uses.

    Raises
    ------
    LayoutError
        If only a part of a cyclic axis is moved.
    """

    def __init__(self, layout: Layout, index: Sequence[Index], shape: Sequence[int]) -> None:
        self.layout = layout
        along = [AxisWindow(BlockAxis(n, 1)) for n in shape]
        for k, (ix, spec, part) in enumerate(zip(index, layout.axes, layout.parts, strict=True)):
            assert ix.axis is not None
            n = shape[ix.axis]
            grid = None if isinstance(spec, Whole) else spec.grid_axis
            axis: Axis
            if part.parts == 1:
                axis = BlockAxis(n, 1)
            elif isinstance(part, CyclicAxis):
                if (ix.offset, n) != (0, part.extent) or (ix.stride != 1 and n > 1):
                    raise LayoutError(f"part of axis {k} is moved, which is dealt out in turn")
                axis = part
            elif (ix.offset, ix.stride, n) == (0, 1, part.extent):
                axis = part
            else:
                axis = WindowAxis(n, part, ix.offset, ix.stride)
            along[ix.axis] = AxisWindow(axis, k, grid, ix.offset, ix.stride)
        self.along = tuple(along)
        self.view = tuple(a.of for a in along)
        self._known: tuple[int, tuple[int, ...], list[int]] | None = None

    @classmethod
    def whole(cls, layout: Layout) -> Side:
        """Return the side that consists of a whole array."""
        return cls(layout, [Index(0, 1, k) for k in range(layout.ndim)], layout.shape)

    def part(self, along: AxisWindow, rank: int) -> int:
        """Return the part of an axis that a rank owns."""
        return 0 if along.of is None else self._of(rank)[0][along.of]

    def at(self, parts: Iterable[int], copy_coords: dict[int, int]) -> int:
        """Return the rank that owns parts of the axes, at given coordinates of the replicated grid axes."""
        coords = [copy_coords.get(g, 0) for g in range(self.layout.grid.ndim)]
        for along, part in zip(self.along, parts, strict=True):
            if along.grid is not None:
                coords[along.grid] = part
        return self.layout.grid.rank(coords)

    def boxes(self, rank: int, runs: Sequence[tuple[Run, ...]]) -> tuple[Box, ...]:
        """Return the boxes of a rank's memory that have the points `runs`, given for each axis."""
        local: list[list[Run]] = []
        for along, begin, wanted in zip(self.along, self._of(rank)[1], runs, strict=True):
            if along.of is None:
                local.append([Run(0, 1)])
            elif isinstance(along.axis, CyclicAxis):
                places = (along.axis.local_run(self.part(along, rank), run) for run in wanted)
                local.append([run._replace(start=run.start + begin) for run in places])
            else:
                local.append([_run_in_memory(run, begin, along.stride) for run in wanted])
        return tuple(product(*local))

    def _of(self, rank: int) -> tuple[tuple[int, ...], list[int]]:
        """Return the parts of the array's axes that a rank owns, and for each axis the index in its memory at
        which point 0 would be (it is negative in most cases).

        The last rank's result is kept, since calls for the same rank follow each other.
        """
        if self._known is None or self._known[0] != rank:
            place, begins = self.layout.part_indices(rank), []
            for along in self.along:
                begin = 0
                if along.of is not None:
                    part, c = self.layout.parts[along.of], place[along.of]
                    begin = self.layout.halo[along.of][0]
                    if not isinstance(along.axis, CyclicAxis):
                        begin += along.offset
                        if isinstance(part, BlockAxis) and part.parts > 1:
                            begin -= part.low(c)
                begins.append(begin)
            self._known = rank, place, begins
        return self._known[1:]


def with_window_axes(array: Array, view: Sequence[int | None]) -> Array:
    """Return a view of an array with the axes of a moved window; `view` is `Side.view`."""
    transposed = array.transpose([axis for axis in view if axis is not None])
    return transposed[(*(None if axis is None else slice(None) for axis in view), ...)]


def _run_in_memory(run: Run, begin: int, stride: int) -> Run:
    """Return the indices in memory of a run of points, given the index `begin` of point 0 and the stride."""
    start = begin + stride * run.start
    if stride == 1 or run.size == 1:
        return Run(start, run.length, run.step, run.repeats)
    if run.repeats == 1:
        return Run(start, 1, stride, run.length)
    raise LayoutError("points that are dealt out in turn are moved to places that lie apart")


@lru_cache(512)  # a program redistributes arrays repeatedly
def redistribute(source: Layout, target: Layout, rank: int) -> Exchange:
    """Return one rank's plan for changing an array's layout.

    If the source is replicated, a rank receives from the copy at its own coordinates, so that elements it
    owns are never sent to it.  Halos are neither read nor written.

    Parameters
    ----------
    source, target : Layout
        The layouts, of the same shape and over grids of the same number of ranks.
    rank : int
        The rank of which the plan is returned.

    Returns
    -------
    Exchange
        It reads an array of ``source.local_shape(rank)`` and writes one of ``target.local_shape(rank)``.

    Raises
    ------
    LayoutError
        If the layouts differ in shape or number of ranks.
    """
    if source.shape != target.shape:
        raise LayoutError(f"an array of shape {source.shape} cannot become one of shape {target.shape}")
    return move(Side.whole(source), Side.whole(target), rank)


def move(source: Side, target: Side, rank: int) -> Exchange:
    """Return the plan of one rank to copy a window of one array to a window of another.

    Returns
    -------
    Exchange
        The plan; its boxes have the axes of the window, to which `Side.view` brings those of the arrays.
    """
    if source.layout.grid.size != target.layout.grid.size:
        ranks = source.layout.grid.size, target.layout.grid.size
        raise LayoutError(f"from {ranks[0]} ranks to {ranks[1]}: both grids must have all")
    sends, receives = [], []
    local_copies: list[tuple[Box, Box]] = []
    for peer, runs in _receivers(source, target, rank):
        here = source.boxes(rank, runs)
        if peer == rank:
            local_copies = list(zip(here, target.boxes(rank, runs), strict=True))
        else:
            sends.append(Transfer(peer, here))
    for peer, runs in _senders(source, target, rank):
        if peer != rank:
            receives.append(Transfer(peer, target.boxes(rank, runs)))

    def turn(transfer: Transfer) -> int:  # the next rank first, so that not all send to rank 0 at once
        return (transfer.peer - rank) % source.layout.grid.size

    return Exchange(
        rank, tuple(sorted(sends, key=turn)), tuple(sorted(receives, key=turn)), tuple(local_copies)
    )


def _receivers(source: Side, target: Side, rank: int) -> Iterator[tuple[int, list[tuple[Run, ...]]]]:
    """Yield the ranks that receive elements from `rank`, each with the points that it receives, by axis."""
    grid, source_copies = source.layout.grid, source.layout.copy_axes
    target_grid, target_copies = target.layout.grid, target.layout.copy_axes
    same = grid == target_grid
    if not same and any(grid.shape[g] > 1 for g in source_copies):
        yield from _receivers_from_copies(source, target, rank)
        return
    coords = grid.coords(rank)
    axis_overlaps: list[_Overlaps] = []
    for a, b in zip(source.along, target.along, strict=True):
        part = source.part(a, rank)
        if same and b.grid is not None and b.grid in source_copies:
            # Ranks elsewhere along this grid axis receive from a copy there.
            axis_overlaps.append(_overlaps(a.axis, part, b.axis, [coords[b.grid]]))
        else:
            axis_overlaps.append(_overlaps(a.axis, part, b.axis, peers(a.axis, part, b.axis)))
    copies = [
        (coords[g],) if same and g in source_copies else range(target_grid.shape[g]) for g in target_copies
    ]
    for overlaps in product(*axis_overlaps):
        for where in product(*copies):
            peer = target.at((part for part, _ in overlaps), dict(zip(target_copies, where, strict=True)))
            yield peer, [runs for _, runs in overlaps]


def _receivers_from_copies(
    source: Side, target: Side, rank: int
) -> Iterator[tuple[int, list[tuple[Run, ...]]]]:
    """Yield the receivers like `_receivers`, for a replicated source and different grids.

    Of the ranks that need elements of this rank, they are those with its coordinates along the replicated
    grid axes.  Along the target's last grid axis only such ranks are visited.
    """
    target_grid, target_copies = target.layout.grid, target.layout.copy_axes
    line = max(g for g, n in enumerate(target_grid.shape) if n > 1)
    candidates, along = range(target_grid.shape[line]), None
    axis_overlaps: list[_Overlaps] = []
    for k, (a, b) in enumerate(zip(source.along, target.along, strict=True)):
        part = source.part(a, rank)
        if b.grid == line:
            candidates, along = overlapping_range(a.axis, part, b.axis), k
            axis_overlaps.append([(0, ())])
        else:
            axis_overlaps.append(_overlaps(a.axis, part, b.axis, peers(a.axis, part, b.axis)))
    copies = [(0,) if g == line else range(target_grid.shape[g]) for g in target_copies]
    for overlaps in product(*axis_overlaps):
        for where in product(*copies):
            first = target.at((part for part, _ in overlaps), dict(zip(target_copies, where, strict=True)))
            points = [runs for _, runs in overlaps]
            for place in _offsets_beside(source.layout, rank, first, candidates):
                if along is not None:
                    a, b = source.along[along], target.along[along]
                    points[along] = overlap(a.axis, source.part(a, rank), b.axis, place)
                if all(points):
                    yield first + place, list(points)


def _offsets_beside(layout: Layout, rank: int, first: int, candidates: range) -> Iterator[int]:
    """Yield the offsets from `first` of ranks with the same coordinates as `rank` along replicated grid
    axes."""
    grid, coords = layout.grid, layout.grid.coords(rank)
    g = max(layout.copy_axes, key=grid.shape.__getitem__)
    length = math.prod(grid.shape[g + 1 :])
    runs = clip(coords[g] * length - first, length, length * grid.shape[g], candidates.start, candidates.stop)
    for run in runs:
        for turn in range(run.repeats):
            for place in range(run.start + turn * run.step, run.start + turn * run.step + run.length):
                there = grid.coords(first + place)
                if all(there[other] == coords[other] for other in layout.copy_axes):
                    yield place


def _senders(source: Side, target: Side, rank: int) -> Iterator[tuple[int, list[tuple[Run, ...]]]]:
    """Yield the ranks that send elements to `rank`, each with the points that it sends, by axis."""
    coords = source.layout.grid.coords(rank)
    axis_overlaps = []
    for a, b in zip(source.along, target.along, strict=True):
        part = target.part(b, rank)
        axis_overlaps.append(_overlaps(b.axis, part, a.axis, peers(b.axis, part, a.axis)))
    for overlaps in product(*axis_overlaps):
        peer = source.at((part for part, _ in overlaps), {g: coords[g] for g in source.layout.copy_axes})
        yield peer, [runs for _, runs in overlaps]


def _overlaps(a: Axis, part: int, b: Axis, others: Iterator[int] | Sequence[int]) -> _Overlaps:
    overlaps = ((other, overlap(a, part, b, other)) for other in others)
    return [(other, runs) for other, runs in overlaps if runs]
