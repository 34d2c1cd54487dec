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
    ask_owners,
    exchange_counts,
    group_by_owner,
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
        found = ask_owners(ranks, *_owners(places, held, axis), lambda at: own[at])
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
    order, wanted, counts = group_by_owner(*_owners(places, held, axis), ranks.size)
    ends = np.cumsum([0, *counts])
    sends = [[w, given[order[a:b]]] for w, (a, b) in zip(wanted, pairwise(ends), strict=True)]
    # in the order of the index
    for at, some in sparse_alltoallv(ranks, sends, exchange_counts(ranks, counts)):
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


def _owners(places: Array, x: DistArray, axis: int) -> tuple[Array, Array]:
    """The parts that own indices of an axis, and the indices within their owners."""
    part = x.layout.parts[axis]
    starts = np.array([part.to_global(k, 0) for k in range(part.parts)] + [part.extent])
    flat = places.reshape(-1)
    owners = np.searchsorted(starts[1:], flat, "right")  # past the empty ones
    return owners, flat - starts[owners]
