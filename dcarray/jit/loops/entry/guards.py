"""Guards: hashable keys of the properties of a value that a loop's plan depends on, as a JIT's type
signature.

Each entry into a loop computes the guard of each name's value, so it is cheap.  Values with equal guards have
equal `EntryValue`s; a value without a guard is of a type that compiled code does not support.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from dcarray.api.array import ndarray
from dcarray.core.handle import Handle
from dcarray.core.store import compilable, compiles, writeable
from dcarray.core.strides import c_strides, strides_of

from .entry_values import ArrayType, Constant, EntryValue, ListType, ScalarType
from .globals import ObjectGuard, object_guard
from .lists import ListElements

NDArray = np.ndarray[Any, Any]
ARRAYS = (ndarray, np.ndarray)


class DeviceGuard(NamedTuple):
    """The guard of an array on a device: the device, and the array's dtype and shape; it is contiguous."""

    device: Any
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def guard_of(value: Any) -> Hashable | None:
    """Return the guard of a value; None for a type that compiled code does not support."""
    found = _GUARDS.get(type(value))
    if found is not None:
        return found(value)
    if isinstance(value, np.generic):
        return value.dtype if compiles(value.dtype) else None
    if isinstance(value, np.dtype):
        return ("dtype", value) if compiles(value) else None
    if isinstance(value, Handle) and value._device is not None:
        return _on_device(value)
    return None if isinstance(value, ARRAYS) else object_guard(value)


def _on_device(x: Handle) -> Hashable | None:
    """Return the guard of an array on a device; None of a part of one, and where recordings choose the
    device."""
    a = x._small
    if not x._device.target:
        return None
    if a is not None:
        usable = compilable(a) and writeable(a) and a.flags.c_contiguous
        return DeviceGuard(x._device, a.dtype, a.shape) if usable else None
    if x._readonly:
        return None
    store = x._store
    whole = store is store.family and x._index is None and x._shape == store.shape and store.strides is None
    return DeviceGuard(x._device, store.dtype, x._shape) if store.char and whole else None


def _tuple(value: tuple[Any, ...]) -> Hashable | None:
    guards = tuple([guard_of(v) for v in value])
    if None in guards or any(type(v) in ARRAYS for v in value):
        return None
    return ("tuple", guards)


def _plain(a: NDArray) -> Hashable | None:
    if not compilable(a):
        return None
    return a.dtype, a.shape, a.strides, writeable(a), True


def _wrapped(x: Handle) -> Hashable | None:
    """Return the guard of a wrapped array; what is pending on it stays pending."""
    a = x._small
    if a is None:
        store = x._store
        if not store.char:
            return None
        if x._ndarray is None and store.mem is None:
            strides = tuple([store.dtype.itemsize * s for s in strides_of(x)])
            return store.dtype, x._shape, strides, not x._readonly, False
        a = x._plain_view()
    elif not compilable(a):
        return None
    return a.dtype, a.shape, a.strides, writeable(a), False


_GUARDS: dict[type, Callable[[Any], Hashable | None]] = {
    bool: lambda v: "true" if v else "false",
    int: lambda v: v,
    float: lambda _: "float",
    complex: lambda _: "complex",
    str: lambda v: ("str", v),
    type(None): lambda _: "none",
    tuple: _tuple,
    np.ndarray: _plain,
    ndarray: _wrapped,
    ListElements: lambda v: ("list", v.array.dtype, v.array.shape),
    **dict.fromkeys((FunctionType, BuiltinFunctionType, np.ufunc, type, ModuleType), object_guard),
}


def entry_value(value: Any, guard: Any, same: str | None = None) -> EntryValue:
    """Return the description of a value with this guard; ``same`` is another name that is bound to the same
    array."""
    if isinstance(guard, ObjectGuard):
        return guard.entry_value
    if isinstance(guard, DeviceGuard):
        return ArrayType(guard.dtype, guard.shape, c_strides(guard.shape), True, same)
    if type(value) in ARRAYS:
        dtype, shape, strides, may_write, _ = guard
        return ArrayType(dtype, shape, tuple([s // dtype.itemsize for s in strides]), may_write, same)
    if type(value) is ListElements:
        return ListType(value.array.dtype, value.array.shape)
    if type(value) is tuple:
        return Constant(tuple([entry_value(v, m) for v, m in zip(value, guard[1], strict=True)]))
    if type(value) in (float, complex):
        return ScalarType(np.dtype(type(value)), weak=True)
    if isinstance(value, np.generic):
        return ScalarType(value.dtype)
    return Constant(value)
