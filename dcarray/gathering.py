"""Gathering what a mask chooses: ``x[mask]`` in plain arrays, on all cores."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import config
from .handle import NDArray
from .lowering.memory import address_of, empty
from .routines import Compiled
from .store import compilable

__all__ = ["gathered"]

_SIZES = 1, 2, 4, 8, 16  # bytes of an element
_FEWEST = 4  # times the elements below which calls run in NumPy
_SECONDS = 2e-9  # that NumPy needs for an element
_COUNTED, _MOVED = 16, 4  # elements that are so much work as a scheduler's unit


def _compiled(size: int) -> Compiled:
    def routine() -> Any:
        from .lowering.llvm.compress import compress

        return compress(size)

    return Compiled(routine)


_ROUTINES = {size: _compiled(size) for size in _SIZES}


def gathered(a: NDArray, m: NDArray) -> NDArray:
    """The elements of an array that a mask chooses, in an array of their own."""
    plain = a.shape == m.shape and a.flags.c_contiguous and m.flags.c_contiguous and compilable(a)
    large = a.size >= max(_FEWEST * config.current().eager_below, 1)
    launch = _ROUTINES[a.itemsize].launch(_SECONDS * a.size) if plain and large else None
    return _moved(launch, a, m) if launch is not None else a[m]


def _moved(launch: Any, a: NDArray, mask: NDArray) -> NDArray:
    from .lowering.llvm.compress import BLOCK

    threads = config.current().threads
    blocks = -(-a.size // BLOCK)
    ends = np.zeros(blocks + 1, np.int64)
    addresses = [address_of(mask), address_of(a)]
    launch(launch.pack(blocks, BLOCK // _COUNTED, 0, 1, *addresses, address_of(ends) + 8, 0, a.size), threads)
    np.cumsum(ends, out=ends)
    result = empty((int(ends[-1]),), a.dtype)
    addresses += [address_of(ends), address_of(result)]
    launch(launch.pack(0, 1, blocks, BLOCK // _MOVED, *addresses, a.size), threads)
    return result
