"""Arrays of the array API standard: all operations on them return arrays, never scalars.

NumPy returns scalars where the standard has arrays without axes, and so do wrapped arrays.  Code that asks an
array for its namespace (`dcarray.array_api`) relies on the standard: it may pass ``x[0]`` or ``xp.sum(x)`` to
code that asks for a namespace again.  The functions of that namespace return a `StandardArray`, whose
operators, methods, indices and iterators give arrays, also from NumPy's functions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.api.functions.fallback import SEQUENCES
from dcarray.core.handle import as_class, small


class _Call:
    """The conversion of arguments to ordinary wrapped arrays, and of results back, for one call."""

    __slots__ = ("cls", "given")

    def __init__(self) -> None:
        self.cls: type[StandardArray] = StandardArray  # of results without axes
        self.given: dict[int, tuple[Any, Any]] = {}

    def into(self, value: Any) -> Any:
        """Return a value in which ordinary wrapped arrays on the same memory replace standard arrays."""
        kind = type(value)
        if isinstance(value, StandardArray):
            if self.cls is StandardArray:
                self.cls = type(value)
            ordinary = as_class(value._ordinary, value)
            self.given[id(ordinary)] = (ordinary, value)
            return ordinary
        if kind is dict:
            return {k: self.into(v) for k, v in value.items()}
        if isinstance(value, SEQUENCES):
            inner = [self.into(v) for v in value]
            if any(a is not b for a, b in zip(inner, value, strict=True)):
                return tuple(inner) if isinstance(value, tuple) else inner
        return value

    def back(self, value: Any) -> Any:
        """Return a value in which standard arrays replace ordinary wrapped arrays and NumPy's scalars."""
        kind = type(value)
        if kind is ndarray or (isinstance(value, ndarray) and value._device is not None):
            known = self.given.get(id(value))
            return as_class(_standard_class(kind), value) if known is None else known[1]
        if isinstance(value, np.generic):
            return small(self.cls, np.asarray(value))
        if kind is tuple or kind is list:
            return kind([self.back(v) for v in value])
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return kind(*(self.back(v) for v in value))
        return value


def call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function of this package or of NumPy, with results by the standard.

    Parameters
    ----------
    function : callable
    args, kwargs
        Its arguments; standard arrays may be in sequences and dictionaries, at any depth.

    Returns
    -------
    object
        The result with each wrapped array and each scalar of NumPy's as a `StandardArray`; an array that was
        passed is returned as itself.
    """
    way = _Call()
    ordinary = [way.into(a) for a in args]
    named = {k: way.into(v) for k, v in kwargs.items()} if kwargs else kwargs
    return way.back(function(*ordinary, **named))


class StandardArray(ndarray):
    """A wrapped array whose operations return arrays, also without axes; made by `dcarray.array_api`."""

    __slots__ = ()
    __hash__ = None
    _ordinary: type[ndarray] = ndarray  # the class of the same arrays with scalars

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return call(getattr(ufunc, method), inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call(func, args, kwargs)

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[k] for k in range(len(self)))


def _standard_class(ordinary: type[ndarray]) -> type[StandardArray]:
    """The class of standard arrays on the device of a class of wrapped arrays."""
    if ordinary is ndarray:
        return StandardArray
    cls = _classes.get(ordinary)
    if cls is None:
        names = {"__slots__": (), "_device": ordinary._device, "_ordinary": ordinary}
        cls = _classes.setdefault(ordinary, type("StandardArray", (StandardArray,), names))
    return cls


_classes: dict[type[ndarray], type[StandardArray]] = {}


def _forwarded(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def method(self: StandardArray, *args: Any, **kwargs: Any) -> Any:
        return call(function, (self, *args), kwargs)

    return method


def _reflected(op: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def method(self: StandardArray, other: Any) -> Any:
        return call(op, (other, self), {})

    return method


def _property(name: str) -> property:
    known: Any = getattr(ndarray, name)  # a property, or its C counterpart, without a setter
    return property(_forwarded(operator.attrgetter(name)), getattr(known, "fset", None), doc=known.__doc__)


_BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift",
           "rshift"]  # fmt: skip
_OTHERS = ["lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs", "invert", "getitem", "setitem"]


def _members() -> dict[str, Any]:
    """Return the names of methods and properties that may return an array."""
    members: dict[str, Any] = {}
    for name in _BINARY:
        op = getattr(operator, f"__{name}__")
        members[f"__{name}__"], members[f"__r{name}__"] = _forwarded(op), _reflected(op)
        members[f"__i{name}__"] = _forwarded(getattr(operator, f"__i{name}__"))
    members["__divmod__"], members["__rdivmod__"] = _forwarded(divmod), _reflected(divmod)
    members |= {f"__{name}__": _forwarded(getattr(operator, f"__{name}__")) for name in _OTHERS}
    members |= {name: _property(name) for name in ("T", "mT", "real", "imag", "base")}
    for name in dir(ndarray):
        if not name.startswith("_") and callable(getattr(ndarray, name)):
            members[name] = _forwarded(getattr(ndarray, name))
    return members


for _name, _value in _members().items():
    setattr(StandardArray, _name, _value)
