"""Scans (cumulative sums, products, ...) and segmented reductions of distributed arrays."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import row_layout, without_cyclic
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Block, Layout, Whole
from dcarray.comm.transport.protocol import Array

from .axis_reductions import exclusive_scan, grid_line
from .reductions import normalised_axes

__all__ = ["reduceat", "scan"]


def scan(x: DistArray, ufunc: np.ufunc, axis: int, dtype: Any = None) -> DistArray:
    """Return the scan of a ufunc along an axis, like ``ufunc.accumulate``.

    Each rank scans its own part and combines it with the total of the ranks before it.  So along a cut axis
    floating-point sums differ from NumPy's in their last bits, with smaller errors.

    Parameters
    ----------
    x : DistArray
        The array.
    ufunc : numpy.ufunc
        An associative ufunc: ``numpy.add``, ``multiply``, ``maximum``, ...
    axis : int
        The axis.
    dtype : dtype, optional
        As for NumPy: of the result and of the computation.

    Returns
    -------
    DistArray
        Distributed as `x`, with even blocks for cyclic axes.

    Raises
    ------
    AxisError, TypeError
        As NumPy's, on all ranks.
    """
    (a,) = normalised_axes(axis, x.ndim)
    aligned = x.redistribute(without_cyclic(x.layout))
    spec, part = aligned.layout.axes[a], aligned.layout.parts[a]
    scanned: Array = np.asarray(ufunc.accumulate(aligned.local, axis=a, dtype=dtype), order="C")
    if not isinstance(spec, Whole) and part.parts > 1 and x.shape[a]:
        last = (slice(None),) * a + (slice(-1, None),)
        total = scanned[last]
        if not scanned.shape[a]:
            total = np.zeros([1 if b == a else n for b, n in enumerate(scanned.shape)], scanned.dtype)
        takes_part = [part.size(k) > 0 for k in range(part.parts)]
        carried = exclusive_scan(
            grid_line(x.comm, aligned.layout.grid, spec.grid_axis), total, ufunc, takes_part
        )
        if carried is not None:
            scanned = np.asarray(ufunc(carried, scanned)).astype(scanned.dtype, copy=False)
    return DistArray(x.comm, aligned.layout, scanned)


def reduceat(x: DistArray, ufunc: np.ufunc, starts: Array, dtype: Any = None) -> DistArray:
    """Return the reductions of segments of a vector, like ``ufunc.reduceat``.

    Each segment is reduced by the rank that has its first element.

    Parameters
    ----------
    x : DistArray
        The vector.
    ufunc : numpy.ufunc
        A ufunc of two operands.
    starts : ndarray
        The beginnings of segments, strictly ascending, within the array; the same on all ranks.
    dtype : dtype, optional
        As for NumPy.

    Returns
    -------
    DistArray
        In blocks.
    """
    comm, n = x.comm, x.shape[0]
    part = row_layout(x.shape, comm.size).parts[0]
    first_segments = np.searchsorted(starts, [part.to_global(k, 0) for k in range(1, comm.size)])
    cuts = [0, *first_segments.tolist(), starts.size]
    bounds = [0, *(int(starts[k]) if k < starts.size else n for k in cuts[1:-1]), n]
    grid = ProcessGrid((comm.size,))
    aligned = x.redistribute(Layout(x.shape, grid, [Block(0, tuple(b - a for a, b in pairwise(bounds)))]))
    here = starts[cuts[comm.rank] : cuts[comm.rank + 1]] - bounds[comm.rank]
    values = ufunc.reduceat(
        aligned.local if here.size else np.zeros(1, x.dtype), here if here.size else [0], 0, dtype
    )
    sizes = tuple(b - a for a, b in pairwise(cuts))
    return DistArray(comm, Layout((starts.size,), grid, [Block(0, sizes)]), values[: here.size])
