"""The original code objects of functions whose code has sites."""

from __future__ import annotations

from types import CellType, CodeType, FunctionType
from typing import Any

__all__ = ["called_by", "original", "originals", "without_cells", "wrapping"]

originals: dict[int, tuple[CodeType, CodeType]] = {}
"""By the identity of a code object with sites: that, and the original."""

wrapping: set[CodeType] = set()
"""The code objects of functions that do nothing but call the one that is their ``__wrapped__``."""


def called_by(value: Any) -> Any:
    """Return the function that a wrapper made by `accelerate` calls; any other value itself."""
    while type(value) is FunctionType and value.__code__ in wrapping:
        value = value.__wrapped__  # type: ignore[attr-defined]
    return value


def without_cells(function: Any) -> Any:
    """Return a function that stands for one with free variables, whose values it does not keep alive."""
    if type(function) is not FunctionType or function.__code__.co_freevars in ((), ("__class__",)):
        return function
    code, cells = function.__code__, tuple([CellType() for _ in function.__code__.co_freevars])
    stand_in = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, cells)
    stand_in.__kwdefaults__ = function.__kwdefaults__
    return stand_in


def original(function: FunctionType) -> CodeType:
    """Return a function's own code object, even while its ``__code__`` is a version with sites, the places
    where compiled code may take over."""
    pair = originals.get(id(function.__code__))
    return function.__code__ if pair is None else pair[1]
