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


@wraps(over_ranks.pmap)
def pmap(function: Callable[[Any], Any], *args: Any, **kwargs: Any) -> list[Any] | None:
    evaluate()  # all ranks together run what is pending

    def run_tile(tile: Any) -> Any:
        with options(distribute_above=sys.maxsize):
            found = function(tile)
            evaluate()
        return found

    return over_ranks.pmap(run_tile, *args, **kwargs)


pmap.__module__ = __name__  # so that it can be pickled by name
