"""Reductions with ``where``, ``initial`` or ``out``, made of recorded entries.

Elements that the mask leaves out are replaced by the identity, and the result is combined with the initial
value.  NumPy runs invalid calls, and raises its errors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dcarray.core.handle import Handle
from dcarray.core.strides import axes_of
from dcarray.core.ufunc_loops import UFUNCS, resolve_fold
from dcarray.ir.ops import OPS
from dcarray.tiering import policy

from . import recorder
from .operands import fits, shape_of, write_result

__all__ = ["reduce"]

_EXTREMES = frozenset({"maximum", "minimum", "fmax", "fmin"})


def reduce(
    name: str, x: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, initial: Any, where: Any
) -> Any:
    """Record ``ufunc.reduce`` with any of ``out``, ``initial`` and ``where``.

    Parameters
    ----------
    name : str
        A ufunc of `dcarray.ir.ops` that folds.
    x : Handle
    axis, dtype, out, keepdims, initial, where
        As in `numpy.ufunc.reduce`.

    Returns
    -------
    Handle, scalar or NotImplemented
        NotImplemented if the call cannot be recorded.
    """
    shape = shape_of(x)
    size = math.prod(shape)
    if x._small is not None or not size or not x._store.char or not OPS[name].combine:
        return NotImplemented
    factor = policy.PASS if where is True and axis is None else 1  # as without an initial value
    if policy.eager_call(size, (x, where), factor):
        return NotImplemented
    try:
        loop = resolve_fold(name, x._store.char, dtype)
        axes = axes_of(axis, len(shape))
    except (TypeError, ValueError, IndexError):
        return NotImplemented
    if loop is None or loop[-1] in "eFD" or not axes:
        return NotImplemented
    kept = tuple(1 if k in axes else n for k, n in enumerate(shape) if keepdims or k not in axes)
    if out is not None and not fits(out, kept, loop[-1]):
        return NotImplemented
    masked = where is not True
    if masked and not _is_mask(where, shape):
        return NotImplemented
    begin = _initial_value(name, loop[-1], initial, masked)
    if begin is None or (begin is not _NOTHING and _order_matters(name, begin)):
        return NotImplemented
    if masked:
        x = _fill_unselected(name, x, loop, where, begin)
    result = recorder.reduce(name, x, axis, dtype=dtype, keepdims=keepdims)
    if begin is not _NOTHING and not _is_identity(name, begin):
        result = UFUNCS[name](result, begin)
    return result if out is None else write_result(out, result)


_NOTHING: Any = object()


def _is_mask(where: Any, shape: tuple[int, ...]) -> bool:
    """Whether ``where`` is a boolean array that broadcasts to a shape."""
    if not isinstance(where, Handle) and type(where) is not np.ndarray:
        return False
    if where.dtype != np.bool_ or len(shape_of(where)) > len(shape):
        return False
    return all(n in (1, m) for n, m in zip(shape_of(where)[::-1], shape[::-1], strict=False))


def _initial_value(name: str, char: str, initial: Any, masked: bool) -> Any:
    """Return the initial value in the dtype of the result; ``_NOTHING`` if there is none; None if NumPy has
    to run the call."""
    if initial is np._NoValue:
        if not masked:
            return _NOTHING
        identity = OPS[name].identity  # with a mask NumPy begins with it
        return None if identity is None else np.asarray(identity).astype(char)[()]
    if initial is None or not isinstance(initial, (bool, int, float, np.generic)):
        return None
    begin = np.empty((), char)
    try:
        begin[()] = initial
    except (TypeError, ValueError, OverflowError):
        return None
    return begin[()]


def _order_matters(name: str, begin: Any) -> bool:
    """Whether the result depends on where the initial value enters the reduction: floating-point products
    follow NumPy's order, and sums begin with it."""
    if begin.dtype.kind != "f":
        return False
    return bool(begin != 1 if name == "multiply" else name == "add" and (begin != 0 or np.signbit(begin)))


def _is_identity(name: str, begin: Any) -> bool:
    """Whether a value is the identity of a reduction; 0.0 is not that of a sum, since it changes -0.0."""
    identity = OPS[name].identity
    return identity is not None and (begin.dtype.kind != "f" or name != "add") and bool(begin == identity)


def _fill_unselected(name: str, x: Any, loop: str, where: Any, begin: Any) -> Any:
    """Return ``x`` with the identity where the mask leaves elements out."""
    # the result of an extreme is combined with ``begin`` in any case
    rest = begin if name in _EXTREMES else np.asarray(OPS[name].identity).astype(loop[-1])[()]
    if loop[0] != loop[-1]:
        rest = np.asarray(rest).astype(loop[0])[()]
    if x._store.char != loop[0]:
        x = recorder.cast(x, np.dtype(loop[0]))
    return recorder.elementwise("where", (where, x, rest))
