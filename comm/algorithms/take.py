"""Reading and writing elements at given indices along one axis of a distributed array.

Ranks request elements from their owners: counts first, then one message with the indices to each owner, one
with the elements back.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import without_cyclic
from dcarray.comm.layout.layouts import Block, Cyclic, Layout, Whole
from dcarray.comm.transport.protocol import Array
from dcarray.comm.transport.sparse_alltoall import (
    allgather,
    exchange_counts,
    order_by_owner,
    sparse_alltoall,
    sparse_alltoallv,
)

from .axis_reductions import grid_line
from .fancy_indexing import as_int64, broadcast_local

__all__ = ["put", "take"]


def take(x: DistArray, index: DistArray, axis: int) -> DistArray:
    """The elements at some indices along an axis, like ``x[..., index, ...]``.

    Parameters
    ----------
    x : DistArray
        The array.
    index : DistArray
        Integers, on one axis at least; negative ones count from the end.
    axis : int
        The axis, not negative.

    Returns
    -------
    DistArray
        The index's axes in the place of `axis`, the first of them in even blocks if that was cut.

    Raises
    ------
    IndexError
        As NumPy's, on all ranks.
    """
    held, here, layout = _align(x, index, axis)
    places = _checked_index(here.local, x, axis, here)
    own = np.moveaxis(held.local, axis, 0)
    spec = held.layout.axes[axis]
    if isinstance(spec, Whole):
        found = own[places.reshape(-1)]
    else:
        ranks = grid_line(x.comm, held.layout.grid, spec.grid_axis)
        order, wanted, counts = _by_owner(places, held, axis)
        asked = sparse_alltoall(ranks, [[w] for w in wanted])
        replies = sparse_alltoallv(ranks, [[own[at]] for (at,) in asked], counts)
        found = np.empty((places.size, *own.shape[1:]), x.dtype)
        found[order] = np.concatenate([values for (values,) in replies])
    values = found.reshape(*places.shape, *own.shape[1:])
    inside = range(places.ndim)
    values = np.moveaxis(values, tuple(inside), tuple(axis + k for k in inside))
    return DistArray(x.comm, layout, values)


def put(x: DistArray, index: DistArray, axis: int, values: DistArray) -> DistArray:
    """Write ``x[..., index, ...] = values``: of several values for an index the last one.

    Parameters
    ----------
    x : DistArray
        The array, which is written in place unless an axis is cyclic.
    index, axis
        As for `take`.
    values : DistArray
        An array that can be broadcast to the shape of the result of `take`.

    Returns
    -------
    DistArray
        `x`, or the array that replaces it.
    """
    held, here, layout = _align(x, index, axis)
    places = _checked_index(here.local, x, axis, here)
    own = np.moveaxis(held.local, axis, 0)
    given: Array = broadcast_local(values, layout)
    inside = range(places.ndim)
    given = np.moveaxis(given, tuple(axis + k for k in inside), tuple(inside))
    given = given.astype(x.dtype).reshape(places.size, *own.shape[1:])
    spec = held.layout.axes[axis]
    if isinstance(spec, Whole):
        own[places.reshape(-1)] = given
        return held
    ranks = grid_line(x.comm, held.layout.grid, spec.grid_axis)
    order, wanted, counts = _by_owner(places, held, axis)
    ends = np.cumsum([0, *counts])
    sends = [[w, given[order[a:b]]] for w, (a, b) in zip(wanted, pairwise(ends), strict=True)]
    for at, some in sparse_alltoallv(
        ranks, sends, exchange_counts(ranks, counts)
    ):  # in the order of the index
        own[at] = some
    return held


def _align(x: DistArray, index: DistArray, axis: int) -> tuple[DistArray, DistArray, Layout]:
    """The array without cyclic axes, this rank's share of the index, and the layout of the result."""
    dealt = any(isinstance(spec, Cyclic) for spec in x.layout.axes)
    held = x.redistributed(without_cyclic(x.layout)) if dealt else x
    spec, grid = held.layout.axes[axis], x.layout.grid
    first = Whole() if isinstance(spec, Whole) else Block(spec.grid_axis)
    axes = [first, *[Whole()] * (index.ndim - 1)]
    here = index.redistributed(Layout(index.shape, grid, axes))
    shape = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
    return held, here, Layout(shape, grid, [*held.layout.axes[:axis], *axes, *held.layout.axes[axis + 1 :]])


def _checked_index(own: Array, x: DistArray, axis: int, index: DistArray) -> Array:
    """The indices without negative ones; an error on all ranks where one is out of bounds."""
    n, own = x.shape[axis], as_int64(own)
    wrong = own[(own < -n) | (own >= n)].reshape(-1)
    first = allgather(x.comm, np.array([wrong.size > 0, wrong[0] if wrong.size else 0], np.int64))
    if first[:, 0].any():
        bad = first[np.argmax(first[:, 0]), 1]
        raise IndexError(f"index {bad} is out of bounds for axis {axis} with size {n}")
    return np.where(own < 0, own + n, own).astype(np.intp, copy=False)


def _by_owner(places: Array, x: DistArray, axis: int) -> tuple[Array, list[Array], list[int]]:
    """The order of indices by the ranks that own them, the indices within each owner, and their numbers."""
    part = x.layout.parts[axis]
    starts = np.array([part.to_global(k, 0) for k in range(part.parts)] + [part.extent])
    flat = places.reshape(-1)
    owners = np.searchsorted(starts[1:], flat, "right")  # past the empty ones
    order = order_by_owner(owners, part.parts)
    counts = np.bincount(owners, minlength=part.parts)
    local = flat[order] - starts[owners[order]]
    ends = np.cumsum([0, *counts])
    return order, [local[a:b] for a, b in pairwise(ends)], [int(n) for n in counts]
