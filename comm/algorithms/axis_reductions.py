"""Reductions and exclusive scans of values over the ranks along one axis of a grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dcarray.comm.layout.axes import BlockAxis
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.transport.protocol import Array, Communicator

__all__ = ["combine_along_line", "exclusive_scan", "grid_line"]


def grid_line(comm: Communicator, grid: ProcessGrid, axis: int) -> Communicator:
    """Return the communicator of the ranks that differ from this rank only in their coordinate along
    `axis`."""
    return comm.sub(grid.sub(comm.rank, [a == axis for a in range(grid.ndim)])[1])


def combine_along_line(
    ranks: Communicator,
    array: Array,
    takes_part: Sequence[bool],
    distributed_axis: int | None,
    combine: Callable[[Array], Array],
) -> Array:
    """Combine the arrays of all ranks along a grid line position by position, in the order of ranks.

    Parameters
    ----------
    ranks : Communicator
        The ranks of the line.
    array : ndarray
        The array of this rank; the same on all ranks but for the values.
    takes_part : sequence of bool
        For each rank of the line whether it has values; at least one rank must.
    distributed_axis : int or None
        The axis along which the result is distributed in even blocks over the line, each rank combining its
        own block; with None every rank combines, and gets, all of it.
    combine : callable
        A function of the stacked arrays (or blocks of them) that reduces the first axis.

    Returns
    -------
    ndarray
        This rank's share of the result.
    """
    if distributed_axis is None:
        every: Array = np.empty((ranks.size, *array.shape), array.dtype)
        ranks.allgather(array, every)
        return combine(every[np.asarray(takes_part)])
    share = BlockAxis(array.shape[distributed_axis], ranks.size)
    leading = (slice(None),) * distributed_axis
    cuts = [(*leading, slice(share.start(k), share.start(k + 1))) for k in range(ranks.size)]
    stack: Array = np.empty((sum(takes_part), *array[cuts[ranks.rank]].shape), array.dtype)
    rows = iter(stack)
    ranks.alltoallw(
        [[array[cut]] if takes_part[ranks.rank] else [] for cut in cuts],
        [[next(rows)] if takes else [] for takes in takes_part],
    )
    return combine(stack)


def exclusive_scan(
    ranks: Communicator, total: Array, ufunc: np.ufunc, takes_part: Sequence[bool]
) -> Array | None:
    """Return the exclusive scan of totals over a grid line: the combined totals of the ranks before this one.

    Each rank combines a share of the array positions for all ranks, so that its cost does not grow with their
    number.

    Parameters
    ----------
    ranks : Communicator
        The ranks of the line.
    total : ndarray
        The total of this rank, of one shape and dtype on all ranks.
    ufunc : numpy.ufunc
        The operation of the scan.
    takes_part : sequence of bool
        For each rank of the line whether it has values.

    Returns
    -------
    ndarray or None
        The combined totals; None if no rank before this one has values.
    """
    flat = total.reshape(-1)
    share = BlockAxis(flat.size, ranks.size)
    cuts = [slice(share.start(k), share.start(k + 1)) for k in range(ranks.size)]
    stack = np.empty((ranks.size, share.size(ranks.rank)), flat.dtype)
    ranks.alltoallw([[flat[cut]] for cut in cuts], [[row] for row in stack])
    running = np.zeros_like(stack)
    carry: Array | None = None
    for k in range(ranks.size):
        if carry is not None:
            running[k] = carry
        if takes_part[k]:
            carry = stack[k] if carry is None else ufunc(carry, stack[k])
    scanned = np.empty_like(flat)
    ranks.alltoallw([[row] for row in running], [[scanned[cut]] for cut in cuts])
    return scanned.reshape(total.shape) if any(takes_part[: ranks.rank]) else None
