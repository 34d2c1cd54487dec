"""The public names of NumPy in this package: implementations, NumPy's functions with wrapped results, or
NumPy's own objects (constants, dtypes, error states).

They are made when first used, which keeps the import fast.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, update_wrapper, wraps
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.core.backend import NOT_DISTRIBUTED, backend
from dcarray.core.config import current
from dcarray.core.device_backend import device_backend
from dcarray.core.device_names import resolve
from dcarray.core.processes import communicator
from dcarray.recording.session import session

from . import creation, fallback
from .common import NOTHING
from .native_routes import made_small, shorten_calls, shortened
from .standard_arguments import STANDARD

_CREATION = (
    "array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "empty", "full", "ones", "zeros",
)  # fmt: skip
_DISPATCHER = type(np.sum)


def _ufunc_method(name: str) -> Callable[..., Any]:
    """Return the method of NumPy's ufuncs with wrapped results."""

    def method(self: Ufunc, *args: Any, **kwargs: Any) -> Any:
        result = getattr(self._ufunc, name)(*args, **kwargs)
        return fallback.wrap_results(_as_arrays(result, kwargs), args, kwargs)

    method.__name__ = name
    method.__doc__ = f"See `numpy.ufunc.{name}`."
    return method


_general_reduce = _ufunc_method("reduce")


class Ufunc:
    """A ufunc whose results are wrapped even where no argument is.

    It replaces NumPy's: attributes, methods, comparisons and ``isinstance`` are those of the original.
    """

    __slots__ = ("_outer", "_reduce", "_reduceat", "_ufunc")

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc = ufunc
        self._reduce, self._reduceat = ufunc.reduce, ufunc.reduceat
        self._outer = (ufunc.outer, 2)  # two small arrays may have a large result

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return np.ufunc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self._ufunc(*args, **kwargs)
        if type(result) is ndarray:
            return result
        return fallback.wrap_results(_as_arrays(result, kwargs), args, kwargs)

    def reduce(self, array: Any, *args: Any, **kwargs: Any) -> Any:
        """See `numpy.ufunc.reduce`."""
        reduced = None if args or kwargs else _reduced_list(self._ufunc, array)
        return _general_reduce(self, array, *args, **kwargs) if reduced is None else reduced

    accumulate = _ufunc_method("accumulate")
    reduceat = _ufunc_method("reduceat")
    outer = _ufunc_method("outer")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ufunc, name)

    def __eq__(self, other: object) -> bool:
        return self._ufunc is (other._ufunc if type(other) is Ufunc else other)

    def __hash__(self) -> int:
        return hash(self._ufunc)

    def __repr__(self) -> str:
        return repr(self._ufunc)

    def __reduce__(self) -> Any:
        return _named, (self._ufunc.__name__,)


def _reduced_list(ufunc: np.ufunc, arrays: Any) -> Any:
    """Return the reduction of a list of arrays of one shape and dtype; None for anything else.  One operation
    follows the other, so no array of all of them is made.

    Only operations whose result has their operands' dtype, and which begin with the first operand, are done
    so: these have NumPy's bits.
    """
    if type(arrays) not in (list, tuple) or not 2 <= len(arrays) <= _MOST_REDUCED:
        return None
    first = arrays[0]
    if type(first) is not ndarray or not first.ndim:
        return None
    if any(type(x) is not ndarray or x.shape != first.shape or x.dtype != first.dtype for x in arrays):
        return None
    if first.dtype.kind not in _REDUCED_BY_OPERATORS.get(ufunc.__name__, ""):
        return None
    reduced = first
    for x in arrays[1:]:
        reduced = ufunc(reduced, x)
    return reduced


_MOST_REDUCED = 32
_REDUCED_BY_OPERATORS = {
    "logical_and": "b", "logical_or": "b", "bitwise_and": "biu", "bitwise_or": "biu", "bitwise_xor": "biu",
    "maximum": "biuf", "minimum": "biuf", "fmax": "biuf", "fmin": "biuf",
}  # fmt: skip
"""The kinds of dtypes of which a reduction is one operation after the other, by ufunc."""

shorten_calls(Ufunc, "_ufunc")
for _name in ("reduce", "reduceat", "outer"):  # scans of large arrays are recorded, to be fused
    shorten_calls(Ufunc, f"_{_name}", _name)
# Their docstrings are NumPy's.
Ufunc.__doc__ = property(lambda self: self._ufunc.__doc__)  # type: ignore[assignment]


def _as_arrays(result: Any, kwargs: dict[str, Any]) -> Any:
    """Return the results, with ``out=...`` as arrays even without axes.  NumPy does not pass this argument on
    in its dispatch."""
    if not kwargs or kwargs.get("out") is not Ellipsis:
        return result
    if type(result) is tuple:
        return tuple(_as_arrays(r, kwargs) for r in result)
    return np.asarray(result) if isinstance(result, np.generic) else result


def _named(name: str) -> Any:
    return lookup(name)


class _Builtin:
    """A function that does not turn into a method when it is a class attribute, like NumPy's built-in
    functions."""

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<function {self._function.__name__} of dcarray>"

    def __reduce__(self) -> Any:
        return _named, (self._function.__name__,)


class _Indexer:
    """``r_``, ``c_``, ``mgrid`` and ``ogrid``, which are called by indexing."""

    __slots__ = ("__dict__", "_get")

    def __init__(self, original: Any) -> None:
        self._original = original
        self._get = original.__getitem__
        self.__doc__ = original.__doc__

    def __getitem__(self, key: Any) -> Any:
        if communicator() is not None:
            grid = backend().index_trick(self._original, key)
            if grid is not NOT_DISTRIBUTED:
                return grid
        name = current().device
        if name != "cpu" and session().device is None:
            return device_backend().place(name, fallback.call_numpy(self._get, (key,), {}))
        result = fallback.call_small(self._get, (key,), {})
        if result is fallback.NOT_SMALL:
            return fallback.call_numpy(self._get, (key,), {})
        return result

    def __len__(self) -> int:
        return len(self._original)


shorten_calls(_Indexer, "_get", "__getitem__")


class vectorize(np.vectorize):
    """`numpy.vectorize` with wrapped results."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function element by element."""
        if not hasattr(self, "pyfunc") or self.pyfunc is NOTHING:  # used as a decorator with arguments
            return super().__call__(*args, **kwargs)
        return fallback.call_numpy(super().__call__, args, kwargs)


def _dispatched(function: Callable[..., Any], place: str = "") -> Callable[..., Any]:
    """Return a function of NumPy that dispatches on wrapped arrays, with wrapped results."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if "device" in kwargs:
            name = resolve(kwargs.pop("device") or current().device)
            result = call(*args, **kwargs)
            return result.to_device(name) if isinstance(result, ndarray) else result
        result = function(*args, **kwargs)
        return result if type(result) is ndarray else fallback.wrap_results(result, args, kwargs)

    call.__module__ = place or function.__module__
    return shortened(function, call)


def _undispatched(function: Callable[..., Any], place: str = "") -> Callable[..., Any]:
    """Return a function of NumPy that lacks dispatch, called with plain arrays; ``place`` is its module in
    pickles."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        device = kwargs.pop("device", None)
        name = current().device if device is None else resolve(device)
        if name != "cpu" and session().device is None:
            return device_backend().place(name, fallback.call_numpy(function, args, kwargs))
        if "like" in kwargs and (kwargs["like"] is None or type(kwargs["like"]) is ndarray):
            del kwargs["like"]
        if function is np.load and communicator() is not None:
            loaded = backend().load(*args, **kwargs)
            if loaded is not NOT_DISTRIBUTED:
                return loaded
        return fallback.call_numpy(function, args, kwargs)

    call.__module__ = place or function.__module__
    return call


@cache
def _counterpart(value: Any, place: str) -> Any:
    """Return the counterpart of a function or ufunc of NumPy, one object for all of its names."""
    if type(value) is np.ufunc:
        return Ufunc(value)
    if type(value) is _DISPATCHER:
        return _dispatched(value, place)
    if isinstance(value, (FunctionType, BuiltinFunctionType)) and value not in (np.isscalar, np.iterable):
        return _undispatched(value, place)
    return value


def _counterpart_of(value: Any, place: str) -> Any:
    """Return the counterpart of a public object of NumPy."""
    return _counterpart(value, place) if callable(value) and not isinstance(value, type) else value


def delegate(name: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a sub-namespace such as ``dcarray.linalg``.

    Parameters
    ----------
    name : str
        The name of NumPy's module.
    """

    def find(attribute: str) -> Any:
        if attribute == "__path__":  # this is a module, NumPy's may be a package
            raise AttributeError(attribute)
        if attribute in STANDARD.get(name, ()):
            return STANDARD[name][attribute]
        value = getattr(getattr(np, name), attribute)
        if attribute.startswith("_"):
            return value
        place = f"dcarray.{name}"
        value = sys.modules[place].__dict__[attribute] = _counterpart_of(value, place)
        return value

    return find, lambda: dir(getattr(np, name))


@cache
def lookup(name: str) -> Any:
    """Return the object of a public name of NumPy.

    Parameters
    ----------
    name : str
        Such as ``"sum"``, ``"float64"``, ``"linalg"`` or ``"pi"``.

    Raises
    ------
    AttributeError
        If NumPy has no such public name.
    """
    if name in STANDARD["numpy"]:
        return STANDARD["numpy"][name]
    if name.startswith("_"):
        raise AttributeError(f"module 'dcarray' has no attribute {name!r}")
    if name in _CREATION:
        return made_small(getattr(np, name), _Builtin(getattr(creation, name)))
    if name == "eye":
        return made_small(np.eye, creation.eye)
    if name in ("r_", "c_", "mgrid", "ogrid"):
        return _Indexer(getattr(np, name))
    if name == "vectorize":
        return vectorize
    if name == "ndarray":
        return ndarray
    try:
        value = getattr(np, name)
    except AttributeError:
        raise AttributeError(f"module 'dcarray' has no attribute {name!r}") from None
    counterpart = _counterpart_of(value, "dcarray")
    if name in ("arange", "linspace"):
        counterpart = _spaced(name, counterpart)
    return made_small(value, _Builtin(counterpart) if isinstance(value, BuiltinFunctionType) else counterpart)


def _spaced(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return `arange` or `linspace`, whose large results are distributed where there are several ranks."""

    @wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        array = None if kwargs or communicator() is None else backend().distributed_range(name, args)
        return plain(*args, **kwargs) if array is None else array

    call.__module__ = "dcarray"  # it is pickled by this module and its name
    return call


def names() -> list[str]:
    """Return the public names of NumPy."""
    return [name for name in dir(np) if not name.startswith("_")]
