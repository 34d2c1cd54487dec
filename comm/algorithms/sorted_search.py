"""Search in a distributed sorted vector: elements are sent to the ranks that have their neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import row_layout
from dcarray.comm.transport.sparse_alltoall import allgather, ask_owners

__all__ = ["searchsorted"]


def searchsorted(a: DistArray, v: DistArray, side: Any) -> DistArray:
    """Return the positions at which elements would be inserted in a sorted vector, as ``searchsorted``.

    Each element is sent to the rank that has the elements around its position.

    Parameters
    ----------
    a : DistArray
        A vector in ascending order.
    v : DistArray
        The elements, in the layout of the result.
    side : {"left", "right"}
    """
    comm = a.comm
    if not a.layout.is_cut(0):
        return v.map(lambda some: np.searchsorted(a.local, some, side))
    if not a.shape[0]:
        return v.map(lambda some: np.zeros(some.shape, np.intp))
    aligned = a.redistribute(row_layout(a.shape, comm.size))
    elements, part = aligned.local, aligned.layout.parts[0]
    begin = part.to_global(comm.rank, 0)
    heads = allgather(comm, elements[0] if elements.size else np.zeros((), a.dtype))
    nonempty = np.flatnonzero([part.size(k) > 0 for k in range(comm.size)])
    flat = v.local.reshape(-1)
    # the last rank that begins before the position
    owners = nonempty[np.maximum(np.searchsorted(heads[nonempty], flat, side) - 1, 0)]
    result = ask_owners(comm, owners, flat, lambda some: np.searchsorted(elements, some, side) + begin)
    return v.map(lambda some: result.reshape(some.shape))
