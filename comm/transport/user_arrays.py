"""Helpers for arrays that users pass: of NumPy, or others that share memory with ``np.asarray`` of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .protocol import Array

__all__ = ["new_like", "writable_memory"]


def writable_memory(x: Any) -> Array:
    """Return a NumPy array that shares an array's memory, for writing; `TypeError` if that is impossible."""
    if isinstance(x, np.ndarray):
        return x
    if hasattr(x, "__array_ufunc__") and hasattr(x, "__setitem__"):
        memory: Array = np.asarray(x)
        if not memory.size or np.shares_memory(memory, np.asarray(x)):
            return memory
    raise TypeError(f"elements are received into an array, which a {type(x).__name__} is not")


def new_like(x: Any, shape: Sequence[int], dtype: Any = None) -> Any:
    """Return a new array of the same type as another, such as dcarray's, by NumPy's
    ``__array_function__``."""
    if isinstance(x, np.ndarray) or not hasattr(x, "__array_function__"):
        return np.empty(shape, np.asarray(x).dtype if dtype is None else dtype)
    return np.empty_like(x, dtype=dtype, order="C", shape=tuple(shape))
