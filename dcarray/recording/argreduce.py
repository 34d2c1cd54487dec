"""`numpy.argmax` and `numpy.argmin`, recorded."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dcarray.core import config
from dcarray.core.strides import order_of, strides_of
from dcarray.tiering import policy

from . import recorder
from .operands import NoCompiledForm, RunEagerly, kind_of, operand, shape_of
from .session import LOCK, recording

__all__ = ["argreduce"]


def argreduce(name: str, x: Any, axis: int | None, keepdims: bool) -> Any:
    """Record the search for the index of the first extremum along an axis, or in the flattened array.

    Parameters
    ----------
    name : str
        ``"argmax"`` or ``"argmin"``.
    x : Handle
        A large array that is not empty.
    axis : int or None
        Counted from 0.
    keepdims : bool

    Returns
    -------
    Handle, scalar or None
        None if the search is not recorded, so that NumPy has to run it.
    """
    shape = shape_of(x)
    if x._small is not None or not shape:
        return None
    if _faster_eagerly(x, shape, axis):
        return None
    axes = tuple(range(len(shape))) if axis is None else (axis,)
    with LOCK, recording() as rec:
        try:
            kind = kind_of(x)
            if kind not in _KINDS:
                raise NoCompiledForm
            order = None if axis is None else order_of((x,), shape)
            if order is not None:
                permuted = argreduce(name, x.transpose(order), order.index(axis), keepdims)
                return recorder.restore_axes(permuted, order, axes, keepdims)
            arg = operand(rec, x, shape, kind)
        except RunEagerly:
            return None
        return recorder.record_fold(rec, x, arg, name, f"{kind}->{_INDEX}", axes, keepdims)


_INDEX = np.dtype(np.intp).char
_KINDS = frozenset("?bhilqBHILQfd")


def _faster_eagerly(x: Any, shape: tuple[int, ...], axis: int | None) -> bool:
    """Whether NumPy's search at once is probably faster than a kernel, given the state of the values.  NumPy
    reads at the speed of memory, but only along the axis of neighbours."""
    if not config.current().eager_below:
        return False
    size = math.prod(shape)
    if not x._idle():
        return policy.eager(size, policy.AT_MEMORY_SPEED if axis is None else policy.PASS)
    if axis is None or policy.eager(size, policy.ACROSS):
        return True
    return strides_of(x)[axis] == min(strides_of(x))
