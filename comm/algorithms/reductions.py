"""Reductions of distributed arrays along some axes or all: sums, products, extrema.

Each rank reduces its own part; then the results of the ranks along a grid axis are combined pairwise in the
order of ranks.  So the result is the same every time and on every rank, and its error grows with the
logarithm of the number of ranks, like that of NumPy's pairwise sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Block, Layout, Spec, Whole
from dcarray.comm.transport.protocol import Array, Communicator

from .axis_reductions import combine_along_line, grid_line

__all__ = ["normalised_axes", "reduction", "sum_over_ranks", "without_axes"]

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
    """Return an array reduced by a ufunc, like ``ufunc.reduce``.

    Parameters
    ----------
    x : DistArray
        The array.
    ufunc : numpy.ufunc
        An associative and commutative ufunc: ``numpy.add``, ``maximum``, ``logical_and``, ...
    axis : int, sequence of int or None
        The reduced axes; by default all.
    dtype : dtype, optional
        As for NumPy: of the result and of the computation.
    keepdims : bool
        Whether reduced axes are kept with length one.

    Returns
    -------
    DistArray
        The result, distributed as `x` along the other axes.  If a reduced axis was cut, a large result is
        distributed over its ranks along another axis, and a small one is replicated on them.

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

    own = x.local
    if any(own.shape[a] == 0 != x.shape[a] for a in axes):
        shape = [1 if a in axes else n for a, n in enumerate(own.shape)]
        values: Array = np.zeros(shape, kind if sum_dtype is dtype else sum_dtype)
    else:
        values = np.asarray(ufunc.reduce(own, axis=axes, dtype=sum_dtype, keepdims=True))
    layout, values = _combine_over_ranks(x, axes, values, lambda stack: _pairwise(ufunc, stack))
    return without_axes(DistArray(x.comm, layout, values.astype(kind, copy=False)), axes, keepdims)


def sum_over_ranks(comm: Communicator, values: Array) -> DistArray:
    """Return the sum over all ranks of `values`, which has the same shape and dtype on each."""
    layout = Layout(
        (comm.size, *values.shape), ProcessGrid((comm.size,)), [Block(0), *[Whole()] * values.ndim]
    )
    return reduction(DistArray(comm, layout, values[None]), np.add, 0, values.dtype)


# ---- along the axes of the grid ----------------------------------------------------------------------
def _combine_over_ranks(
    x: DistArray, axes: tuple[int, ...], values: Array, combine: Callable[[Array], Array]
) -> tuple[Layout, Array]:
    """Return the layout and this rank's share of a reduction, from the ranks' own reductions.

    The ranks' results are combined along each grid axis that cuts a reduced axis.
    """
    specs: list[Spec] = [Whole() if a in axes else spec for a, spec in enumerate(x.layout.axes)]
    shape = [1 if a in axes else n for a, n in enumerate(x.shape)]
    # whether the result is worth distributing: the same answer on all ranks
    is_large = math.prod(shape) // x.layout.grid.size * values.itemsize > REPLICATE_BELOW
    for a in axes:
        spec, part = x.layout.axes[a], x.layout.parts[a]
        if isinstance(spec, Whole) or part.parts == 1:
            continue
        takes_part = [part.size(k) > 0 or not x.shape[a] for k in range(part.parts)]
        distributed = _distributed_axis(shape, specs, axes, part.parts) if is_large else None
        ranks = grid_line(x.comm, x.layout.grid, spec.grid_axis)
        values = combine_along_line(ranks, values, takes_part, distributed, combine)
        if distributed is not None:
            specs[distributed] = Block(spec.grid_axis)
    return Layout(shape, x.layout.grid, specs), values


def _distributed_axis(
    shape: Sequence[int], specs: Sequence[Spec], axes: tuple[int, ...], parts: int
) -> int | None:
    """Return the axis along which to distribute a result: the longest whole one with at least `parts`
    elements; None if there is none."""
    free = [a for a, spec in enumerate(specs) if isinstance(spec, Whole) and a not in axes]
    axis = max(free, key=lambda a: shape[a], default=None)
    return axis if axis is not None and shape[axis] >= parts else None


def _pairwise(ufunc: np.ufunc, stack: Array) -> Array:
    """Return the entries of `stack` along its first axis combined pairwise, in a fixed order."""
    while len(stack) > 1:
        even = len(stack) // 2 * 2
        paired = ufunc(stack[0:even:2], stack[1:even:2])
        stack = np.concatenate([paired, stack[even:]]) if even < len(stack) else paired
    combined: Array = stack[0]
    return combined


def without_axes(x: DistArray, axes: tuple[int, ...], keepdims: bool) -> DistArray:
    """Return the array without its reduced axes of length one, unless `keepdims`."""
    if keepdims:
        return x
    left = [a for a in range(x.ndim) if a not in axes]
    layout = Layout([x.shape[a] for a in left], x.layout.grid, [x.layout.axes[a] for a in left])
    return DistArray(x.comm, layout, x.block.reshape(layout.local_shape(x.comm.rank)))
