"""The stand-in for the built-in ``type`` in accelerated code that compares the types of arrays by identity.

``type(x) is np.ndarray`` is true of plain and of wrapped arrays, where ``np.ndarray`` is its stand-in, and
``a.view(type(x))`` is no view of a class that NumPy does not know.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from dcarray.api.array import ndarray as _Wrapped

from .numpy_proxy import ndarray

__all__ = ["array_type", "compares_types"]


class _Types(type):
    """The metaclass of the stand-in."""

    def __new__(meta, name: str, bases: tuple[type, ...], body: dict[str, Any], **kwargs: Any) -> Any:
        if array_type is None:
            return super().__new__(meta, name, bases, body)
        bases = tuple(type if base is array_type else base for base in bases)
        kind, _, _ = types.prepare_class(name, bases)
        return kind(name, bases, body, **kwargs)

    def __call__(cls, /, *args: Any, **kwargs: Any) -> Any:
        made = type(*args, **kwargs)
        if len(args) != 1:
            return made
        if made is np.ndarray or issubclass(made, _Wrapped):
            return ndarray
        return cls if made is type else made

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, type)

    def __subclasscheck__(cls, other: Any) -> bool:
        return issubclass(other, type)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is type

    def __hash__(cls) -> int:
        return hash(type)

    def __repr__(cls) -> str:
        return repr(type)


array_type: Any = None
array_type = _Types("type", (type,), {"__doc__": type.__doc__, "__module__": "builtins"})


def compares_types(names: dict[str, Any]) -> bool:
    """Whether code of a module asks for types where it speaks of arrays or views, and not of dcarray there.

    Parameters
    ----------
    names : dict
        The global names of the module.
    """
    asking = [code.co_names for code in _codes(tuple(names.values()), names, set()) if _asks(code)]
    ours = {name for name, value in names.items() if value is _Wrapped or _is_dcarray(value)}
    return bool(asking) and all(map(ours.isdisjoint, asking))


def _is_dcarray(value: Any) -> bool:
    return isinstance(value, ModuleType) and value.__name__ == "dcarray"


def _asks(code: CodeType) -> bool:
    used = code.co_names
    return "type" in used and ("ndarray" in used or "view" in used)


def _codes(values: Iterable[Any], names: dict[str, Any], seen: set[int]) -> Iterator[CodeType]:
    """All code of functions and classes among these objects, if it has these global names; ``seen`` are the
    identities of classes, which may hold each other."""
    for value in values:
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        elif isinstance(value, property):
            value = value.fget
        if type(value) is FunctionType:
            if value.__globals__ is names:
                yield from _and_inner(value.__code__)
        elif isinstance(value, type) and value.__module__ == names.get("__name__"):
            known = id(value) in seen
            seen.add(id(value))
            yield from _codes(() if known else tuple(vars(value).values()), names, seen)


def _and_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if type(inner) is CodeType:
            yield from _and_inner(inner)
