"""Marks: what a plan depends on of the value of a name, as something to look a plan up by.

A mark is cheap, since each entry into a loop makes one for each name.  Values with equal marks are known by
the same `Known`.  What has no mark is nothing that compiled code knows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.core.handle import Handle
from dcarray.core.store import compilable, compiles, writeable

from .entry_values import ArrayOf, Known, ScalarOf, Value
from .globals import Token, token

NDArray = np.ndarray[Any, Any]
ARRAYS = (ndarray, np.ndarray)


def mark_of(value: Any) -> Hashable | None:
    """The mark of a value; None if it has none."""
    found = _MARKS.get(type(value))
    if found is not None:
        return found(value)
    if isinstance(value, np.generic):
        return value.dtype if compiles(value.dtype) else None
    if isinstance(value, np.dtype):
        return ("dtype", value) if compiles(value) else None
    return None if isinstance(value, ARRAYS) else token(value)


def _integer(value: int) -> Hashable:
    return value


def _tuple(value: tuple[Any, ...]) -> Hashable | None:
    marks = tuple([mark_of(v) for v in value])
    if None in marks or any(type(v) in ARRAYS for v in value):
        return None
    return ("tuple", marks)


def _plain(a: NDArray) -> Hashable | None:
    if not compilable(a):
        return None
    return a.dtype, a.shape, a.strides, writeable(a), True


def _wrapped(x: Handle) -> Hashable | None:
    """That of a wrapped array, without running what is pending."""
    a = x._small
    if a is None:
        store = x._store
        if not store.char:
            return None
        if x._ndarray is None and store.mem is None:
            return store.dtype, x._shape, _strides(x), not x._readonly, False
        a = x._plain_view()
    elif not compilable(a):
        return None
    return a.dtype, a.shape, a.strides, writeable(a), False


def _strides(x: Handle) -> tuple[int, ...]:
    """The strides of an array whose memory is still to be computed: a window on new memory."""
    item, shape = x._store.dtype.itemsize, x._store.shape
    base = [item * math.prod(shape[k + 1 :]) for k in range(len(shape))]
    found = [0] * len(x._shape)
    for (_, stride, axis), step in zip(x._window(), base, strict=True):
        if axis is not None:
            found[axis] += stride * step
    return tuple(found)


_MARKS: dict[type, Callable[[Any], Hashable | None]] = {
    bool: lambda v: "true" if v else "false",
    int: _integer,
    float: lambda _: "float",
    complex: lambda _: "complex",
    str: lambda v: ("str", v),
    type(None): lambda _: "none",
    tuple: _tuple,
    np.ndarray: _plain,
    ndarray: _wrapped,
    **dict.fromkeys((FunctionType, BuiltinFunctionType, np.ufunc, type, ModuleType), token),
}


def known_of(value: Any, mark: Any, same: str | None = None) -> Known:
    """What is known of a value with a mark; ``same`` is the name of another array that it is."""
    if isinstance(mark, Token):
        return mark.known
    if type(value) in ARRAYS:
        dtype, shape, strides, may_write, _ = mark
        return ArrayOf(dtype, shape, tuple([s // dtype.itemsize for s in strides]), may_write, same)
    if type(value) is tuple:
        return Value(tuple([known_of(v, m) for v, m in zip(value, mark[1], strict=True)]))
    if type(value) in (float, complex):
        return ScalarOf(np.dtype(type(value)), weak=True)
    if isinstance(value, np.generic):
        return ScalarOf(value.dtype)
    return Value(value)
