"""Scans (`numpy.cumsum`, `numpy.ufunc.accumulate`), recorded."""

from __future__ import annotations

import math
from typing import Any

from dcarray.core.strides import order_of, strides_of
from dcarray.core.ufunc_loops import resolve_fold
from dcarray.tiering import policy

from . import recorder
from .operands import NoCompiledForm, RunEagerly, commit, fits, kind_of, operand, shape_of, write_result
from .session import LOCK, recording

__all__ = ["accumulate"]

_FOLDS = frozenset(
    {"add", "multiply", "maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or", "logical_xor"}
    | {"bitwise_and", "bitwise_or", "bitwise_xor"}
)


def accumulate(name: str, x: Any, axis: int, dtype: Any = None, out: Any = None) -> Any:
    """Record ``ufunc.accumulate`` along one axis.

    Parameters
    ----------
    name : str
        A ufunc of `dcarray.ir.ops` that folds.
    x : Handle
    axis : int
        Counted from 0.
    dtype, out
        As in `numpy.ufunc.accumulate`.

    Returns
    -------
    Handle, ndarray or NotImplemented
        NotImplemented if the call cannot be recorded.
    """
    shape = shape_of(x)
    if x._small is not None or name not in _FOLDS or not math.prod(shape):
        return NotImplemented
    neighbours = x.dtype.kind in "biu" and abs(strides_of(x)[axis]) == 1  # which NumPy adds up as fast
    if policy.eager_call(math.prod(shape), (x,), policy.AT_MEMORY_SPEED if neighbours else 1):
        return NotImplemented
    with LOCK, recording() as rec:
        try:
            loop = resolve_fold(name, kind_of(x), dtype)
            if loop is None or loop[-1] in "eFD":
                raise NoCompiledForm
            if out is not None and not fits(out, shape, loop[-1]):
                raise RunEagerly
            order = order_of((x,), shape)
            if order is not None:
                result = accumulate(name, x.transpose(order), order.index(axis), dtype)
                result = result.transpose([order.index(k) for k in range(len(order))])
            else:
                arg = operand(rec, x, shape, loop[0])
                result, slot, _ = recorder.result_of(type(x), rec, shape, loop[-1])
                commit(rec, ("fold", f"accumulate.{name}", loop, shape, (axis,), True, slot, arg))
        except (RunEagerly, TypeError):
            return NotImplemented
    return result if out is None else write_result(out, result)
