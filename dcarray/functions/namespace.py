"""Every public name of NumPy: ours where there is one, NumPy's function with wrapped results, or
NumPy's own object (constants, dtypes, error states).

Names are made when first used, so that the import stays quick.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from dcarray.array import ndarray

from . import creation, fallback

__all__ = ["lookup", "names", "submodules"]

_CREATION = (
    "array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "empty", "full", "ones", "zeros",
)  # fmt: skip
_WRAPPED_MODULES = ("char", "emath", "fft", "linalg", "strings")
_DISPATCHER = type(np.sum)
_DUNDER = ("__array_api_version__", "__array_namespace_info__")


class Ufunc:
    """A ufunc whose results are wrapped even where no argument is.

    It stands for NumPy's: attributes, methods, comparisons and ``isinstance`` are those of the original.
    """

    __slots__ = ("_ufunc",)

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc = ufunc

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return np.ufunc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return fallback.wrapped(self._ufunc(*args, **kwargs))

    def reduce(self, *args: Any, **kwargs: Any) -> Any:
        """As `numpy.ufunc.reduce`."""
        return fallback.wrapped(self._ufunc.reduce(*args, **kwargs))

    def accumulate(self, *args: Any, **kwargs: Any) -> Any:
        """As `numpy.ufunc.accumulate`."""
        return fallback.wrapped(self._ufunc.accumulate(*args, **kwargs))

    def reduceat(self, *args: Any, **kwargs: Any) -> Any:
        """As `numpy.ufunc.reduceat`."""
        return fallback.wrapped(self._ufunc.reduceat(*args, **kwargs))

    def outer(self, *args: Any, **kwargs: Any) -> Any:
        """As `numpy.ufunc.outer`."""
        return fallback.wrapped(self._ufunc.outer(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ufunc, name)

    def __eq__(self, other: object) -> bool:
        return self._ufunc is (other._ufunc if type(other) is Ufunc else other)

    def __hash__(self) -> int:
        return hash(self._ufunc)

    def __repr__(self) -> str:
        return repr(self._ufunc)

    def __reduce__(self) -> Any:
        return _ufunc_named, (self._ufunc.__name__,)


def _ufunc_named(name: str) -> Any:
    return lookup(name)


class _Indexer:
    """``r_``, ``c_``, ``mgrid`` and ``ogrid``: made by indexing."""

    def __init__(self, original: Any) -> None:
        self._original = original
        self.__doc__ = original.__doc__

    def __getitem__(self, key: Any) -> Any:
        return fallback.direct(self._original.__getitem__, (key,), {})

    def __len__(self) -> int:
        return len(self._original)


class vectorize(np.vectorize):
    """`numpy.vectorize` with wrapped results."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function element by element."""
        if not hasattr(self, "pyfunc") or self.pyfunc is np._NoValue:  # still decorating
            return super().__call__(*args, **kwargs)
        return fallback.direct(super().__call__, args, kwargs)


def _dispatched(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that finds wrapped arrays by itself."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return fallback.wrapped(function(*args, **kwargs))

    return call


def _undispatched(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that would take wrapped arrays for sequences."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if "device" in kwargs:
            creation.check_device(kwargs["device"])
            kwargs["device"] = None
        if "like" in kwargs and (kwargs["like"] is None or type(kwargs["like"]) is ndarray):
            del kwargs["like"]
        return fallback.direct(function, args, kwargs)

    return call


def _ours(value: Any) -> Any:
    """The counterpart of a public object of NumPy."""
    if type(value) is np.ufunc:
        return Ufunc(value)
    if type(value) is _DISPATCHER:
        return _dispatched(value)
    if isinstance(value, (FunctionType, BuiltinFunctionType)):
        return _undispatched(value)
    return value


class _Module(ModuleType):
    """A sub-namespace such as ``dcarray.linalg``."""

    def __init__(self, name: str, original: ModuleType) -> None:
        super().__init__(name, original.__doc__)
        self._original = original

    def __getattr__(self, name: str) -> Any:
        if name == "__path__":  # not a package, whatever NumPy's is
            raise AttributeError(name)
        value = getattr(self._original, name)
        if not name.startswith("_") and not isinstance(value, ModuleType):
            value = _ours(value)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return dir(self._original)


def _submodule(name: str) -> ModuleType:
    full = f"dcarray.{name}"
    found = sys.modules.get(full)
    if found is None:
        if name == "random":
            from . import random

            found = random.module(full)
        else:
            found = _Module(full, getattr(np, name))
        sys.modules[full] = found
    return found


class _Finder:
    """Makes ``import dcarray.linalg`` find the sub-namespaces."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        head, _, tail = name.partition(".")
        if head != "dcarray" or tail not in submodules():
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, self)  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> ModuleType:
        return _submodule(spec.name.partition(".")[2])

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: names are made when first used."""


def submodules() -> tuple[str, ...]:
    """The sub-namespaces whose functions give wrapped arrays."""
    return (*_WRAPPED_MODULES, "random")


def install() -> None:
    """Let the import system find the sub-namespaces."""
    if not any(type(finder) is _Finder for finder in sys.meta_path):
        sys.meta_path.append(_Finder())  # type: ignore[arg-type]


def lookup(name: str) -> Any:
    """The object behind a public name of NumPy.

    Parameters
    ----------
    name : str
        Such as ``"sum"``, ``"float64"``, ``"linalg"`` or ``"pi"``.

    Raises
    ------
    AttributeError
        If NumPy has no such public name.
    """
    if name.startswith("_") and name not in _DUNDER:
        raise AttributeError(f"module 'dcarray' has no attribute {name!r}")
    if name in _CREATION:
        return getattr(creation, name)
    if name in submodules():
        return _submodule(name)
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
    return _ours(value)


def names() -> list[str]:
    """The public names of NumPy."""
    return [name for name in dir(np) if not name.startswith("_")]
