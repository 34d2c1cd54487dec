"""Sample sort of a distributed array of one axis.

Shi and Schaeffer, "Parallel sorting by regular sampling" (1992): each rank sorts its own elements, regular
samples of all of them give the bounds between ranks, and each rank merges the elements that it receives.
Equal elements are ordered by their positions, so that many of them do not fall to one rank and the order is
stable.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import row_layout
from dcarray.comm.layout.layouts import Block, Layout
from dcarray.comm.transport.protocol import Array
from dcarray.comm.transport.sparse_alltoall import allgather, sparse_alltoall

__all__ = ["sort_1d", "sorted_values"]


def sort_1d(x: DistArray) -> tuple[DistArray, DistArray]:
    """Return the elements of a vector in ascending order, NaNs last, and the positions where they were.

    Parameters
    ----------
    x : DistArray
        A vector of a dtype that NumPy can compare.

    Returns
    -------
    DistArray, DistArray
        The elements, and the indices that a stable ``argsort`` gives, both in even blocks over all ranks.
    """
    values, positions = _sample_sort(x, True)
    return values, positions


def sorted_values(x: DistArray) -> DistArray:
    """Return the elements of a vector in ascending order, NaNs last, like `sort_1d` without positions."""
    (values,) = _sample_sort(x, False)
    return values


def _sample_sort(x: DistArray, with_positions: bool) -> list[DistArray]:
    comm, even = x.comm, row_layout(x.shape, x.comm.size)
    own = x.redistribute(even).local
    # without positions equal elements are ordered by those that they have after the local sort
    order = np.argsort(own, kind="stable") if with_positions else np.arange(own.size)
    values = own[order] if with_positions else np.sort(own)
    positions = order + even.parts[0].to_global(comm.rank, 0)
    arrays = [values, positions] if with_positions else [values]
    cuts = pairwise(_cut_points(values, positions, x))
    received = sparse_alltoall(comm, [[array[a:b] for array in arrays] for a, b in cuts])
    arrays = [np.concatenate(parts) for parts in zip(*received, strict=True)]
    if with_positions:
        # elements from lower ranks lay before: a stable sort keeps equal elements in their order
        order = np.argsort(arrays[0], kind="stable")
        arrays = [array[order] for array in arrays]
    else:
        arrays[0].sort()
    sizes = tuple(int(n) for n in allgather(comm, np.int64(arrays[0].size)))
    merged = Layout(x.shape, even.grid, [Block(0, sizes)])
    return [DistArray(comm, merged, array).redistribute(even) for array in arrays]


def _cut_points(values: Array, positions: Array, x: DistArray) -> list[int]:
    """Return the positions at which this rank's sorted elements are divided among the receiving ranks."""
    splitters = _splitters(values, positions, x.comm.size, x)
    cuts = [
        0,
        *(_count_before(values, positions, v, p) for v, p in zip(*splitters, strict=True)),
        values.size,
    ]
    return cuts + [values.size] * (x.comm.size + 1 - len(cuts))


def _splitters(values: Array, positions: Array, ranks: int, x: DistArray) -> tuple[Array, Array]:
    """Return the lower bounds (an element and its position) of all ranks except the first, by regular
    samples."""
    at = (np.arange(ranks) * values.size) // ranks if values.size else np.zeros(ranks, int)
    sample: Array = np.zeros(ranks, values.dtype)
    where = np.full(ranks, -1)
    if values.size:
        sample, where = values[at], positions[at]
    samples, origins = allgather(x.comm, sample).reshape(-1), allgather(x.comm, where).reshape(-1)
    samples, origins = samples[origins >= 0], origins[origins >= 0]
    if not samples.size:
        return samples, origins
    first = np.argsort(origins, kind="stable")
    order = first[np.argsort(samples[first], kind="stable")]
    pick = order[(np.arange(1, ranks) * samples.size) // ranks]
    return samples[pick], origins[pick]


def _count_before(values: Array, positions: Array, value: Array, position: Array) -> int:
    """Return how many of the sorted elements come before the pair of `value` and `position`."""
    low, high = np.searchsorted(values, value, "left"), np.searchsorted(values, value, "right")
    return int(low + np.searchsorted(positions[low:high], position, "left"))
