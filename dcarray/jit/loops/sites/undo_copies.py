"""Undo copies of arrays that a loop overwrites.

If nearly all elements of an array are equal, such as zeros or an identity matrix before a loop fills it, the
copy holds the most frequent element and the elements that differ from it.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np

NDArray = np.ndarray[Any, Any]
_BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
_CHUNK = 1 << 16  # elements of a chunk, and of the smallest array that is compressed
_RARITY = 16  # of so many elements at most one differs
_SAMPLE = 30  # elements among which the most frequent one is looked for


@cache
def most_copied() -> int:
    """Return the bytes up to which arrays are copied only because a signal may come."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 16


class CompressedCopy:
    """A copy of the elements that an array has now, compressed where most are equal.

    Parameters
    ----------
    a : ndarray
    """

    def __init__(self, a: NDArray) -> None:
        self._differing: list[tuple[int, NDArray, NDArray]] = []  # start of a chunk, indices in it, elements
        bits = _bits(a)
        self._common: Any = None if bits is None else _most_frequent(bits)
        self._whole: NDArray | None = None
        if bits is None or not self._compress(bits):
            self._whole = np.empty(a.shape, a.dtype)
            self._whole[...] = a

    def _compress(self, bits: NDArray) -> bool:
        """Store the most frequent element and those that differ, and return True; False if too many do."""
        left = bits.size // _RARITY
        for start in range(0, bits.size, _CHUNK):
            part = bits[start : start + _CHUNK]
            places = np.flatnonzero(part != self._common)
            left -= places.size
            if left < 0 or places.size > part.size // 2:
                self._differing.clear()
                return False
            if places.size:
                self._differing.append((start, places, part[places]))
        return True

    def restore(self, a: NDArray) -> None:
        """Write the elements back to the array."""
        bits = _bits(a)
        if self._whole is not None or bits is None:
            a[...] = self._whole
            return
        bits.fill(self._common)
        for start, places, values in self._differing:
            bits[start : start + _CHUNK][places] = values


def _most_frequent(bits: NDArray) -> Any:
    """Return the most frequent element of a sample of the array."""
    values, counts = np.unique(bits[:: bits.size // _SAMPLE], return_counts=True)
    return values[counts.argmax()]


def _bits(a: NDArray) -> NDArray | None:
    """Return the elements' bits as a vector of unsigned integers; None: small or not contiguous."""
    integer = _BITS.get(a.itemsize)
    if integer is None or a.size < _CHUNK or not a.flags.c_contiguous:
        return None
    return a.reshape(-1).view(integer)
