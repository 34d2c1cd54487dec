"""The memory of arrays: NumPy's own, of which kernels are given the addresses."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

MAPPED = 1 << 17
"""Bytes from which on C libraries may map fresh memory for each array, and return it to the system when the
array dies; the floor keeps the memory of such arrays."""


def address_of(array: np.ndarray[Any, Any]) -> int:
    """Return the address of an array's first element."""
    address: int = array.__array_interface__["data"][0]
    return address


def round_up(extent: int, step: int) -> int:
    """Return the smallest multiple of a step that is not below an extent."""
    return -(-extent // step) * step


def _field_of(array: np.ndarray[Any, Any]) -> int:
    return _word(id(array) + _HEAD).value


# CPython's ndarray object starts with its data pointer (NumPy's C macros rely on it): reading it there is
# ten times as fast as asking for it.  Believed only after a trial.
_word = ctypes.c_size_t.from_address
_HEAD = object.__basicsize__
if sys.implementation.name == "cpython" and all(
    _field_of(trial) == address_of(trial) for trial in (np.zeros(3), np.zeros((4, 5), np.int8)[2:, 3:])
):
    address_of = _field_of


def allocate(shape: Sequence[int], dtype: Any) -> tuple[np.ndarray[Any, Any], int]:
    """Return a new C-contiguous array with arbitrary contents, and its address."""
    array = np.empty(shape, dtype)
    return array, address_of(array)


def require(nbytes: int) -> None:
    """Raise MemoryError if ``nbytes`` bytes of memory cannot be mapped; called before work that would end the
    process if memory runs out."""
    if hasattr(mmap, "MAP_PRIVATE"):
        try:
            mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
        except OSError:
            raise MemoryError(f"Unable to allocate {nbytes} bytes") from None
