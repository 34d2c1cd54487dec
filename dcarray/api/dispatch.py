"""The table of implementations of NumPy functions, filled by `dcarray.api.functions`.

``__array_function__`` looks functions up in it.  Those modules are imported when the first function is
called:  programs that use operators, methods and ufuncs only do not need them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dcarray.core import open_door

Function = Callable[..., Any]


class Dispatch:
    """A table of the implementations of NumPy functions, with a fallback for all other functions."""

    def __init__(self) -> None:
        self.table: dict[Function, Function] = {}
        self.fallback: Callable[[Function, tuple[Any, ...], dict[str, Any]], Any] = _first

    def __call__(self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        served = self.table.get(function)
        return self.fallback(function, args, kwargs) if served is None else served(*args, **kwargs)


def _first(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    open_door("functions")  # its import sets the fallback
    return DISPATCH(function, args, kwargs)


DISPATCH = Dispatch()
