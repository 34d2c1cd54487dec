"""Memory of wrapped arrays that compiled code of a site reads, writes and makes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.core.counters import note
from dcarray.core.handle import Handle, large, small
from dcarray.core.processes import communicator
from dcarray.core.store import Store

__all__ = ["evaluated", "wrapped"]

NDArray = np.ndarray[Any, Any]


def evaluated(x: Handle, writing: bool) -> NDArray:
    """Return a wrapped array's memory as a plain array, after pending work; gathered if distributed."""
    if x._small is None and communicator() is not None:
        x._compute()
        head = x._store.family
        if head.remote is not None:
            note("a compiled loop (gathered)", head.size * head.dtype.itemsize)
    return x._writable() if writing else x._evaluated()


def wrapped(a: NDArray, address: int, below: int) -> Any:
    """Return a wrapped array for the plain array ``a`` that a plan has made."""
    if a.size < below:
        return small(ndarray, a)
    store = Store(a.shape, a.dtype, None, a.size)
    store.bind_new(a, address)
    return large(ndarray, store, a.shape, None)
