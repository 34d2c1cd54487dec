"""Boolean indexing of distributed arrays: ``x[mask]``, ``x[mask] = v`` and ``nonzero``."""

from __future__ import annotations

import math

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import row_layout
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Block, Layout, Whole
from dcarray.comm.transport.protocol import Array, Communicator
from dcarray.comm.transport.sparse_alltoall import allgather

from .fancy_indexing import broadcast_local, check_values, mask_positions, write_elements

__all__ = ["assign", "nonzero", "rebalance", "select"]


def select(x: DistArray, mask: DistArray) -> DistArray:
    """Return ``x[mask]``.

    Parameters
    ----------
    x : DistArray
        The array.
    mask : DistArray
        An array of dtype bool, of the shape of the array's first axes, at least one.

    Returns
    -------
    DistArray
        The selected elements, in even blocks over all ranks along the first axis.
    """
    aligned, aligned_mask = _both_by_rows(x, mask)
    return rebalance(x.comm, aligned.local[aligned_mask.local])


def nonzero(x: DistArray) -> tuple[DistArray, ...]:
    """Return the indices of the elements that are not zero, as ``numpy.nonzero``, for one axis at least."""
    aligned = x.redistribute(row_layout(x.shape, x.comm.size))
    begin = aligned.layout.parts[0].to_global(x.comm.rank, 0)
    positions = np.nonzero(aligned.local)
    return tuple(rebalance(x.comm, at + begin if not axis else at) for axis, at in enumerate(positions))


def assign(x: DistArray, mask: DistArray, values: DistArray) -> DistArray:
    """Write ``x[mask] = values``.

    Parameters
    ----------
    x : DistArray
        The array, which is written in place unless an axis is cyclic.
    mask : DistArray
        The mask, as in `select`.
    values : DistArray
        Values of a shape that can be broadcast to that of ``x[mask]``.

    Returns
    -------
    DistArray
        `x`, or the array that replaces it.

    Raises
    ------
    ValueError
        If the values cannot be broadcast; on all ranks, with NumPy's message.
    """
    inner = x.shape[mask.ndim :]
    positions = mask_positions(mask, math.prod(inner))
    count = positions.size // max(math.prod(inner), 1)
    counts = tuple(int(n) for n in allgather(x.comm, np.int64(count)))
    shape = (sum(counts), *inner)
    if values.ndim == 1 and not inner and values.shape[0] not in (1, shape[0]):
        raise ValueError(
            f"NumPy boolean array indexing assignment cannot assign {values.shape[0]} "
            f"input values to the {shape[0]} output values where the mask is true"
        )
    check_values(values.shape, shape)
    layout = Layout(shape, ProcessGrid((x.comm.size,)), [Block(0, counts), *[Whole()] * len(inner)])
    return write_elements(x, positions, broadcast_local(values, layout).astype(x.dtype, copy=False))


def _both_by_rows(x: DistArray, mask: DistArray) -> tuple[DistArray, DistArray]:
    """Return both arrays cut along the first axis only, so that selected elements of ranks are in order."""
    return x.redistribute(row_layout(x.shape, x.comm.size)), mask.redistribute(
        row_layout(mask.shape, x.comm.size)
    )


def rebalance(comm: Communicator, rows: Array) -> DistArray:
    """Return an array in even blocks, given each rank's rows of it, in the order of ranks."""
    sizes = tuple(int(n) for n in allgather(comm, np.int64(len(rows))))
    goal = row_layout((sum(sizes), *rows.shape[1:]), comm.size)
    uneven = Layout(goal.shape, goal.grid, [Block(0, sizes), *goal.axes[1:]])
    if not math.prod(goal.shape):
        return DistArray(comm, goal, rows[:0].reshape(goal.local_shape(comm.rank)))
    return DistArray(comm, uneven, rows).redistribute(goal)
