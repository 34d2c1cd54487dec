"""Iteration domains: the layout over ranks of a statement's points, and the halo widths that its reads need.

The points (loop iterations) of a statement are distributed like an array, by a `Layout` of that shape.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from dcarray.comm.layout.axes import Axis, BlockAxis, CyclicAxis, WindowAxis
from dcarray.comm.layout.layouts import Block, Cut, Cyclic, Layout, Spec, Whole
from dcarray.comm.layout.notation import Partial, canonical
from dcarray.ir.nodes import Compute, Index, Load, Window
from dcarray.ir.windows import loads

__all__ = [
    "canonical_without_halo", "covers", "domain_of", "follows_cyclic_axis", "halo_widths", "is_movable",
    "layout_from_domain", "layout_of_points", "preferred_domain",
]  # fmt: skip

# A halo wider than WIDE is exchanged if it has at most TIMES as many elements as a rank reads: it may
# serve several statements, each of which would otherwise need a redistribution.
WIDE, TIMES = 64, 8


def spec_of_points(spec: Spec, part: Axis, ix: Index, length: int) -> Spec | None:
    """Return the distribution of points so that each is on the rank of its element; None if no `Spec` is.

    Parameters
    ----------
    spec, part
        The distribution of the array's axis.
    ix : Index
        The affine map from points to elements of the axis.
    length : int
        The number of points.
    """
    if isinstance(spec, Whole) or part.parts == 1:
        return Whole()
    if (ix.offset, length) == (0, part.extent) and (ix.stride == 1 or length == 1):
        return spec
    if isinstance(spec, Cyclic) or ix.stride < 0:
        return None
    assert isinstance(part, BlockAxis)
    base, offset, stride = _base_axis(part)
    return Block(
        spec.grid_axis, Cut(base.extent, offset + stride * ix.offset, stride * ix.stride, base.sizes)
    )


def spec_of_array(spec: Spec, part: Axis, ix: Index, extent: int) -> Spec:
    """Return the distribution of an axis of a new array that puts each element on the rank of its point.

    The converse of `spec_of_points`; equal blocks where no distribution is exactly that.
    """
    if isinstance(spec, Whole):
        return spec
    if (ix.offset, ix.stride, part.extent) == (0, 1, extent):
        return spec
    if isinstance(spec, Cyclic):
        return Block(spec.grid_axis)
    assert isinstance(part, BlockAxis)
    base, offset, stride = _base_axis(part)
    if stride % ix.stride or ix.stride < 0:
        return Block(spec.grid_axis)
    stride //= ix.stride
    return Block(spec.grid_axis, Cut(base.extent, offset - stride * ix.offset, stride, base.sizes))


def _base_axis(part: BlockAxis) -> tuple[BlockAxis, int, int]:
    """Return the axis that a block axis is aligned to, with offset and stride; else the axis itself, 0, 1."""
    if isinstance(part, WindowAxis):
        return part.base, part.offset, part.stride
    return part, 0, 1


def layout_of_points(window: Window, layout: Layout) -> Layout | None:
    """Return the layout of points so that each is where its element of a window is; None if there is none."""
    specs: list[Spec] = [Whole()] * len(window.shape)
    for ix, spec, part in zip(window.index, layout.axes, layout.parts, strict=True):
        if isinstance(spec, Whole) or part.parts == 1:
            continue
        if ix.axis is None or not isinstance(specs[ix.axis], Whole):
            return None
        cut = spec_of_points(spec, part, ix, window.shape[ix.axis])
        if cut is None:
            return None
        specs[ix.axis] = cut
    return Layout(window.shape, layout.grid, specs)


def domain_of(target: Window, layout: Layout | None, partial: Partial | None) -> Layout | None:
    """Return the layout of a statement's points, given its target's layout; None: all points on every
    rank."""
    if layout is None:
        return None
    domain = layout_of_points(target, layout)
    assert domain is not None
    if partial is None:
        return domain
    specs = list(domain.axes)
    for axis, spec in partial.along:
        if axis >= 0:
            specs[axis] = spec
    return Layout(domain.shape, domain.grid, specs)


def halo_widths(window: Window, layout: Layout, domain: Layout) -> tuple[tuple[int, int], ...] | str:
    """Return the halo widths through which the points of a domain can read a window of an array.

    Returns
    -------
    tuple of (int, int), or str
        The widths for each axis of the array; or, if no halo is enough, the reason in words.
    """
    if layout.grid != domain.grid and any(part.parts > 1 for part in layout.parts):
        return "the array lies over another grid of ranks"
    widths: list[tuple[int, int]] = []
    for ix, spec, part in zip(window.index, layout.axes, layout.parts, strict=True):
        if isinstance(spec, Whole) or part.parts == 1:
            if ix.axis is not None and isinstance(domain.parts[ix.axis], CyclicAxis):
                return "an axis that every rank has all of meets one that is dealt out in turn"
            widths.append((0, 0))
            continue
        if ix.axis is None:
            return "one place is read of an axis that is dealt out"
        other, points_axis = domain.axes[ix.axis], domain.parts[ix.axis]
        if isinstance(other, Whole) or other.grid_axis != spec.grid_axis:
            return "axes meet that are dealt out over different axes of the grid"
        if isinstance(part, CyclicAxis) or isinstance(points_axis, CyclicAxis):
            if part != points_axis or (ix.offset, ix.stride) != (0, 1):
                return "axes meet that are dealt out differently"
            widths.append((0, 0))
            continue
        width = _axis_halo(points_axis, part, ix.offset, ix.stride)
        if max(width) > part.smallest():
            return f"a halo of {max(width)} elements would be wider than a block of {part.smallest()}"
        if max(width) > WIDE:  # perhaps a short slice of a long array, far from its points
            read = abs(ix.stride) * _largest_part(points_axis)
            if max(width) > TIMES * read:
                return f"a halo of {max(width)} elements would be wide where {read} are read"
        widths.append(width)
    return tuple(widths)


@lru_cache(maxsize=4096)
def _axis_halo(points_axis: BlockAxis, part: BlockAxis, offset: int, stride: int) -> tuple[int, int]:
    """Return the halo widths (before, after) of an array axis so that each rank's points read local
    memory."""
    (a, first, pace), (b, begin, step) = _base_axis(points_axis), _base_axis(part)
    if a == b and pace == step * stride:
        shift = begin + step * offset - first
        return -(min(0, shift) // step), -(-max(0, shift) // step)
    before = after = 0
    for c in _decisive_parts(points_axis, points_axis.size_changes() | part.size_changes()):
        if points_axis.low(c) >= points_axis.high(c):
            continue
        ends = offset + stride * points_axis.low(c), offset + stride * (points_axis.high(c) - 1)
        before = max(before, part.low(c) - min(ends))
        after = max(after, max(ends) + 1 - part.high(c))
    return before, after


def _decisive_parts(points_axis: BlockAxis, bends: Iterable[int]) -> list[int]:
    """Return parts that include the one with the widest halo: widths are linear between changes of size."""
    near = {c + d for c in {0, points_axis.parts - 1, *bends} for d in (-1, 0, 1)}
    return [c for c in near if 0 <= c < points_axis.parts]


@lru_cache(maxsize=4096)
def _largest_part(points_axis: BlockAxis) -> int:
    """Return the number of points in the largest part of an axis."""
    return max(
        points_axis.high(c) - points_axis.low(c)
        for c in _decisive_parts(points_axis, points_axis.size_changes())
    )


def _domain_from(window: Window, layout: Layout) -> Layout | None:
    """Return the layout of points that puts them, where possible, with their elements of a window, or None.

    None: no axis is distributed.
    """
    specs: list[Spec] = [Whole()] * len(window.shape)
    for ix, spec, part in zip(window.index, layout.axes, layout.parts, strict=True):
        if isinstance(spec, Whole) or part.parts == 1 or ix.axis is None:
            continue
        if isinstance(specs[ix.axis], Whole) and window.shape[ix.axis] > 1:
            specs[ix.axis] = spec_of_points(spec, part, ix, window.shape[ix.axis]) or Block(spec.grid_axis)
    domain = Layout(window.shape, layout.grid, specs)
    return None if canonical(domain) is None else domain


def preferred_domain(stmt: Compute, layouts: Mapping[str, Layout | None]) -> Layout | None:
    """Return the layout that puts a statement's points with the elements that they read; None: on all ranks.

    If the arrays read suggest different layouts, the one over most ranks is returned.
    """
    choices: list[tuple[int, int, Layout]] = []
    for load in loads(stmt.body):
        layout = layouts[load.window.array]
        if layout is None or not isinstance(load, Load):
            continue
        domain = _domain_from(load.window, layout)
        if domain is not None:
            share = math.prod(part.parts for part in domain.parts)
            choices.append((share, math.prod(layout.shape), domain))
    return max(choices, key=lambda one: one[:2])[2] if choices else None


def layout_from_domain(target: Window, domain: Layout, shape: Sequence[int]) -> Layout:
    """Return the layout of a new array that puts each element on the rank of the point that writes it."""
    specs: list[Spec] = []
    used: set[int | None] = {None}
    for ix, extent in zip(target.index, shape, strict=True):
        if ix.axis is None or ix.axis in used:
            specs.append(Whole())
        else:
            specs.append(spec_of_array(domain.axes[ix.axis], domain.parts[ix.axis], ix, extent))
        used.add(ix.axis)
    return Layout(shape, domain.grid, specs)


def canonical_without_halo(layout: Layout | None) -> Layout | None:
    return None if layout is None else canonical(Layout(layout.shape, layout.grid, layout.axes))


def covers(window: Window, shape: Sequence[int]) -> bool:
    """Whether a window covers all elements of an array, with the array's axes in any order."""
    axes = [ix.axis for ix in window.index if ix.axis is not None]
    return len(set(axes)) == len(axes) and all(
        n == 1 if ix.axis is None else (ix.offset, ix.stride, window.shape[ix.axis]) == (0, 1, n)
        for ix, n in zip(window.index, shape, strict=True)
    )


def is_movable(window: Window, layout: Layout) -> bool:
    """Whether a window covers all of each cyclic axis of its array."""
    return all(
        not isinstance(part, CyclicAxis)
        or part.parts == 1
        or (ix.axis is not None and (ix.offset, ix.stride, window.shape[ix.axis]) == (0, 1, part.extent))
        for ix, part in zip(window.index, layout.parts, strict=True)
    )


def follows_cyclic_axis(window: Window, domain: Layout | None) -> bool:
    """Whether the element of a window changes with the point along an axis with cyclic distribution."""
    if domain is None:
        return False
    axes = {ix.axis for ix in window.index}
    return any(
        isinstance(part, CyclicAxis) and part.parts > 1 and a in axes for a, part in enumerate(domain.parts)
    )
