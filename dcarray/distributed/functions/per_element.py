"""Distributed `numpy.round`, `digitize` and `interp`: functions of each element, with small tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.distributed.function_dispatch import DISTRIBUTED, dist_operand, is_distributed, require

__all__ = ["per_element"]


def per_element(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the implementation of a function that is element-wise in its first argument.

    Every rank must have the other arguments whole.
    """

    def implementation(*args: Any, **kwargs: Any) -> Any:
        require(args and not any(map(is_distributed, (*args[1:], *kwargs.values()))))
        x, *others = args
        others = [np.asarray(a) if type(a) is ndarray else a for a in others]
        named = {k: np.asarray(a) if type(a) is ndarray else a for k, a in kwargs.items()}
        return dist_operand(x).map(lambda block: function(block, *others, **named))

    return implementation


def _round(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    """Round complex numbers, and others that no kernel rounds."""
    x = dist_operand(a)
    require(out is None and x.dtype.kind in "biufc")
    return x.map(lambda block: np.round(block, decimals))


DISTRIBUTED.update(
    {
        np.around: _round,
        np.round: _round,
        np.digitize: per_element(np.digitize),
        np.interp: per_element(np.interp),
    }
)
