"""Selection by a mask, ``x[mask]`` of plain arrays, by compiled code on all cores.

While that code is being compiled, NumPy finds the selected indices, and takes the elements.

A mask of the first axes selects rows, which are moved as one element if a row is not larger than the largest
dtype.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.core import config
from dcarray.core.handle import NDArray
from dcarray.core.store import compilable
from dcarray.lowering.runtime.array_memory import address_of
from dcarray.tiering import policy

from .routines import Compiled

__all__ = ["BLOCK", "compress"]

BLOCK = 16384
_ONE_BLOCK = 2 * BLOCK  # up to so many elements are one block
_SIZES = 1, 2, 4, 8, 16  # bytes of a row
_SECONDS = 2e-9  # that NumPy needs for an element
_ELEMENTS_PER_UNIT = 8  # elements that are one of the scheduler's units of work


_ROUTINES = {size: Compiled("compress", "compress", size) for size in _SIZES}


def compress(a: NDArray, m: NDArray) -> NDArray:
    """Return ``a[m]`` by a mask of the first axes, as a new array."""
    plain = a.shape[: m.ndim] == m.shape and a.flags.c_contiguous and m.flags.c_contiguous and compilable(a)
    size = m.size
    if not plain or policy.eager(a.size, policy.GATHER):
        return a[m]
    row = a.nbytes // size
    launch = None
    if row in _ROUTINES and not address_of(a) % min(row, 8):
        launch = _ROUTINES[row].launch(_SECONDS * size)
    if launch is not None:
        return _run(launch, a, m, row, config.current().threads)
    rows = a.reshape(size, *a.shape[m.ndim :])
    return rows.take(m.reshape(-1).nonzero()[0], 0)  # without branches: several times as fast as NumPy's own


def _run(launch: Any, a: NDArray, mask: NDArray, row: int, threads: int) -> NDArray:
    size = mask.size
    length = size if size <= _ONE_BLOCK else BLOCK
    blocks = -(-size // length)
    ends = np.zeros(blocks + 1, np.int64)
    masks, values, counts = address_of(mask), address_of(a), address_of(ends)
    work = length // _ELEMENTS_PER_UNIT
    launch(launch.pack(blocks, work, 0, 1, masks, values, counts + 8, 0, size, length), threads)
    if blocks > 1:
        np.add.accumulate(ends, out=ends)
    result = np.empty((int(ends[-1]), *a.shape[mask.ndim :]), a.dtype)
    work = length * (row + 2) // 6  # elements that another core has moved are read from its cache next
    launch(launch.pack(0, 1, blocks, work, masks, values, counts, address_of(result), size, length), threads)
    return result
