"""Reads and writes of a distributed array by indices along one axis.

Ranks request elements from their owners: first the counts, then one message with indices to each owner, and
one with elements back.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.layouts import Block, Layout, Whole
from dcarray.comm.transport.protocol import Array
from dcarray.comm.transport.sparse_alltoall import (
    ask_owners,
    exchange_counts,
    group_by_owner,
    sparse_alltoallv,
)

from .axis_reductions import grid_line
from .fancy_indexing import as_blocks, broadcast_local, check_indices

__all__ = ["put", "take"]


def take(x: DistArray, index: DistArray, axis: int) -> DistArray:
    """Return the elements at some indices along an axis, like ``x[..., index, ...]``.

    Parameters
    ----------
    x : DistArray
        The array.
    index : DistArray
        Integers, an array of at least one axis; negative ones count from the end.
    axis : int
        The axis, not negative.

    Returns
    -------
    DistArray
        The elements, with the axes of `index` in the place of `axis`; if that was cut, the first of them is
        in even blocks.

    Raises
    ------
    IndexError
        As NumPy's, on all ranks.
    """
    aligned, index_part, layout = _align(x, index, axis)
    (indices,) = check_indices([(axis, index_part.local)], x.shape, x.comm)
    elements = np.moveaxis(aligned.local, axis, 0)
    spec = aligned.layout.axes[axis]
    if isinstance(spec, Whole):
        taken = elements[indices.reshape(-1)]
    else:
        ranks = grid_line(x.comm, aligned.layout.grid, spec.grid_axis)
        taken = ask_owners(ranks, *_owners(indices, aligned, axis), lambda at: elements[at])
    values = taken.reshape(*indices.shape, *elements.shape[1:])
    index_axes = range(indices.ndim)
    values = np.moveaxis(values, tuple(index_axes), tuple(axis + k for k in index_axes))
    return DistArray(x.comm, layout, values)


def put(x: DistArray, index: DistArray, axis: int, values: DistArray) -> DistArray:
    """Write ``x[..., index, ...] = values``; if an index occurs several times, its last value is written.

    Parameters
    ----------
    x : DistArray
        The array, which is written in place unless an axis is cyclic.
    index, axis
        The parameters of `take`.
    values : DistArray
        An array that can be broadcast to the shape of the result of `take`.

    Returns
    -------
    DistArray
        `x`, or the array that replaces it.
    """
    aligned, index_part, layout = _align(x, index, axis)
    (indices,) = check_indices([(axis, index_part.local)], x.shape, x.comm)
    elements = np.moveaxis(aligned.local, axis, 0)
    given: Array = broadcast_local(values, layout)
    index_axes = range(indices.ndim)
    given = np.moveaxis(given, tuple(axis + k for k in index_axes), tuple(index_axes))
    given = given.astype(x.dtype).reshape(indices.size, *elements.shape[1:])
    spec = aligned.layout.axes[axis]
    if isinstance(spec, Whole):
        elements[indices.reshape(-1)] = given
        return aligned
    ranks = grid_line(x.comm, aligned.layout.grid, spec.grid_axis)
    order, wanted, counts = group_by_owner(*_owners(indices, aligned, axis), ranks.size)
    ends = np.cumsum([0, *counts])
    sends = [[w, given[order[a:b]]] for w, (a, b) in zip(wanted, pairwise(ends), strict=True)]
    # in the order of the index
    for at, some in sparse_alltoallv(ranks, sends, exchange_counts(ranks, counts)):
        elements[at] = some
    return aligned


def _align(x: DistArray, index: DistArray, axis: int) -> tuple[DistArray, DistArray, Layout]:
    """Return the array without cyclic axes, the index distributed along `axis`, and the layout of the
    result."""
    aligned = as_blocks(x)
    spec, grid = aligned.layout.axes[axis], x.layout.grid
    first = Whole() if isinstance(spec, Whole) else Block(spec.grid_axis)
    axes = [first, *[Whole()] * (index.ndim - 1)]
    index_part = index.redistribute(Layout(index.shape, grid, axes))
    shape = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
    return (
        aligned,
        index_part,
        Layout(shape, grid, [*aligned.layout.axes[:axis], *axes, *aligned.layout.axes[axis + 1 :]]),
    )


def _owners(indices: Array, x: DistArray, axis: int) -> tuple[Array, Array]:
    """Return for each index of an axis the part that owns it, and its position within that part."""
    part = x.layout.parts[axis]
    starts = np.array([part.to_global(k, 0) for k in range(part.parts)] + [part.extent])
    flat = indices.reshape(-1)
    owners = np.searchsorted(starts[1:], flat, "right")  # past the empty ones
    return owners, flat - starts[owners]
