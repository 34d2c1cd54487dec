"""Python's functions and classes of libraries that are not accelerated: which ones may call back."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from .accelerated_code import is_accelerated
from .boundary import has_callbacks
from .extension_classes import EXCLUDED

__all__ = ["is_library_class", "is_library_function", "replace_constructor"]

# Packages that read the functions which they are given rather than call them.
_COMPILERS = frozenset(("numba", "jax", "torch", "tensorflow", "theano", "pytensor"))
_know_numpy: dict[int, dict[str, Any]] = {}  # global names that hold something of NumPy's, by identity


def _knows_numpy(names: dict[str, Any]) -> bool:
    """Whether something of NumPy's is among global names."""
    if _know_numpy.get(id(names)) is names:
        return True
    found = any(map(_is_numpy, tuple(names.values())))
    if found:
        _know_numpy[id(names)] = names
    return found


def _is_numpy(value: Any) -> bool:
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] == "numpy"
    where = getattr(value, "__module__", None) if isinstance(value, (type, FunctionType)) else None
    return isinstance(value, np.ufunc) or (isinstance(where, str) and where.partition(".")[0] == "numpy")


def is_library_function(value: Any) -> bool:
    """Whether an object is a function in Python, of code that knows NumPy and is not accelerated.

    Parameters
    ----------
    value : object
        A function may be a decorator's, around one of code that knows NumPy.
    """
    for _ in range(9):
        if type(value) is not FunctionType or is_accelerated(value.__globals__):
            return False
        module = value.__module__
        top = module.partition(".")[0] if type(module) is str else ""
        if top in EXCLUDED or top in _COMPILERS:
            return False
        if _knows_numpy(value.__globals__):
            return True
        value = vars(value).get("__wrapped__")
    return False


def is_library_class(value: Any) -> bool:
    """Whether an object is a class in Python whose constructor is a library's function."""
    return (
        isinstance(value, type)
        and not issubclass(value, BaseException)
        and is_library_function(vars(value).get("__init__"))
    )


_seen: set[type] = set()


def replace_constructor(kind: type, stand_in: Callable[[Any], Any]) -> None:
    """Replace the constructor of a class, once and for good, by one that gives functions of accelerated code
    as callbacks.

    Parameters
    ----------
    kind : type
        A class of a library.
    stand_in : callable
        Makes the stand-in for a function.
    """
    if kind in _seen:
        return
    _seen.add(kind)
    body: Any = vars(kind)["__init__"]

    @wraps(body)
    def __init__(self: Any, /, *args: Any, **kwargs: Any) -> None:
        if (args and has_callbacks(args)) or (kwargs and has_callbacks(kwargs.values())):
            stand_in(MethodType(body, self))(*args, **kwargs)
        else:
            body(self, *args, **kwargs)

    kind.__init__ = __init__  # type: ignore[misc]
