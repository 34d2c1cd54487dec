"""Who serves a NumPy function: filled by `dcarray.functions`, asked by ``__array_function__``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


class Dispatch:
    """The implementations by NumPy function, and what serves all other functions."""

    def __init__(self) -> None:
        self.table: dict[Function, Function] = {}
        self.fallback: Callable[[Function, tuple[Any, ...], dict[str, Any]], Any] = _unserved

    def __call__(self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        ours = self.table.get(function)
        return self.fallback(function, args, kwargs) if ours is None else ours(*args, **kwargs)


def _unserved(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    raise TypeError(f"nobody serves {function.__name__}: dcarray.functions is not imported")


DISPATCH = Dispatch()
