"""The distinct elements and rows of distributed arrays, by sorting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import row_layout
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Block, Layout, Whole
from dcarray.comm.transport.protocol import Array
from dcarray.comm.transport.sparse_alltoall import allgather

from .fancy_indexing import read_elements, write_elements
from .mask_selection import rebalance
from .sorting import sort_1d, sorted_values

__all__ = ["all_differ", "unique", "unique_rows", "unique_values"]


def unique(x: DistArray, equal_nan: bool = True) -> tuple[DistArray, DistArray, DistArray, DistArray]:
    """Return the distinct elements in ascending order, like ``numpy.unique``.

    Parameters
    ----------
    x : DistArray
        An array of any shape, of a dtype that NumPy compares, but not complex.
    equal_nan : bool
        Whether all NaNs are one element.

    Returns
    -------
    DistArray, DistArray, DistArray, DistArray
        The elements, the first position of each in C order, the inverse indices in the shape of
        `x`, and the counts.
    """
    comm, n = x.comm, math.prod(x.shape)
    flat = x.ravel()
    values, positions = sort_1d(flat)
    first = _is_first(values, equal_nan)
    begin = values.layout.parts[0].to_global(comm.rank, 0)
    before = int(allgather(comm, np.count_nonzero(first))[: comm.rank].sum())
    number = before + np.cumsum(first) - 1  # equal elements that begin on another rank have its number
    inverse = DistArray(comm, flat.layout, np.zeros(flat.local.shape, np.intp))
    write_elements(inverse, positions.local, number.astype(np.intp))
    starts = rebalance(comm, np.flatnonzero(first) + begin)
    here, at = starts.local, starts.layout.parts[0].to_global(comm.rank, 0)
    after = np.arange(at, at + here.size) + 1
    last = after == starts.shape[0]
    ends = np.where(last, n, read_elements(starts, np.where(last, 0, after)))
    return (
        rebalance(comm, values.local[first]),
        rebalance(comm, positions.local[first].astype(np.intp)),
        inverse.reshape(x.shape),
        DistArray(comm, starts.layout, (ends - here).astype(np.intp)),
    )


def unique_values(x: DistArray, equal_nan: bool = True) -> DistArray:
    """Return the distinct elements in ascending order, without indices and counts; each rank sends only its
    own distinct elements."""
    some = np.unique(x.local, equal_nan=equal_nan)
    sizes = tuple(int(n) for n in allgather(x.comm, np.int64(some.size)))
    layout = Layout((sum(sizes),), ProcessGrid((x.comm.size,)), [Block(0, sizes)])
    if not sum(sizes):
        return rebalance(x.comm, some)
    values = sorted_values(DistArray(x.comm, layout, some))
    return rebalance(x.comm, values.local[_is_first(values, equal_nan)])


def all_differ(values: DistArray) -> bool:
    """Whether sorted elements contain no two equal ones, nor two NaNs."""
    first = _is_first(values, True)
    return not allgather(values.comm, np.bool_(not first.all())).any()


def unique_rows(x: DistArray) -> tuple[DistArray, DistArray, DistArray, DistArray]:
    """Return the distinct rows of a table, as `unique`, in lexicographic order."""
    comm, columns = x.comm, x.shape[1]
    aligned = x.redistribute(row_layout(x.shape, comm.size))
    flat = Layout(x.shape[:1], aligned.layout.grid, aligned.layout.axes[:1])
    kind = np.dtype([(f"f{k}", x.dtype) for k in range(columns)])
    elements = np.ascontiguousarray(aligned.local)
    rows, *others = unique(DistArray(comm, flat, elements.view(kind)[:, 0]), False)
    table = Layout((*rows.shape, columns), rows.layout.grid, [*rows.layout.axes, Whole()])
    values = rows.local.view(x.dtype).reshape(-1, columns)
    first, inverse, counts = others
    return DistArray(comm, table, values), first, inverse, counts


def _is_first(x: DistArray, equal_nan: bool) -> Array:
    """Return a mask of this rank's sorted elements that is true where one differs from its predecessor."""
    elements = x.local
    ends = allgather(x.comm, elements[-1] if elements.size else np.zeros((), x.dtype))
    some = allgather(x.comm, np.bool_(elements.size > 0))[: x.comm.rank]
    first: Array = np.ones(elements.shape, np.bool_)
    first[1:] = _differ(elements[:-1], elements[1:], equal_nan)
    if elements.size and some.any():
        last = ends[np.flatnonzero(some)[-1]]
        first[:1] = _differ(last, elements[:1], equal_nan)
    return first


def _differ(a: Array, b: Array, equal_nan: bool) -> Any:
    return (a != b) & ((a == a) | (b == b)) if equal_nan and b.dtype.kind == "f" else a != b
