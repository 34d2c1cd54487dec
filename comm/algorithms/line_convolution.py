"""Convolution of a distributed vector with a shorter vector that is the same on every rank."""

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

__all__ = ["convolve"]


def convolve(x: DistArray, v: Array, mode: str, function: Callable[[Array, Array, str], Any]) -> DistArray:
    """Return the result of ``numpy.convolve`` or ``correlate`` with a shorter vector.

    Each rank gets the elements before its own part from other ranks.

    Parameters
    ----------
    x : DistArray
        The longer vector.
    v : ndarray
        The shorter vector, the same on all ranks, not empty and not longer than `x`.
    mode : {"full", "same", "valid"}
        As for NumPy.
    function : callable
        NumPy's function, which is called with mode ``"full"``.

    Returns
    -------
    DistArray
        The result, in nearly even blocks.
    """
    comm, n, m = x.comm, x.shape[0], v.size
    aligned = x.redistribute(row_layout(x.shape, comm.size))
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
