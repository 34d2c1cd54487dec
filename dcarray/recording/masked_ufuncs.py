"""Ufuncs with ``where=``, recorded as operations on all elements.

NumPy computes the selected elements only; kernels compute all, with ones as operands of the unselected ones,
so that these raise no floating-point exceptions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.core.handle import Handle
from dcarray.core.store import COMPILED

from . import masked_assignment, recorder
from .operands import SCALARS

__all__ = ["record_masked", "scalar_result"]

_KNOWN: dict[Any, Any] = {}  # results of operations on scalars


def scalar_result(function: Callable[..., Any], rest: list[Any]) -> Any:
    """Return the result of a ufunc on scalars, or None if it warns or raises."""
    key = (function, *[(type(r), r.tobytes() if isinstance(r, np.generic) else repr(r)) for r in rest])
    if key in _KNOWN:
        return _KNOWN[key]
    # NumPy multiplies single complex numbers in another way
    values = [np.full(1, r) if isinstance(r, np.complexfloating) else r for r in rest]
    with np.errstate(all="raise"):
        try:
            value = function(*values)
        except Exception:  # the operation itself will raise it
            value = None
    value = value[0] if isinstance(value, np.ndarray) else value
    if len(_KNOWN) > 1000:
        _KNOWN.clear()
    _KNOWN[key] = value if isinstance(value, np.generic) else None
    return _KNOWN[key]


def record_masked(name: str, function: np.ufunc, inputs: tuple[Any, ...], mask: Any, out: Any) -> bool:
    """Record ``function(*inputs, out=out, where=mask)``; False if it cannot be recorded."""
    if not isinstance(out, Handle) or out._small is not None or out._readonly or not out._store.char:
        return False
    plain = type(mask) is np.ndarray or isinstance(mask, Handle)
    if not plain or mask.dtype != np.bool_ or mask.shape != out.shape or not mask.shape:
        return False
    if any(
        not isinstance(x, SCALARS) and (x.dtype.char not in COMPILED or x.dtype.char == "e") for x in inputs
    ):
        return False
    arrays = [isinstance(x, Handle) or type(x) is np.ndarray for x in inputs]
    if not any(arrays) or any(x.shape != out.shape for x, a in zip(inputs, arrays, strict=True) if a):
        return False
    ones = [masked_assignment.ONES[x.dtype.char] if a else x for x, a in zip(inputs, arrays, strict=True)]
    value = scalar_result(function, ones)
    if value is None or not np.can_cast(value.dtype, out.dtype, "same_kind"):
        return False
    if not any(isinstance(x, Handle) for x in (mask, *inputs)):
        return False
    safe = [
        x if not array
        else recorder.elementwise("where", (mask, x, one))
        if isinstance(mask, Handle) or isinstance(x, Handle)
        else np.where(mask, x, one)
        for x, one, array in zip(inputs, ones, arrays, strict=True)
    ]  # fmt: skip
    if not any(isinstance(x, Handle) for x in safe):
        return False
    result = recorder.elementwise(name, tuple(safe))
    if not isinstance(result, Handle):
        return False
    return recorder.assign_where(
        out, mask, result if result.dtype == out.dtype else recorder.cast(result, out.dtype)
    )
