"""Assignments by masks, recorded: ``x[mask] = v`` is ``x = where(mask, v, x)`` in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.core.handle import Handle
from dcarray.core.store import COMPILED

from . import fast_path, recorder
from .operands import DTYPES, SCALARS, shape_of

_BOOL = np.dtype(bool)
ONES = {char: dtype.type(1) for char, dtype in DTYPES.items()}
_ONE = np.ones(1, bool)


def is_mask(x: Any, key: Any) -> bool:
    """Whether a key is a mask of the first axes of ``x``."""
    if isinstance(key, Handle):
        dtype, shape = key.dtype, shape_of(key)
    elif type(key) is np.ndarray:
        dtype, shape = key.dtype, key.shape
    else:
        return False
    return dtype == _BOOL and len(shape) > 0 and x._shape[: len(shape)] == shape


def assign(x: Any, key: Any, value: Any) -> bool:
    """Record ``x[key] = value``; False if it cannot be recorded."""
    if not is_mask(x, key) or not x._store.char or x._readonly:
        return False
    ndim = len(shape_of(key))
    given = _convert(x, value, x._shape[ndim:])
    if given is None:
        return False
    if ndim < len(x._shape):
        key = key[(..., *(None,) * (len(x._shape) - ndim))]
    return _write(x, key, given)


def _write(x: Any, key: Any, value: Any) -> bool:
    known = isinstance(value, (Handle, np.generic))
    if known and fast_path.elementwise("where", (key, value, x), x) is not None:
        return True
    return recorder.assign_where(x, key, value)


def _convert(x: Any, value: Any, shape: tuple[int, ...]) -> Any:
    """Return a value that can be assigned to ``shape`` elements of ``x``: a scalar is converted to its dtype,
    an array stays as it is.  None if NumPy has to do the assignment."""
    if type(value) in SCALARS or (isinstance(value, np.generic) and _safe(value.dtype, x.dtype)):
        one = np.empty(1, x.dtype)
        one[_ONE] = value  # raises NumPy's errors
        return one[0]
    if not isinstance(value, Handle) and type(value) is not np.ndarray:
        return None
    given = shape_of(value)
    fits = len(given) <= len(shape) and all(
        a in (1, b) for a, b in zip(given[::-1], shape[::-1], strict=False)
    )
    return value if fits and _safe(value.dtype, x.dtype) else None


def _safe(source: np.dtype[Any], dtype: np.dtype[Any]) -> bool:
    return source.char in COMPILED and np.can_cast(source, dtype, "safe")
