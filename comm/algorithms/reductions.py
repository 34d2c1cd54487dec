"""Reductions of distributed arrays: sums, products, extrema and their indices, along some axes or all.

Each rank reduces its own part, then the ranks along a grid axis combine theirs in the order of ranks,
pairwise, so that the result is the same every time and on every rank, and its error grows with the logarithm
of their number, as that of NumPy's pairwise sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import without_cyclic
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Block, Layout, Spec, Whole
from dcarray.comm.transport.protocol import Array, Communicator
from dcarray.comm.transport.sparse_alltoall import allgather

from .axis_reductions import combine_along_line, grid_line

__all__ = ["arg_extreme", "mean", "normalised_axes", "reduction", "sum_over_ranks", "without_axes"]

REPLICATE_BELOW = 1 << 14  # bytes up to which every rank gets the whole result instead of a block of it


def normalised_axes(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Return axes as non-negative numbers in ascending order; None means all."""
    if axis is None:
        return tuple(range(ndim))
    given = np.lib.array_utils.normalize_axis_tuple(axis, ndim, allow_duplicate=False)
    return tuple(sorted(given))


def reduction(
    x: DistArray,
    ufunc: np.ufunc,
    axis: int | Sequence[int] | None = None,
    dtype: Any = None,
    keepdims: bool = False,
) -> DistArray:
    """Reduce an array by a ufunc, like ``ufunc.reduce``.

    Parameters
    ----------
    x : DistArray
        The array.
    ufunc : numpy.ufunc
        Associative and commutative: ``numpy.add``, ``maximum``, ``logical_and``, ...
    axis : int, sequence of int or None
        The reduced axes; by default all.
    dtype : dtype, optional
        As for NumPy: of the result and of the computation.
    keepdims : bool
        Whether reduced axes stay, of length one.

    Returns
    -------
    DistArray
        Distributed as `x` along the other axes.  Where a reduced axis was cut, a large result is distributed
        over the same ranks along another axis, and a small one is replicated on them.

    Raises
    ------
    AxisError, ValueError, TypeError
        As NumPy's, on all ranks.
    """
    axes = normalised_axes(axis, x.ndim)
    empty: Array = np.empty([0 if a in axes else 1 for a in range(x.ndim)], x.dtype)
    if any(x.shape[a] == 0 for a in axes):
        ufunc.reduce(empty, axis=axes, dtype=dtype)  # NumPy's error where there is no identity
    result = ufunc.reduce(np.empty([1] * x.ndim, x.dtype), axis=axes, dtype=dtype)
    kind = np.asarray(result).dtype
    # NumPy adds half precision up as single precision, and rounds once.
    sum_dtype = np.dtype(np.float32) if kind == np.float16 and ufunc in (np.add, np.multiply) else dtype

    def partial(elements: Array) -> list[Array]:
        if any(elements.shape[a] == 0 != x.shape[a] for a in axes):
            zeros = np.zeros([1 if a in axes else n for a, n in enumerate(elements.shape)], sum_dtype or kind)
            return [zeros.astype(kind if sum_dtype is dtype else sum_dtype)]
        return [np.asarray(ufunc.reduce(elements, axis=axes, dtype=sum_dtype, keepdims=True))]

    layout, (values,) = _reduce_along(x, axes, partial, lambda stacks: [_pairwise(ufunc, stacks[0])])
    return without_axes(DistArray(x.comm, layout, values.astype(kind, copy=False)), axes, keepdims)


def sum_over_ranks(comm: Communicator, values: Array) -> DistArray:
    """Return the sum of arrays of one shape and dtype, of which each rank has one."""
    layout = Layout(
        (comm.size, *values.shape), ProcessGrid((comm.size,)), [Block(0), *[Whole()] * values.ndim]
    )
    return reduction(DistArray(comm, layout, values[None]), np.add, 0, values.dtype)


def mean(
    x: DistArray, axis: int | Sequence[int] | None = None, dtype: Any = None, keepdims: bool = False
) -> DistArray:
    """Return the mean, like ``numpy.mean``; parameters and result are those of `reduction`."""
    axes = normalised_axes(axis, x.ndim)
    count = math.prod(x.shape[a] for a in axes)
    kind = np.dtype(dtype) if dtype is not None else np.mean(np.ones(1, x.dtype)).dtype
    sum_dtype = np.dtype(np.float32) if kind == np.float16 else kind
    total = reduction(x, np.add, axes, sum_dtype, keepdims)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.true_divide(total.block, count)
    return DistArray(x.comm, total.layout, np.asarray(values).astype(kind, copy=False))


def arg_extreme(x: DistArray, largest: bool, axis: int | None = None, keepdims: bool = False) -> DistArray:
    """Return the index of the largest or smallest element, like ``numpy.argmax`` and ``argmin``.

    Of equal ones the first, and the first NaN or NaT before all else.

    Parameters
    ----------
    x : DistArray
        The array.
    largest : bool
        Whether to find the largest rather than the smallest.
    axis : int or None
        The axis; None for the position in C order among all elements.
    keepdims : bool
        Whether the axis stays, of length one.

    Returns
    -------
    DistArray
        Of dtype intp, distributed as by `reduction`.

    Raises
    ------
    ValueError
        When there is no element, as NumPy's.
    """
    find: Callable[..., Any] = np.argmax if largest else np.argmin
    if axis is None:
        return without_axes(_flat_arg_extreme(x, find), tuple(range(x.ndim)), keepdims)
    (a,) = normalised_axes(axis, x.ndim)
    if not x.shape[a]:
        find(np.empty(x.shape, x.dtype), axis=a)  # NumPy's error
    aligned = x.redistributed(
        without_cyclic(x.layout)
    )  # ascending along the line, so that the first rank's is the first
    part = aligned.layout.parts[a]
    start = part.to_global(aligned.layout.part_indices(x.comm.rank)[a], 0)

    def partial(elements: Array) -> list[Array]:
        if not elements.shape[a]:
            shape = [1 if b == a else n for b, n in enumerate(elements.shape)]
            return [np.zeros(shape, x.dtype), np.zeros(shape, np.intp)]
        indices = find(elements, axis=a, keepdims=True)
        return [np.take_along_axis(elements, indices, a), indices + start]

    def combine(stacks: list[Array]) -> list[Array]:
        values, indices = stacks
        best = find(values, axis=0)[None]
        return [np.take_along_axis(values, best, 0)[0], np.take_along_axis(indices, best, 0)[0]]

    layout, (_, indices) = _reduce_along(aligned, (a,), partial, combine)
    return without_axes(DistArray(x.comm, layout, indices), (a,), keepdims)


def _flat_arg_extreme(x: DistArray, find: Callable[..., Any]) -> DistArray:
    size = math.prod(x.shape)
    if not size:
        find(np.empty(0, x.dtype))  # NumPy's error
    elements, index, value = x.local, -1, np.zeros((), x.dtype)
    if elements.size:
        where = np.unravel_index(int(find(elements)), elements.shape)
        value = np.asarray(elements[where])
        inside = [int(i) + before for i, (before, _) in zip(where, x.layout.halo, strict=True)]
        index = int(np.ravel_multi_index(x.layout.to_global(x.comm.rank, inside), x.shape)) if x.ndim else 0
    values, indices = allgather(x.comm, value), allgather(x.comm, np.int64(index))
    order = np.argsort(indices, kind="stable")
    order = order[indices[order] >= 0]
    best = np.intp(indices[order[find(values[order])]])
    layout = Layout.copies((1,) * x.ndim, x.layout.grid)
    return DistArray(x.comm, layout, np.full((1,) * x.ndim, best))


# ---- along the axes of the grid ----------------------------------------------------------------------
def _reduce_along(
    x: DistArray,
    axes: tuple[int, ...],
    partial: Callable[[Array], list[Array]],
    combine: Callable[[list[Array]], list[Array]],
) -> tuple[Layout, list[Array]]:
    """Reduce this rank's part, and combine the results along each grid axis that cuts a reduced axis."""
    partials = partial(x.local)
    specs: list[Spec] = [Whole() if a in axes else spec for a, spec in enumerate(x.layout.axes)]
    shape = [1 if a in axes else n for a, n in enumerate(x.shape)]
    for a in axes:
        spec, part = x.layout.axes[a], x.layout.parts[a]
        if isinstance(spec, Whole) or part.parts == 1:
            continue
        takes_part = [part.size(k) > 0 or not x.shape[a] for k in range(part.parts)]
        distributed = (
            _distributed_axis(shape, specs, axes, part.parts) if _is_large(partials, shape, x) else None
        )
        ranks = grid_line(x.comm, x.layout.grid, spec.grid_axis)
        partials = combine_along_line(ranks, partials, takes_part, distributed, combine)
        if distributed is not None:
            specs[distributed] = Block(spec.grid_axis)
    return Layout(shape, x.layout.grid, specs), partials


def _is_large(partials: Sequence[Array], shape: Sequence[int], x: DistArray) -> bool:
    """Whether a result is worth distributing; the same answer on all ranks."""
    return math.prod(shape) // x.layout.grid.size * partials[0].itemsize > REPLICATE_BELOW


def _distributed_axis(
    shape: Sequence[int], specs: Sequence[Spec], axes: tuple[int, ...], parts: int
) -> int | None:
    """Return the axis along which a result is distributed: the longest whole one that is long enough."""
    free = [a for a, spec in enumerate(specs) if isinstance(spec, Whole) and a not in axes]
    found = max(free, key=lambda a: shape[a], default=None)
    return found if found is not None and shape[found] >= parts else None


def _pairwise(ufunc: np.ufunc, stack: Array) -> Array:
    """Return the parts combined pairwise, in a fixed order."""
    while len(stack) > 1:
        even = len(stack) // 2 * 2
        paired = ufunc(stack[0:even:2], stack[1:even:2])
        stack = np.concatenate([paired, stack[even:]]) if even < len(stack) else paired
    found: Array = stack[0]
    return found


def without_axes(x: DistArray, axes: tuple[int, ...], keepdims: bool) -> DistArray:
    """Return the array without its reduced axes of length one, unless `keepdims`."""
    if keepdims:
        return x
    left = [a for a in range(x.ndim) if a not in axes]
    layout = Layout([x.shape[a] for a in left], x.layout.grid, [x.layout.axes[a] for a in left])
    return DistArray(x.comm, layout, x.block.reshape(layout.local_shape(x.comm.rank)))
