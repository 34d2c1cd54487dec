"""Running sums, products and the like along an axis of a distributed array."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import without_cyclic
from dcarray.comm.layout.layouts import Whole
from dcarray.comm.transport.protocol import Array

from .axis_reductions import exclusive_scan, grid_line
from .reductions import normalised_axes

__all__ = ["scan"]


def scan(x: DistArray, ufunc: np.ufunc, axis: int, dtype: Any = None) -> DistArray:
    """The scan of a ufunc along an axis, like ``ufunc.accumulate``.

    Each rank scans its own part and combines it with the total of the ranks before it.  Floating-point sums
    therefore are not NumPy's bit for bit along an axis that is cut: their errors are smaller.

    Parameters
    ----------
    x : DistArray
        The array.
    ufunc : numpy.ufunc
        Associative: ``numpy.add``, ``multiply``, ``maximum``, ...
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
    aligned = x.redistributed(without_cyclic(x.layout))
    spec, part = aligned.layout.axes[a], aligned.layout.parts[a]
    found: Array = np.asarray(ufunc.accumulate(aligned.local, axis=a, dtype=dtype), order="C")
    if not isinstance(spec, Whole) and part.parts > 1 and x.shape[a]:
        last = (slice(None),) * a + (slice(-1, None),)
        total = found[last]
        if not found.shape[a]:
            total = np.zeros([1 if b == a else n for b, n in enumerate(found.shape)], found.dtype)
        takes_part = [part.size(k) > 0 for k in range(part.parts)]
        carried = exclusive_scan(
            grid_line(x.comm, aligned.layout.grid, spec.grid_axis), total, ufunc, takes_part
        )
        if carried is not None:
            found = np.asarray(ufunc(carried, found)).astype(found.dtype, copy=False)
    return DistArray(x.comm, aligned.layout, found)
