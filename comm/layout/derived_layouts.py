"""Layouts of arrays seen differently: axes in another order, a part of an axis, no halo, summands beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dcarray.comm.transport.errors import LayoutError

from .axes import CyclicAxis
from .axis_overlap import met
from .layouts import Block, Cut, Layout, Spec, Whole

__all__ = ["alike", "bare", "moved", "permuted", "portion", "some", "summands"]


def bare(layout: Layout) -> Layout:
    """A layout without halo; axes that one rank has all of, because the grid is one rank wide, are whole."""
    axes = [
        spec if isinstance(spec, Whole) or layout.grid.shape[spec.grid_axis] > 1 else Whole()
        for spec in layout.axes
    ]
    return Layout(layout.shape, layout.grid, axes)


def permuted(layout: Layout, axes: Sequence[int]) -> Layout:
    """The layout of ``array.transpose(axes)``, of which each rank has its memory transposed."""
    if sorted(axes) != list(range(layout.ndim)):
        raise LayoutError(f"{tuple(axes)} is no order of the axes of an array of shape {layout.shape}")
    return Layout(
        [layout.shape[a] for a in axes],
        layout.grid,
        [layout.axes[a] for a in axes],
        [layout.halo[a] for a in axes],
    )


def portion(layout: Layout, axis: int, low: int, high: int, rank: int) -> tuple[Layout, slice]:
    """The indices ``[low, high)`` of an axis: their layout, and where along it a rank's memory has them.

    The layout has no halo.  An axis that is dealt out in turn can be cut only where a round of turns begins.
    """
    spec, part, c = layout.axes[axis], layout.parts[axis], layout.place(rank)[axis]
    cut: Spec
    if isinstance(part, CyclicAxis):
        if low % part.period:
            raise LayoutError(f"an axis dealt out in rounds of {part.period} is not cut at {low}")
        begin, cut = low // part.period * part.block, spec
    elif isinstance(spec, Block):
        of = spec.sizes if isinstance(spec.sizes, Cut) else Cut(part.extent, 0, 1, spec.sizes)
        begin = max(low - part.low(c), 0)
        cut = Block(spec.grid_axis, replace(of, offset=of.offset + of.stride * low))
    else:
        begin, cut = low, Whole()
    shape, axes = list(layout.shape), list(layout.axes)
    shape[axis], axes[axis] = high - low, cut
    found = Layout(shape, layout.grid, axes)
    size = found.parts[axis].size(c)
    return found, slice(begin, begin + size) if size else slice(0, 0)


def summands(layout: Layout, over: Sequence[int]) -> Layout:
    """The layout of what ranks have along some spare axes of the grid, taken for parts instead of copies.

    The array gets an axis before its own for each of these grid axes.
    """
    shape = [layout.grid.shape[g] for g in over]
    return Layout([*shape, *layout.shape], layout.grid, [*map(Block, over), *layout.axes])


def moved(source: Layout, target: Layout, rank: int) -> int:
    """The elements that a rank receives when an array goes from one layout to another."""
    stay = 1
    for a, c, b, d in zip(source.parts, source.place(rank), target.parts, target.place(rank), strict=True):
        stay *= met(a, c, b, d)
    return target.elements(rank) - stay


def some(ranks: int) -> list[int]:
    """A few ranks by whom layouts are judged instead of by all: both ends, and some not on one line."""
    return sorted({0, ranks * 5 // 13, ranks // 2, ranks * 8 // 13, ranks - 1})


def alike(source: Layout, target: Layout) -> bool:
    """Do some ranks have all in `source` that they are to have in `target`?"""
    if source == target:
        return True
    return not any(moved(source, target, rank) for rank in some(source.grid.size))
