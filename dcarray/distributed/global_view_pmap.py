"""The parallel loop `dcarray.pmap` of the global view: ranks run tiles, on arrays of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from dcarray.api.array import evaluate
from dcarray.comm import pmap as over_ranks
from dcarray.core.config import options

__all__ = ["pmap"]


class _OnTile:
    """A function that runs on one tile, with arrays of its own; a class, so that executors can pickle it."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, tile: Any) -> Any:
        with options(distribute_above=sys.maxsize):
            result = self._function(tile)
            evaluate()
        return result


@wraps(over_ranks.pmap)
def pmap(function: Callable[[Any], Any], *args: Any, **kwargs: Any) -> list[Any] | None:
    evaluate()  # all ranks together run what is pending
    return over_ranks.pmap(_OnTile(function), *args, **kwargs)


pmap.__module__ = __name__  # so that it can be pickled by name
