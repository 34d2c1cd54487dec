"""Convolutions and segmented reductions of a line that is cut over many ranks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import row_layout
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Block, Layout
from dcarray.comm.transport.protocol import Array

from .fancy_indexing import read_elements

__all__ = ["convolve", "reduceat"]


def convolve(x: DistArray, v: Array, mode: str, function: Callable[[Array, Array, str], Any]) -> DistArray:
    """``numpy.convolve`` or ``correlate`` with a shorter line; each rank requests the elements before its
    part.

    Parameters
    ----------
    x : DistArray
        Of one axis.
    v : ndarray
        The other line, the same on all ranks, not empty and not longer.
    mode : {"full", "same", "valid"}
        As for NumPy.
    function : callable
        NumPy's, called with mode ``"full"``.

    Returns
    -------
    DistArray
        In blocks, nearly even ones.
    """
    comm, n, m = x.comm, x.shape[0], v.size
    aligned = x.redistributed(row_layout(x.shape, comm.size))
    part = aligned.layout.parts[0]
    first = {"full": 0, "same": (m - 1) // 2, "valid": m - 1}[mode]
    length = {"full": n + m - 1, "same": n, "valid": n - m + 1}[mode]
    ends = [*(part.to_global(k, 0) for k in range(comm.size)), n + m - 1]
    ends = [min(max(end - first, 0), length) for end in ends]  # of the ranks' parts of the result
    begin = part.to_global(comm.rank, 0)
    low, high = ends[comm.rank] + first, ends[comm.rank + 1] + first  # in the full result
    first_read = max(0, min(low, begin) - m + 1)
    elements = np.concatenate([read_elements(aligned, np.arange(first_read, begin)), aligned.local])
    if not elements.size:
        elements = np.zeros(1, x.dtype)
    values = np.asarray(function(elements, v, "full"))[low - first_read : high - first_read]
    sizes = tuple(b - a for a, b in pairwise(ends))
    return DistArray(comm, Layout((length,), ProcessGrid((comm.size,)), [Block(0, sizes)]), values)


def reduceat(x: DistArray, ufunc: np.ufunc, starts: Array, dtype: Any = None) -> DistArray:
    """Reductions of segments of a line, like ``ufunc.reduceat``; each is computed by the rank where it
    begins.

    Parameters
    ----------
    x : DistArray
        Of one axis.
    ufunc : numpy.ufunc
        Of two operands.
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
    aligned = x.redistributed(Layout(x.shape, grid, [Block(0, tuple(b - a for a, b in pairwise(bounds)))]))
    here = starts[cuts[comm.rank] : cuts[comm.rank + 1]] - bounds[comm.rank]
    values = ufunc.reduceat(
        aligned.local if here.size else np.zeros(1, x.dtype), here if here.size else [0], 0, dtype
    )
    sizes = tuple(b - a for a, b in pairwise(cuts))
    return DistArray(comm, Layout((starts.size,), grid, [Block(0, sizes)]), values[: here.size])
