"""Gathering what a mask chooses: ``x[mask]`` in plain arrays, on all cores."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import config
from .handle import NDArray
from .lowering.memory import address_of, empty
from .routines import Compiled
from .store import compilable

__all__ = ["BLOCK", "gathered"]

BLOCK = 16384
_ALONE = 2 * BLOCK  # up to so many elements are one block
_SIZES = 1, 2, 4, 8, 16  # bytes of an element
_FEWEST = 2  # times the elements below which calls run in NumPy
_SECONDS = 2e-9  # that NumPy needs for an element
_COUNTED = 8  # elements that are so much work as a scheduler's unit


def _compiled(size: int) -> Compiled:
    def routine() -> Any:
        from .lowering.llvm.compress import compress

        return compress(size)

    return Compiled(routine)


_ROUTINES = {size: _compiled(size) for size in _SIZES}


def gathered(a: NDArray, m: NDArray) -> NDArray:
    """The elements of an array that a mask chooses, in an array of their own."""
    plain = a.shape == m.shape and a.flags.c_contiguous and m.flags.c_contiguous and compilable(a)
    size = a.size
    options = config.current()
    if not plain or size < max(_FEWEST * options.eager_below, 1):
        return a[m]
    launch = _ROUTINES[a.itemsize].launch(_SECONDS * size)
    return a[m] if launch is None else _moved(launch, a, m, options.threads)


def _moved(launch: Any, a: NDArray, mask: NDArray, threads: int) -> NDArray:
    size = a.size
    length = size if size <= _ALONE else BLOCK
    blocks = -(-size // length)
    ends = np.zeros(blocks + 1, np.int64)
    masks, values, counts = address_of(mask), address_of(a), address_of(ends)
    work = length // _COUNTED
    launch(launch.pack(blocks, work, 0, 1, masks, values, counts + 8, 0, size, length), threads)
    if blocks > 1:
        np.add.accumulate(ends, out=ends)
    result = empty((int(ends[-1]),), a.dtype)
    work = length * (a.itemsize + 2) // 2  # it is memory that takes the time, more than in kernels
    launch(launch.pack(0, 1, blocks, work, masks, values, counts, address_of(result), size, length), threads)
    return result
