"""Layouts derived from other layouts (slices, without halo, other blocks), and comparisons of layouts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from dcarray.comm.transport.errors import LayoutError

from .axes import CyclicAxis
from .axis_overlap import overlap_size
from .grid import ProcessGrid, choose_grid
from .layouts import Block, Cut, Cyclic, Layout, Spec, Whole

__all__ = [
    "axis_interval", "even_blocks", "nothing_moves", "received_elements", "row_layout",
    "sample_ranks", "simplify", "with_summand_axes", "with_whole_axes", "without_cyclic",
]  # fmt: skip


def simplify(layout: Layout) -> Layout:
    """Return a layout without halo, in which axes over a grid axis of one rank are whole."""
    axes = [
        spec if isinstance(spec, Whole) or layout.grid.shape[spec.grid_axis] > 1 else Whole()
        for spec in layout.axes
    ]
    return Layout(layout.shape, layout.grid, axes)


def axis_interval(layout: Layout, axis: int, low: int, high: int, rank: int) -> tuple[Layout, slice]:
    """Return the layout of an array's indices ``[low, high)`` of an axis, and their slice in a rank's memory.

    The layout has no halo.  A cyclic axis can be cut only at multiples of its period.
    """
    spec, part, c = layout.axes[axis], layout.parts[axis], layout.part_indices(rank)[axis]
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
    interval = Layout(shape, layout.grid, axes)
    size = interval.parts[axis].size(c)
    return interval, slice(begin, begin + size) if size else slice(0, 0)


def with_summand_axes(layout: Layout, over: Sequence[int]) -> Layout:
    """Return the layout of an array that has, for each of the replicated grid axes `over`, one more leading
    axis: the parts of sums that ranks along that grid axis hold become its elements.
    """
    shape = [layout.grid.shape[g] for g in over]
    return Layout([*shape, *layout.shape], layout.grid, [*map(Block, over), *layout.axes])


def received_elements(source: Layout, target: Layout, rank: int) -> int:
    """Return the number of elements that a rank receives when an array changes its layout."""
    stay = 1
    for a, c, b, d in zip(
        source.parts, source.part_indices(rank), target.parts, target.part_indices(rank), strict=True
    ):
        stay *= overlap_size(a, c, b, d)
    return target.elements(rank) - stay


def sample_ranks(ranks: int) -> list[int]:
    """Return a few ranks for comparisons of layouts: the first, the last, and some on different grid
    lines."""
    return sorted({0, ranks * 5 // 13, ranks // 2, ranks * 8 // 13, ranks - 1})


def nothing_moves(source: Layout, target: Layout) -> bool:
    """Whether sample ranks hold in `source` all elements that they need in `target`."""
    if source == target:
        return True
    return not any(received_elements(source, target, rank) for rank in sample_ranks(source.grid.size))


def even_blocks(layout: Layout, shape: Sequence[int] | None = None) -> Layout:
    """Return a layout with even blocks over the same grid axes, without halo, and with another `shape` if
    given."""
    axes = [spec if isinstance(spec, Whole) else Block(spec.grid_axis) for spec in layout.axes]
    return Layout(layout.shape if shape is None else shape, layout.grid, axes)


def without_cyclic(layout: Layout) -> Layout:
    """Return a layout without halo, with even blocks in place of cyclic axes."""
    axes = [Block(spec.grid_axis) if isinstance(spec, Cyclic) else spec for spec in layout.axes]
    return Layout(layout.shape, layout.grid, axes)


def row_layout(shape: Sequence[int], ranks: int) -> Layout:
    """Return the layout with the first axis in even blocks over all ranks: each owns an interval in C
    order."""
    specs: list[Spec] = [Block(0), *[Whole()] * (len(shape) - 1)]
    return Layout(shape, ProcessGrid((ranks,)), specs[: len(shape)])


def with_whole_axes(layout: Layout, axes: Collection[int]) -> Layout:
    """Return a layout in which the given axes are whole, for algorithms that need complete lines.

    Grid axes that cut these cut other axes instead, so that elements move only within grid lines.  If there
    are not enough other axes that are long enough, a new grid of all ranks cuts the other axes.

    Raises
    ------
    LayoutError
        When there is no other axis.
    """
    specs: list[Spec] = [Whole() if a in axes else spec for a, spec in enumerate(without_cyclic(layout).axes)]
    lost = [spec.grid_axis for a, spec in enumerate(layout.axes) if a in axes and not isinstance(spec, Whole)]
    lost = [g for g in lost if layout.grid.shape[g] > 1]
    if not lost:
        return Layout(layout.shape, layout.grid, specs)
    others = [a for a in range(layout.ndim) if a not in axes]
    if not others:
        raise LayoutError(f"all axes of an array of shape {layout.shape} are to be whole")
    free = sorted((a for a in others if isinstance(specs[a], Whole)), key=lambda a: -layout.shape[a])
    lost.sort(key=lambda g: -layout.grid.shape[g])
    if len(free) >= len(lost) and all(
        layout.shape[a] >= layout.grid.shape[g] for a, g in zip(free, lost, strict=False)
    ):
        for a, g in zip(free, lost, strict=False):
            specs[a] = Block(g)
        return Layout(layout.shape, layout.grid, specs)
    grid = choose_grid([layout.shape[a] for a in others], layout.grid.size)
    return Layout(
        layout.shape, grid, [Block(others.index(a)) if a in others else Whole() for a in range(layout.ndim)]
    )
