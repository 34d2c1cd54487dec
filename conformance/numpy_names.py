"""NumPy as the modules of its own test-suite see it: the same names, making wrapped arrays.

A test module is executed with builtins of its own.  Their ``__import__`` answers ``numpy`` with a
namespace in which whatever dcarray has is dcarray's, ``isinstance`` takes wrapped arrays and NumPy's own
for ``np.ndarray``, and classes that derive from ``np.ndarray`` derive from the real one.  The source of the
tests stays as it is.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import wraps
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

import dcarray as dc

__all__ = ["substituted"]

# Served by dcarray under the same name.
_OURS = ("char", "emath", "fft", "linalg", "random", "strings")
# Not about arrays, or about subclasses of ndarray, which stay what they are.
_ASIDE = (
    "numpy.ctypeslib", "numpy.dtypes", "numpy.exceptions", "numpy.f2py", "numpy.ma.core", "numpy.ma",
    "numpy.matlib", "numpy.polynomial", "numpy.rec", "numpy.typing", "numpy.version",
)  # fmt: skip
_TESTING = ("numpy.testing", "numpy.ma.testutils")
_COMPARE = (
    "assert_", "almost", "approx", "assert_allclose", "assert_almost_equal", "assert_approx_equal",
    "assert_array_almost_equal", "assert_array_almost_equal_nulp", "assert_array_approx_equal",
    "assert_array_compare", "assert_array_equal", "assert_array_less", "assert_array_max_ulp", "assert_close",
    "assert_equal", "assert_equal_records", "assert_mask_equal", "assert_not_equal", "fail_if_equal",
)  # fmt: skip
_DISPATCHER = type(np.sum)


def _plain(value: Any) -> Any:
    """``value`` with wrapped arrays, in sequences too, as plain ones of the same memory."""
    kind = type(value)
    if kind is dc.ndarray:
        return np.asarray(value)
    if kind is tuple or kind is list:
        return kind(_plain(v) for v in value)
    if kind is dict:
        return {k: _plain(v) for k, v in value.items()}
    return value


def _comparing(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `numpy.testing`, given plain arrays."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*map(_plain, args), **{k: _plain(v) for k, v in kwargs.items()})

    return call


def _served(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy's that is in no public namespace: plain arrays in, wrapped ones out."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given: dict[int, Any] = {}

        def into(value: Any) -> Any:
            kind = type(value)
            if kind is dc.ndarray:
                plain = np.asarray(value)
                given[id(plain)] = value
                return plain
            return kind(map(into, value)) if kind is tuple or kind is list else value

        def back(value: Any) -> Any:
            kind = type(value)
            if kind is np.ndarray:
                return given.get(id(value), value) if id(value) in given else dc.asarray(value)
            return kind(map(back, value)) if kind is tuple or kind is list else value

        plain = list(map(into, args))
        named = {k: into(v) for k, v in kwargs.items()}
        return back(function(*plain, **named))

    return call


class _Namespace(ModuleType):
    """A module of NumPy's; its names are looked up when first asked for."""

    def __init__(self, original: ModuleType) -> None:
        super().__init__(original.__name__, original.__doc__)
        self.__dict__["_original"] = original

    def __getattr__(self, name: str) -> Any:
        value = _counterpart(self._original, name)
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        return dir(self._original)


_namespaces: dict[str, ModuleType] = {}


def _namespace(module: ModuleType) -> ModuleType:
    name = module.__name__
    if name.partition(".")[0] != "numpy" or ".tests" in name or name in _ASIDE:
        return module
    if name not in _namespaces:
        space = _namespaces[name] = _Namespace(module)
        if name != "numpy":  # tests look through the dictionaries of some
            for attribute in list(vars(module)):
                if not attribute.startswith("__"):
                    getattr(space, attribute)
    return _namespaces[name]


def _counterpart(module: ModuleType, name: str) -> Any:
    value = getattr(module, name)
    home = module.__name__
    if isinstance(value, ModuleType):
        return _namespace(value)
    if name == "HAS_REFCOUNT":  # the tests' own switch for what counts references to arrays
        return False
    if home.startswith(_TESTING):
        return _comparing(value) if name in _COMPARE else value
    if value is np.ndarray:
        return dc.ndarray
    if name.startswith("__"):
        return value
    if home == "numpy":
        return value if name.startswith("_") else getattr(dc, name)
    short = home.removeprefix("numpy.")
    if short in _OURS:
        return getattr(getattr(dc, short), name)
    if not (name.startswith("_") or isinstance(value, type)) and getattr(np, name, None) is value:
        return getattr(dc, name)
    if isinstance(value, (FunctionType, BuiltinFunctionType, _DISPATCHER)):
        return _served(value)
    return value


# ---- builtins ----------------------------------------------------------------------------------------
def _import(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    return _namespace(builtins.__import__(name, globals, locals, fromlist, level))


def _classes(classes: Any) -> Any:
    if isinstance(classes, tuple):
        return tuple(map(_classes, classes))
    return (dc.ndarray, np.ndarray) if classes is dc.ndarray else classes


def _isinstance(value: Any, classes: Any) -> bool:
    return isinstance(value, _classes(classes))


def _issubclass(value: Any, classes: Any) -> bool:
    return issubclass(value, _classes(classes))


def _build_class(body: Any, name: str, *bases: Any, **kwargs: Any) -> Any:
    bases = tuple(np.ndarray if b is dc.ndarray else b for b in bases)
    return builtins.__build_class__(body, name, *bases, **kwargs)


def substituted() -> dict[str, Any]:
    """The builtins of a test module whose arrays are to be wrapped ones."""
    names = {
        "__import__": _import,
        "__build_class__": _build_class,
        "isinstance": _isinstance,
        "issubclass": _issubclass,
    }
    return {**vars(builtins), **names}
