"""Reads and writes of a distributed array by several index arrays, or at arbitrary positions.

A position is the number of an element in C order.  Each rank has some of the positions, and the elements to
be read or written there; the whole operation is on the positions of all ranks, in the order of ranks.  Ranks
request elements from their owners: first the counts, then one message with positions to each owner, and one
with elements back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import row_layout, without_cyclic
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Block, Cyclic, Layout, Spec, Whole
from dcarray.comm.transport.protocol import Array, Communicator
from dcarray.comm.transport.sparse_alltoall import (
    allgather,
    ask_owners,
    exchange_counts,
    group_by_owner,
    sparse_alltoallv,
)

__all__ = [
    "IndexResult",
    "as_blocks",
    "broadcast_local",
    "check_indices",
    "check_values",
    "mask_positions",
    "read_elements",
    "resolve_key",
    "write_elements",
]  # fmt: skip

Store = Callable[[Array, Any, Array], None]  # stores values in an array at an index


@dataclass(frozen=True)
class IndexResult:
    """The elements that an index expression selects: their layout, and this rank's positions.

    Parameters
    ----------
    layout : Layout
        The layout of the selected elements, cut along one axis over all ranks.
    positions : ndarray
        The positions in the indexed array of the selected elements that this rank owns.
    """

    layout: Layout
    positions: Array


def broadcast_local(x: DistArray, layout: Layout) -> Array:
    """Return this rank's part of an array broadcast to a layout's shape, distributed as in that layout.

    Parameters
    ----------
    x : DistArray
        An array of a shape that can be broadcast.
    layout : Layout
        A layout over all ranks of `x`.
    """
    skipped = layout.ndim - x.ndim
    pairs = zip(x.shape, layout.shape[skipped:], layout.axes[skipped:], strict=True)
    specs: list[Spec] = [spec if n == m else Whole() for n, m, spec in pairs]
    elements = x.redistribute(Layout(x.shape, layout.grid, specs)).local
    return np.broadcast_to(elements, layout.owned_shape(x.comm.rank))


def check_values(values_shape: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Check that values can be broadcast to the selected elements.

    Raises
    ------
    ValueError
        If they cannot, with NumPy's message.
    """
    least = values_shape[max(0, len(values_shape) - len(shape)) :]
    fits = all(n in (1, m) for n, m in zip(least[::-1], shape[::-1], strict=False))
    if not fits or any(n != 1 for n in values_shape[: len(values_shape) - len(least)]):
        raise ValueError(
            f"shape mismatch: value array of shape {_shape_text(values_shape)} could not be broadcast to "
            f"indexing result of shape {_shape_text(shape)}"
        )


def _shape_text(shape: tuple[int, ...]) -> str:
    return "(" + ",".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


# ---- keys --------------------------------------------------------------------------------------------
def resolve_key(
    shape: Sequence[int], key: Sequence[slice | int | DistArray | None], comm: Communicator
) -> IndexResult:
    """Return the elements that a NumPy index expression with index arrays selects.

    Parameters
    ----------
    shape : sequence of int
        The shape of the array.
    key : sequence of slice, int, DistArray or None
        For each axis a slice, an integer or integers, with None for new axes in between; integers on one axis
        or more at least once, and of shapes that can be broadcast together.
    comm : Communicator

    Raises
    ------
    IndexError
        If an index is out of bounds; on all ranks, with NumPy's message.
    """
    fancy = [k for k, item in enumerate(key) if isinstance(item, (int, DistArray))]
    common = np.broadcast_shapes(*(item.shape for item in key if isinstance(item, DistArray)))
    ndim = len(common)
    adjacent = fancy[-1] - fancy[0] + 1 == len(fancy)
    first = fancy[0] if adjacent else 0  # position of the axes of the index arrays in the result
    cut = next((k for k, n in enumerate(common) if n > 1), 0)
    over = ProcessGrid((comm.size,))
    index_specs: list[Spec] = [Block(0) if k == cut else Whole() for k in range(ndim)]
    layout = Layout(common, over, index_specs)

    lengths: list[int] = []  # of the axes of slices and new axes
    lines: list[tuple[int, Array]] = []  # number of the axis, and the offsets of its indices
    indices: list[tuple[int, Array]] = []  # axis and values
    axis = 0
    for item in key:
        if item is None:
            lengths.append(1)
            continue
        if isinstance(item, slice):
            at = range(*item.indices(shape[axis]))
            strided = np.arange(at.start, at.stop, at.step, dtype=np.int64) * math.prod(shape[axis + 1 :])
            lines.append((len(lengths), strided))
            lengths.append(len(at))
        else:
            here = np.asarray(item) if isinstance(item, int) else broadcast_local(item, layout)
            indices.append((axis, here))
        axis += 1
    result = Layout(
        (*lengths[:first], *common, *lengths[first:]),
        over,
        [*[Whole()] * first, *index_specs, *[Whole()] * (len(lengths) - first)],
    )
    total: Array = np.zeros((), np.int64)
    for which, at_axis in lines:
        place = which if which < first else which + ndim
        total = total + at_axis.reshape([-1 if k == place else 1 for k in range(result.ndim)])
    for (axis, _), here in zip(indices, check_indices(indices, shape, comm), strict=True):
        strided = here * math.prod(shape[axis + 1 :])
        total = total + strided.reshape(here.shape + (1,) * (len(lengths) - first) * (here.ndim > 0))
    return IndexResult(result, np.broadcast_to(total, result.owned_shape(comm.rank)))


def _as_int64(values: Array) -> Array:
    """Return integers as int64; larger ones become the largest int64, which is out of bounds of all
    arrays."""
    if values.dtype == np.uint64:
        values = np.minimum(values, np.uint64(np.iinfo(np.int64).max))
    return values.astype(np.int64, copy=False)


def check_indices(
    indices: Sequence[tuple[int, Array]], shape: Sequence[int], comm: Communicator
) -> list[Array]:
    """Return indices with negative ones made positive; raise IndexError on all ranks if one is out of
    bounds."""
    errors = np.zeros((len(indices), 2), np.int64)
    checked = []
    for row, (axis, values) in zip(errors, indices, strict=True):
        n, values = shape[axis], _as_int64(values)
        wrong = values[(values >= n) | (values < -n)].reshape(-1)
        if wrong.size:
            row[:] = 1, wrong[0]
        checked.append(np.where(values < 0, values + n, values))
    all_errors = allgather(comm, errors)
    for k, (axis, _) in enumerate(indices):
        if all_errors[:, k, 0].any():
            bad = all_errors[np.argmax(all_errors[:, k, 0]), k, 1]
            raise IndexError(f"index {bad} is out of bounds for axis {axis} with size {shape[axis]}")
    return checked


def mask_positions(mask: DistArray, inner: int = 1) -> Array:
    """Return the positions of this rank that a mask selects, in the order of ranks.

    Parameters
    ----------
    mask : DistArray
        An array of dtype bool, of one axis at least.
    inner : int
        The number of consecutive elements that each element of the mask stands for.
    """
    aligned = mask.redistribute(row_layout(mask.shape, mask.comm.size))
    begin = aligned.layout.parts[0].to_global(mask.comm.rank, 0) * math.prod(mask.shape[1:])
    at = np.flatnonzero(aligned.local) + begin
    return at if inner == 1 else (at[:, None] * inner + np.arange(inner)).reshape(-1)


# ---- reading and writing -----------------------------------------------------------------------------
def read_elements(x: DistArray, positions: Array) -> Array:
    """Return the elements at this rank's positions, in their shape."""
    aligned = as_blocks(x)
    owners, local = _owners(aligned, positions.reshape(-1), nearest=True)
    elements = ask_owners(x.comm, owners, local, lambda at: _elements_at(aligned.local, at))
    return elements.reshape(positions.shape)


def write_elements(x: DistArray, positions: Array, values: Array, store: Store | None = None) -> DistArray:
    """Write elements at positions; if a position occurs several times, in the order of ranks and positions.

    Parameters
    ----------
    x : DistArray
        The array, which is written in place unless an axis is cyclic.
    positions : ndarray
        This rank's positions, all within the array.
    values : ndarray
        The elements to write, in the shape of `positions`.
    store : callable, optional
        A function like ``numpy.add.at`` that is called instead of an assignment.

    Returns
    -------
    DistArray
        `x`, or the array that replaces it.
    """
    aligned = as_blocks(x)
    owners, local = _owners(aligned, positions.reshape(-1), nearest=False)
    order, wanted, _ = group_by_owner(owners, local, x.comm.size)
    sorted_values = values.reshape(-1)[order]
    ends = np.cumsum([0, *(len(w) for w in wanted)])
    sends = [[w, sorted_values[a:b]] for w, (a, b) in zip(wanted, pairwise(ends), strict=True)]
    for rank, like in enumerate(_first_copies(aligned.layout)):
        sends[rank] = sends[like]
    received = sparse_alltoallv(
        x.comm, sends, exchange_counts(x.comm, [len(positions) for positions, _ in sends])
    )
    for at, some in received:
        elements, there = _flat_view(aligned.local, at)
        if store is None:
            elements[there] = some
        else:
            store(elements, there, some)
    return aligned


def as_blocks(x: DistArray) -> DistArray:
    """Return the array redistributed to blocks if it has cyclic axes, else the array itself."""
    has_cyclic = any(isinstance(spec, Cyclic) for spec in x.layout.axes)
    return x.redistribute(without_cyclic(x.layout)) if has_cyclic else x


def _flat_view(elements: Array, at: Array) -> tuple[Array, Any]:
    """Return a view of elements, and the index into it that selects the positions `at` in C order."""
    return (
        (elements.reshape(-1), at)
        if elements.flags.c_contiguous
        else (elements, np.unravel_index(at, elements.shape))
    )


def _elements_at(elements: Array, at: Array) -> Array:
    view, there = _flat_view(elements, at)
    chosen: Array = view[there]
    return chosen


def _first_copies(layout: Layout) -> list[int]:
    """Return for each rank the first one that owns the same elements."""
    ranks = [0] * layout.grid.size
    shape = layout.grid.shape
    for coords in product(*map(range, shape)):
        first = [0 if axis in layout.copy_axes else c for axis, c in enumerate(coords)]
        ranks[layout.grid.rank(coords)] = layout.grid.rank(first)
    return ranks


def _owners(x: DistArray, positions: Array, nearest: bool) -> tuple[Array, Array]:
    """Return the ranks that own positions, and the positions within the elements of their owners.

    If several ranks have copies of an element, the owner is the one nearest to this rank (`nearest`), or the
    first.
    """
    grid = x.layout.grid
    coords = grid.coords(x.comm.rank)
    steps = [math.prod(grid.shape[axis + 1 :]) for axis in range(grid.ndim)]
    owners = np.full(positions.shape, sum(coords[a] * steps[a] for a in x.layout.copy_axes) if nearest else 0)
    local: Array = np.zeros(positions.shape, np.int64)
    remainder = positions
    for axis in range(x.ndim):
        at, remainder = (
            np.divmod(remainder, math.prod(x.shape[axis + 1 :]))
            if axis < x.ndim - 1
            else (remainder, remainder)
        )
        spec, part = x.layout.axes[axis], x.layout.parts[axis]
        if isinstance(spec, Whole) or part.parts == 1:
            local = local * part.extent + at
            continue
        starts = np.array([part.to_global(k, 0) for k in range(part.parts)] + [part.extent])
        which = np.searchsorted(starts[1:], at, "right")  # past the empty ones
        local = local * np.diff(starts)[which] + at - starts[which]
        owners += which * steps[spec.grid_axis]
    return owners, local
