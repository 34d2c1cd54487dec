"""Copies of arrays, should they have to be as they were: of one in which nearly all elements are the same,
like the zeros or the identity matrix that a loop fills, that element and what differs from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.lowering.runtime.memory import MAPPED, empty

__all__ = ["Copy"]

NDArray = np.ndarray[Any, Any]
_BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
_LEAST = 1 << 16  # elements of an array that is looked at, and of its parts
_FEW = 16  # at most one of so many elements differs
_SOME = 30  # elements among which the usual one is


class Copy:
    """What an array holds.

    Parameters
    ----------
    a : ndarray
    """

    def __init__(self, a: NDArray) -> None:
        self._places: list[tuple[int, NDArray, NDArray]] = []  # where a part begins, and what differs there
        bits = _bits(a)
        self._same: Any = None if bits is None else _usual(bits)
        self._whole: NDArray | None = None
        if bits is None or not self._found(bits):
            self._whole = empty(a.shape, a.dtype, MAPPED)
            self._whole[...] = a

    def _found(self, bits: NDArray) -> bool:
        """Note what differs from the usual element; False if that is much."""
        left = bits.size // _FEW
        for start in range(0, bits.size, _LEAST):
            part = bits[start : start + _LEAST]
            places = np.flatnonzero(part != self._same)
            left -= places.size
            if left < 0 or places.size > part.size // 2:
                self._places.clear()
                return False
            if places.size:
                self._places.append((start, places, part[places]))
        return True

    def restore(self, a: NDArray) -> None:
        """Have the array hold it again."""
        bits = _bits(a)
        if self._whole is not None or bits is None:
            a[...] = self._whole
            return
        bits.fill(self._same)
        for start, places, values in self._places:
            bits[start : start + _LEAST][places] = values


def _usual(bits: NDArray) -> Any:
    """The most frequent of a few elements."""
    values, counts = np.unique(bits[:: bits.size // _SOME], return_counts=True)
    return values[counts.argmax()]


def _bits(a: NDArray) -> NDArray | None:
    """The elements one after the other as integers, which differ where any bit does; None of what is small or
    lies otherwise."""
    integer = _BITS.get(a.itemsize)
    if integer is None or a.size < _LEAST or not a.flags.c_contiguous:
        return None
    return a.reshape(-1).view(integer)
