"""Arrays over memory inside objects of NumPy or Python, given by its address."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

__all__ = ["memory_at"]


def memory_at(address: int, dtype: Any, size: int) -> Any:
    """Return an array of the memory at an address."""
    bytes_ = (ctypes.c_char * (size * np.dtype(dtype).itemsize)).from_address(address)
    return np.frombuffer(bytes_, dtype)
