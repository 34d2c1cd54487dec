"""Indexing of handles: basic keys compose windows, all others go through NumPy on the memory."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from . import config, operands, trace, window
from .handle import Handle, derive, large


def plain_key(key: Any) -> Any:
    """The key with our arrays and NumPy's integers made plain."""
    if type(key) is tuple:
        return tuple(plain_key(k) for k in key)
    if isinstance(key, Handle):
        key = key._settled()
    if isinstance(key, np.ndarray) and key.ndim == 0 and key.dtype.kind in "iu":
        return int(key)
    if isinstance(key, np.integer):
        return int(key)
    if isinstance(key, slice):
        return slice(plain_key(key.start), plain_key(key.stop), plain_key(key.step))
    if not isinstance(key, (bool, int, np.generic, np.ndarray)) and hasattr(key, "__index__"):
        return operator.index(key)
    return key


def get(x: Handle, key: Any) -> Any:
    """``x[key]`` of a large handle."""
    if type(key) is tuple and len(key) == len(x._shape) != 0:
        found = window.sliced(x._shape, x._index, key)
        if found is not None:
            y = large(type(x), x._store, *found)
            y._readonly = x._readonly
            return y
    if not window.is_basic(key):
        key = plain_key(key)
        if not window.is_basic(key):
            return _take(x, key)
    shape, index = window.getitem(x._shape, x._window(), key)
    if not shape and not _has_ellipsis(key):
        return element(x, index)
    y = large(type(x), x._store, shape, index)
    y._readonly = x._readonly
    return y


def element(x: Handle, index: window.Index) -> Any:
    """The NumPy scalar at a window of one element."""
    store = x._store
    rec = store.family.dirty
    if rec is not None:
        rec.settle()
    if store.mem is None:
        return large(type(x), store, (), index)._settled()[()]
    return store.mem[tuple([offset for offset, _, _ in index])]


def _has_ellipsis(key: Any) -> bool:
    return key is Ellipsis or (type(key) is tuple and any(k is Ellipsis for k in key))


def _take(x: Handle, key: Any) -> Any:
    """Advanced indexing and fields: through NumPy."""
    a = x._settled()
    result = a[key]
    operands.missing("getitem", (x,))
    if isinstance(result, np.ndarray):
        return derive(x, result, config.current().eager_below)
    return result


def put(x: Handle, key: Any, value: Any) -> None:
    """``x[key] = value``."""
    if x._small is not None:
        key = plain_key(key)
        x._small[key] = operands.settled(value)
        return
    if type(key) is tuple and len(key) == len(x._shape) != 0:
        found = window.sliced(x._shape, x._index, key)
        if found is not None:
            y = large(type(x), x._store, *found)
            y._readonly = x._readonly
            trace.assign(y, value)
            return
    if not window.is_basic(key):
        key = plain_key(key)
        if not window.is_basic(key):
            operands.missing("setitem", (x,))
            value = operands.settled(value)
            x._writable()[key] = value
            return
    shape, index = window.getitem(x._shape, x._window(), key)
    if not shape and not _has_ellipsis(key) and (x._clean() or not np.isscalar(value)):
        value = operands.settled(value)
        x._writable()[key] = value
        return
    y = large(type(x), x._store, shape, index)
    y._readonly = x._readonly
    trace.assign(y, value)
