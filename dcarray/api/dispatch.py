"""Who serves a NumPy function: filled by `dcarray.api.functions`, asked by ``__array_function__``.

Its two dozen modules are imported when the first function is called, for programs that use operators, methods
and ufuncs do without them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

Function = Callable[..., Any]


class Dispatch:
    """The implementations by NumPy function, and what serves all other functions."""

    def __init__(self) -> None:
        self.table: dict[Function, Function] = {}
        self.fallback: Callable[[Function, tuple[Any, ...], dict[str, Any]], Any] = _first

    def __call__(self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        ours = self.table.get(function)
        return self.fallback(function, args, kwargs) if ours is None else ours(*args, **kwargs)


def _first(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    import_module("dcarray.api.functions")  # which enters its own fallback
    return DISPATCH(function, args, kwargs)


DISPATCH = Dispatch()
