"""What follows from the order of elements over many ranks: those that differ, places in sorted arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from dcarray.comm.exchange.dist_array import Piece, rows
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Block, Layout, Whole
from dcarray.comm.transport.protocol import Array
from dcarray.comm.transport.sparse_alltoall import (
    allgather,
    order_by_owner,
    sparse_alltoall,
    sparse_alltoallv,
)

from .fancy_indexing import found, written
from .masks import evenly
from .reductions import fold
from .sorting import sort_1d, sorted_values

__all__ = [
    "all_differ", "distinct", "located", "pointwise", "ranked", "totalled", "unique", "unique_rows",
]  # fmt: skip


def pointwise(x: Piece, function: Callable[[Array], Any]) -> Piece:
    """A function of one element at a time; nothing travels."""
    return Piece(x.comm, x.layout.bare(), np.asarray(function(x.own)))


# ---- elements that differ ----------------------------------------------------------------------------
def unique(x: Piece, equal_nan: bool = True) -> tuple[Piece, Piece, Piece, Piece]:
    """The elements that differ, in ascending order, like ``numpy.unique``.

    Parameters
    ----------
    x : Piece
        Of any shape, and of a dtype that NumPy compares, but not complex.
    equal_nan : bool
        Whether all NaNs are one element.

    Returns
    -------
    Piece, Piece, Piece, Piece
        The elements, where in C order each comes first, which of them each element of `x` is, in the shape of
        `x`, and how often each is there.
    """
    comm, n = x.comm, math.prod(x.shape)
    flat = x.ravelled()
    values, places = sort_1d(flat)
    first = _first(values, equal_nan)
    begin = values.layout.parts[0].to_global(comm.rank, 0)
    before = int(allgather(comm, np.count_nonzero(first))[: comm.rank].sum())
    number = before + np.cumsum(first) - 1  # equal elements that begin on another rank have its number
    inverse = Piece(comm, flat.layout, np.zeros(flat.own.shape, np.intp))
    written(inverse, places.own, number.astype(np.intp))
    starts = evenly(comm, np.flatnonzero(first) + begin)
    here, at = starts.own, starts.layout.parts[0].to_global(comm.rank, 0)
    after = np.arange(at, at + here.size) + 1
    last = after == starts.shape[0]
    ends = np.where(last, n, found(starts, np.where(last, 0, after)))
    return (
        evenly(comm, values.own[first]),
        evenly(comm, places.own[first].astype(np.intp)),
        inverse.reshaped(x.shape),
        Piece(comm, starts.layout, (ends - here).astype(np.intp)),
    )


def distinct(x: Piece, equal_nan: bool = True) -> Piece:
    """The elements that differ alone: of each rank only those travel that differ there."""
    some = np.unique(x.own, equal_nan=equal_nan)
    sizes = tuple(int(n) for n in allgather(x.comm, np.int64(some.size)))
    layout = Layout((sum(sizes),), ProcessGrid((x.comm.size,)), [Block(0, sizes)])
    if not sum(sizes):
        return evenly(x.comm, some)
    values = sorted_values(Piece(x.comm, layout, some))
    return evenly(x.comm, values.own[_first(values, equal_nan)])


def all_differ(values: Piece) -> bool:
    """Are there no two equal ones among sorted elements, nor two NaNs?"""
    first = _first(values, True)
    return not allgather(values.comm, np.bool_(not first.all())).any()


def unique_rows(x: Piece) -> tuple[Piece, Piece, Piece, Piece]:
    """The rows of a table that differ, as `unique`, in the order of their first elements that do."""
    comm, columns = x.comm, x.shape[1]
    held = x.moved(rows(x.shape, comm.size))
    flat = Layout(x.shape[:1], held.layout.grid, held.layout.axes[:1])
    kind = np.dtype([(f"f{k}", x.dtype) for k in range(columns)])
    own = np.ascontiguousarray(held.own)
    found, *others = unique(Piece(comm, flat, own.view(kind)[:, 0]), False)
    table = Layout((*found.shape, columns), found.layout.grid, [*found.layout.axes, Whole()])
    values = found.own.view(x.dtype).reshape(-1, columns)
    first, inverse, counts = others
    return Piece(comm, table, values), first, inverse, counts


def _first(x: Piece, equal_nan: bool) -> Array:
    """Which sorted elements of this rank are not what comes before them."""
    own = x.own
    ends = allgather(x.comm, own[-1] if own.size else np.zeros((), x.dtype))
    some = allgather(x.comm, np.bool_(own.size > 0))[: x.comm.rank]
    first: Array = np.ones(own.shape, np.bool_)
    first[1:] = _differ(own[:-1], own[1:], equal_nan)
    if own.size and some.any():
        last = ends[np.flatnonzero(some)[-1]]
        first[:1] = _differ(last, own[:1], equal_nan)
    return first


def _differ(a: Array, b: Array, equal_nan: bool) -> Any:
    return (a != b) & ((a == a) | (b == b)) if equal_nan and b.dtype.kind == "f" else a != b


# ---- places in sorted arrays -------------------------------------------------------------------------
def located(a: Piece, v: Piece, side: Any) -> Piece:
    """Where elements would be put into a sorted array, like ``numpy.searchsorted``.

    Each goes to the rank that has the elements around its place.

    Parameters
    ----------
    a : Piece
        Of one axis, in ascending order.
    v : Piece
        The elements, laid out as the result is to be.
    side : {"left", "right"}
    """
    comm = a.comm
    if all(isinstance(spec, Whole) or part.parts == 1 for spec, part in _axes(a)):
        return pointwise(v, lambda some: np.searchsorted(a.own, some, side))
    if not a.shape[0]:
        return pointwise(v, lambda some: np.zeros(some.shape, np.intp))
    held = a.moved(rows(a.shape, comm.size))
    own, part = held.own, held.layout.parts[0]
    begin = part.to_global(comm.rank, 0)
    heads = allgather(comm, own[0] if own.size else np.zeros((), a.dtype))
    there = np.flatnonzero([part.size(k) > 0 for k in range(comm.size)])
    flat = v.own.reshape(-1)
    # the last rank that begins before the place
    owners = there[np.maximum(np.searchsorted(heads[there], flat, side) - 1, 0)]
    order = order_by_owner(owners, comm.size)
    counts = np.bincount(owners, minlength=comm.size)
    ends = np.cumsum([0, *counts])
    asked = sparse_alltoall(comm, [[flat[order[i:j]]] for i, j in pairwise(ends)])
    answers = [[np.searchsorted(own, some, side) + begin] for (some,) in asked]
    came = sparse_alltoallv(comm, answers, [int(m) for m in counts])
    result = np.empty(flat.size, np.intp)
    result[order] = np.concatenate([some for (some,) in came])
    return Piece(comm, v.layout.bare(), result.reshape(v.own.shape))


def _axes(x: Piece) -> Any:
    return zip(x.layout.axes, x.layout.parts, strict=True)


def ranked(x: Piece, without_nan: bool) -> tuple[Piece, int]:
    """The elements in ascending order on one axis, and how many they are, those that are no NaN if asked."""
    values = sorted_values(x.ravelled())
    count = math.prod(x.shape)
    if without_nan and x.dtype.kind == "f":
        count -= int(allgather(x.comm, np.count_nonzero(np.isnan(values.own))).sum())
    return values, count


# ---- counts ------------------------------------------------------------------------------------------
def totalled(x: Piece, counts: Array) -> Piece:
    """The sum of arrays of one shape and dtype, of which each rank of `x` has one."""
    comm = x.comm
    layout = Layout(
        (comm.size, *counts.shape), ProcessGrid((comm.size,)), [Block(0), *[Whole()] * counts.ndim]
    )
    return fold(Piece(comm, layout, counts[None]), np.add, 0, counts.dtype)
