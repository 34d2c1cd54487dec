"""`pmap`: a parallel loop over tiles, each of which one rank runs for itself."""

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
    evaluate()  # what has been recorded so far, all ranks run together

    def alone(tile: Any) -> Any:
        with options(distribute_above=sys.maxsize):
            found = function(tile)
            evaluate()
        return found

    return over_ranks.pmap(alone, *args, **kwargs)


pmap.__module__ = __name__  # where it is pickled by its name
