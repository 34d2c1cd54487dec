"""The classes of arrays on devices: one class for each device, made when it is first asked for.

An array on a device is a wrapped array whose recordings run there.  Its methods record in the session of the
device.  NumPy's functions get arrays of the ordinary class on the same stores, so that the implementations of
functions need not know of devices; their results are converted to the device's class.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from inspect import getattr_static
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from dcarray.api import indexing
from dcarray.api.array import ndarray, wrap
from dcarray.api.dispatch import DISPATCH
from dcarray.api.functions.fallback import SEQUENCES
from dcarray.core.devices import common_device
from dcarray.core.handle import Handle, as_class, small
from dcarray.core.native import BUILT
from dcarray.core.strides import strides_of
from dcarray.core.window import is_basic
from dcarray.recording import products, recorder
from dcarray.recording.session import recording_for

from . import indexed
from . import order_statistics as _statistics  # noqa: F401  (its functions enter the table)
from . import sums_of_products as _products  # noqa: F401  (likewise)
from .function_table import try_kernels
from .interchange import cuda_array_interface, dlpack, dlpack_device
from .kernel_calls import is_large
from .library_calls import try_library

if BUILT:
    from dcarray._native.extension import adopt_device_class

__all__ = ["DeviceArray", "array_class", "call", "of_class", "synchronise"]

_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType, np.ufunc)
_lock = threading.Lock()
_classes: dict[Any, type[ndarray]] = {None: ndarray}


def array_class(device: Any) -> type[ndarray]:
    """Return the class of arrays on a device; the first call makes the class."""
    with _lock:
        cls = _classes.get(device)
        if cls is None:
            cls = _classes[device] = type("ndarray", (DeviceArray,), {"__slots__": (), "_device": device})
            cls.__module__, cls.__qualname__ = ndarray.__module__, ndarray.__qualname__
            if BUILT:
                adopt_device_class(cls)
    return cls


def synchronise() -> None:
    """Wait for the work in the queues of all devices that arrays are on."""
    with _lock:
        known = [device for device in _classes if device is not None]
    for device in known:
        device.synchronise()


class _Call:
    """The conversion of a call's arguments to ordinary wrapped arrays, and of its results back."""

    __slots__ = ("cls", "given", "plain")

    def __init__(self, cls: type[ndarray], plain: bool) -> None:
        self.cls = cls
        self.plain = plain  # whether the function calls others, which get plain arrays
        self.given: dict[int, tuple[Any, Any]] = {}

    def into(self, value: Any) -> Any:
        """Return a value in which ordinary arrays on the same stores replace arrays of the device."""
        if isinstance(value, Handle):
            device = value._device
            if device is None:
                return value
            if self.plain:
                ordinary = value._writable()
            elif device is self.cls._device:
                ordinary = as_class(ndarray, value)
            else:  # it has no axes
                ordinary = small(ndarray, value._evaluated())
            self.given[id(ordinary)] = (ordinary, value)
            return ordinary
        kind = type(value)
        if kind is dict:
            return {k: self.into(v) for k, v in value.items()}
        if isinstance(value, SEQUENCES):
            inner = [self.into(v) for v in value]
            if all(a is b for a, b in zip(inner, value, strict=True)):
                return value
            return tuple(inner) if isinstance(value, tuple) else inner
        return value

    def back(self, value: Any) -> Any:
        """Return a value in which arrays of the device replace ordinary arrays; an array that `into` has made
        is replaced by the original."""
        kind = type(value)
        if kind is ndarray or (self.plain and kind is np.ndarray):
            known = self.given.get(id(value))
            if known is not None:
                return known[1]
            return of_class(self.cls, value)
        if kind is tuple or kind is list:
            inner = [self.back(v) for v in value]
            return value if all(a is b for a, b in zip(inner, value, strict=True)) else kind(inner)
        if kind is dict:
            return {k: self.back(v) for k, v in value.items()}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return kind(*(self.back(v) for v in value))
        return value


def of_class(cls: type[ndarray], value: Any) -> Any:
    """Return an array of the class ``cls`` on the memory of ``value``, a plain or a wrapped array."""
    if type(value) is np.ndarray:
        value = wrap(value)
    return value if cls is ndarray else as_class(cls, value)


def call(cls: type[ndarray], function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function of NumPy, or of this package, on arrays on a device.

    Parameters
    ----------
    cls : type
        The class of the results, if no array among the arguments has axes.
    function : callable
    args, kwargs
        The function's arguments; arrays may be in sequences and dictionaries, at any depth.

    Returns
    -------
    object
        The function's result, with arrays on the device.

    Raises
    ------
    ValueError
        If arrays are on different devices.
    """
    device = common_device(cls._device, args, kwargs)
    cls = array_class(device)
    way = _Call(cls, any(isinstance(v, _FUNCTIONS) for v in (*args, *kwargs.values())))
    with recording_for(device):
        ordinary = [way.into(a) for a in args]
        named = {k: way.into(v) for k, v in kwargs.items()} if kwargs else kwargs
        return way.back(function(*ordinary, **named))


class DeviceArray(ndarray):
    """A wrapped array that records for its device: the base of the classes that `array_class` makes."""

    __slots__ = ()
    __hash__ = None

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        adds = method == "at" and ufunc is np.add and len(inputs) == 3 and is_large(inputs[0])
        if adds and indexed.add_at(type(self), *inputs):
            return None
        return call(type(self), getattr(ufunc, method), inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        device = kwargs.pop("device", None)
        if device is None:
            if func in _METHODS and len(args) == 1 and kwargs.keys() <= _AXES and type(args[0]) is type(self):
                return getattr(args[0], _METHODS[func])(**kwargs)
            for way in (try_library, try_kernels):
                served = way(type(self), func, args, kwargs)
                if served is not NotImplemented:
                    return served
        result = call(type(self), lambda *given, **named: DISPATCH(func, given, named), args, kwargs)
        if device is None or not isinstance(result, Handle):
            return result
        return result.to_device(device)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        how = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        return dlpack(self, ndarray.__dlpack__, **how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack_device(self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return cuda_array_interface(self)


def _placed(cls: type[DeviceArray], result: Any) -> Any:
    """Return the result of a call, with arrays of the class for the processor converted to ``cls``."""
    return result if type(result) is cls else _Call(cls, False).back(result)


def _forwarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method of arrays on devices that calls ``function``, recording for the device."""

    @wraps(function)
    def method(self: DeviceArray, *args: Any, **kwargs: Any) -> Any:
        device = common_device(self._device, self, args, kwargs)
        if device is not self._device:  # this array has no axes
            return call(type(self), function, (self, *args), kwargs)
        with recording_for(device):
            return _placed(type(self), function(self, *args, **kwargs))

    return method


def _sooner(function: Callable[..., Any], way: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that first tries ``way``, a faster implementation of usual calls, which returns None
    for all other calls."""
    usual = _forwarded(function)

    @wraps(function)
    def method(self: DeviceArray, *args: Any, **kwargs: Any) -> Any:
        result = way(self, *args, **kwargs) if self._small is None else None
        return usual(self, *args, **kwargs) if result is None else result

    return method


def _matmul(self: DeviceArray, other: Any) -> Any:
    """Return ``self @ other`` of arrays on one device; None for any other operand."""
    if not _is_own(self, other):
        return None
    with recording_for(self._device):
        return _placed(type(self), products.matmul(self, other))


def _is_own(x: DeviceArray, other: Any) -> bool:
    """Whether a value is an array of the same device, or a number."""
    kind = type(other)
    return kind is type(x) or kind is float or kind is int


def _fold(name: str) -> Callable[..., Any]:
    """Return a way for `_sooner`: a reduction with no arguments but ``axis`` and ``keepdims``."""

    def way(self: DeviceArray, *args: Any, axis: Any = None, keepdims: Any = False, **other: Any) -> Any:
        if args or other or type(axis) not in _AXIS or type(keepdims) is not bool:
            return None
        with recording_for(self._device):
            return _placed(type(self), recorder.reduce(name, self, axis, keepdims=keepdims))

    return way


def _by_kernels(name: str) -> Callable[..., Any]:
    """Return a way for `_sooner`: the NumPy function of a name, computed by kernels of the device."""
    function = getattr(np, name)

    def way(self: DeviceArray, *args: Any, **kwargs: Any) -> Any:
        result = try_kernels(type(self), function, (self, *args), kwargs)
        return None if result is NotImplemented else result

    return way


_AXES = frozenset({"axis", "keepdims"})
_METHODS = {np.sum: "sum", np.prod: "prod", np.max: "max", np.min: "min", np.amax: "max", np.amin: "min"}
"""Functions that are called as methods of the array, since these are recorded faster."""
_AXIS = frozenset({int, tuple, type(None)})
_FOLDS = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


def _getitem(self: DeviceArray, key: Any) -> Any:
    """Return ``self[key]`` for a basic key, which records nothing, or by kernels; None if neither serves."""
    if is_basic(key):
        return indexing.get(self, key)
    if is_large(self) and not _is_mask(self, key):
        common_device(self._device, self, key)
        part = indexed.item(self, key)
        if part is not NotImplemented:
            return part
    return None


def _setitem(self: DeviceArray, key: Any, value: Any) -> None:
    """Do ``self[key] = value``.  With a mask, it is recorded for a single number."""
    basic = is_basic(key)
    if basic and self._small is None and _is_own(self, value):
        with recording_for(self._device):
            ndarray.__setitem__(self, key, value)
        return
    recorded = basic or (_is_mask(self, key) and not np.ndim(value))
    if recorded or not is_large(self) or not indexed.set_items(type(self), self, key, value):
        _usual_setitem(self, key, value)


_usual_setitem = _forwarded(ndarray.__setitem__)


def _is_mask(x: Any, key: Any) -> bool:
    """Whether a key is a boolean array with the shape of ``x``."""
    return isinstance(key, (Handle, np.ndarray)) and key.dtype == bool and key.shape == x.shape


def _property(name: str) -> property:
    known: Any = getattr_static(ndarray, name)  # a property, or its C counterpart
    store = None if name in _UNSET else _forwarded(lambda self, value: known.__set__(self, value))
    return property(_forwarded(lambda self: known.__get__(self)), store, doc=known.__doc__)


_UNSET = frozenset({"T", "mT", "base"})  # attributes that cannot be set
_BY_KERNELS = ("argmax", "argmin", "argsort", "nonzero", "searchsorted", "take")
_HERE = frozenset({"to_device"})  # methods that record nothing, or see to the device themselves
_OPERATORS = [
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift",
    "rshift",
]  # fmt: skip
_SPECIAL = [
    "divmod", "rdivmod", "lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs", "invert", "getitem",
    "setitem", "copy", "deepcopy", "contains",
]  # fmt: skip


def _strides(self: DeviceArray) -> tuple[int, ...]:
    """Return the strides, in bytes, that the host's memory has or would have."""
    if self._small is not None or not self._store.char:
        return ndarray.strides.__get__(self)  # type: ignore[no-any-return]
    return tuple([n * self.itemsize for n in strides_of(self)])


def _members() -> dict[str, Any]:
    """Return, by name, the methods and properties of `DeviceArray` that may record or return an array."""
    names = [f"__{kind}{name}__" for name in _OPERATORS for kind in ("", "r", "i")]
    names += [f"__{name}__" for name in _SPECIAL]
    names += [name for name in dir(ndarray) if not name.startswith("_") and callable(getattr(ndarray, name))]
    table: dict[str, Any] = {name: _forwarded(getattr(ndarray, name)) for name in names if name not in _HERE}
    table |= {name: _property(name) for name in ("T", "mT", "real", "imag", "base", "flat", "shape")}
    ways = {name: _fold(ufunc) for name, ufunc in _FOLDS.items()}
    ways |= {name: _by_kernels(name) for name in _BY_KERNELS}
    ways |= {"__matmul__": _matmul, "__getitem__": _getitem}
    table |= {name: _sooner(getattr(ndarray, name), way) for name, way in ways.items()}
    table["__setitem__"] = _setitem
    table["strides"] = property(_strides, getattr_static(ndarray, "strides").fset)
    return table


for _name, _value in _members().items():
    setattr(DeviceArray, _name, _value)
