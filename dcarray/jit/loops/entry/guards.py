"""Guards: hashable keys of the properties of a value that a loop's plan depends on, as a JIT's type
signature.

Each entry into a loop computes the guard of each name's value, so it is cheap.  Values with equal guards have
equal `EntryValue`s; a value without a guard is of a type that compiled code does not support.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from dcarray.core.store import compilable, compiles, writeable
from dcarray.core.strides import c_strides

from . import generators
from .entry_values import ArrayType, Constant, EntryValue, ListType, ScalarType
from .globals import ObjectGuard, object_guard
from .lists import ListElements

NDArray = np.ndarray[Any, Any]
ARRAYS: set[type] = {np.ndarray}
"""The classes of arrays on the host; with `wrapped_guards` also that of wrapped ones."""


class DeviceGuard(NamedTuple):
    """The guard of an array on a device: the device, and the array's dtype and shape; it is contiguous."""

    device: Any
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def guard_of(value: Any) -> Hashable | None:
    """Return the guard of a value; None for a type that compiled code does not support."""
    kind = type(value)  # an object of the program may have code that runs when it is asked for its class
    found = GUARDS.get(kind)
    if found is not None:
        return found(value)
    if issubclass(kind, np.generic):
        return value.dtype if compiles(value.dtype) else None
    if issubclass(kind, np.dtype):
        return ("dtype", value) if compiles(value) else None
    if knows_wrapped():
        from . import wrapped_guards

        if kind in GUARDS:
            return GUARDS[kind](value)
        if wrapped_guards.is_handle(value):
            return wrapped_guards.on_device(value)
    if issubclass(kind, np.ndarray) or hasattr(kind, "__getattr__"):
        return None
    if type(kind.__getattribute__) is FunctionType:
        return None
    return generators.guard(value) or object_guard(value)


def knows_wrapped() -> bool:
    """Whether values may be wrapped arrays: their package is loaded."""
    return "dcarray.api.array" in sys.modules


def _tuple(value: tuple[Any, ...]) -> Hashable | None:
    guards = tuple([guard_of(v) for v in value])
    if None in guards or any(type(v) in ARRAYS for v in value):
        return None
    return ("tuple", guards)


def _slice(*ends: Any) -> Hashable | None:
    return ("slice", ends) if all(end is None or type(end) is int for end in ends) else None


def _plain(a: NDArray) -> Hashable | None:
    if not compilable(a):
        return None
    return a.dtype, a.shape, a.strides, writeable(a), True


GUARDS: dict[type, Callable[[Any], Hashable | None]] = {
    bool: lambda v: "true" if v else "false",
    int: lambda v: v,
    float: lambda _: "float",
    complex: lambda _: "complex",
    str: lambda v: ("str", v),
    type(None): lambda _: "none",
    tuple: _tuple,
    np.ndarray: _plain,
    slice: lambda v: _slice(v.start, v.stop, v.step),
    list: lambda v: None if v else "empty list",  # others are converted
    ListElements: lambda v: ("list", v.array.dtype, v.shape, v.mixed, v.ragged, v.of_tuples),
    ObjectGuard: lambda v: v if v.holds() else None,  # of a function that is rewritten
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
    if type(guard) is tuple and guard[0] == "generator":
        return generators.described(guard)
    if type(value) is ListElements:
        return ListType(value.array.dtype, value.shape, value.mixed, value.ragged, value.of_tuples)
    if type(value) is tuple:
        return Constant(tuple([entry_value(v, m) for v, m in zip(value, guard[1], strict=True)]))
    if type(value) in (float, complex):
        return ScalarType(np.dtype(type(value)), weak=True)
    if isinstance(value, np.generic):
        return ScalarType(value.dtype)
    return Constant(value)
