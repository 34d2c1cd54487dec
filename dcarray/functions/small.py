"""What small arrays take straight to NumPy: the functions that are served, and most methods."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from dcarray.speedups import BUILT

from .registry import IMPLEMENTATIONS
from .served import served_by_numpy

_MODULES: tuple[ModuleType, ...] = (np, np.linalg, np.fft, np.emath, np.lib.stride_tricks)

_METHODS = """
all any argmax argmin argpartition argsort astype choose clip compress conj conjugate copy cumprod cumsum
diagonal dot fill flatten item max mean min nonzero partition prod ravel repeat reshape round searchsorted
sort squeeze std sum swapaxes take tolist trace transpose var
"""


def functions() -> frozenset[Any]:
    """The dispatched functions of NumPy that have an implementation, or NumPy's own as the intended one.

    Not ``outer``, whose result is recorded where it is large.
    """
    found: set[Any] = set()
    for module in _MODULES:
        for value in vars(module).values():  # to ask for an attribute may import a module
            dispatched = hasattr(value, "_implementation")
            if dispatched and value is not np.outer and (value in IMPLEMENTATIONS or served_by_numpy(value)):
                found.add(value)
    return frozenset(found)


def shortened(function: Callable[..., Any], slow: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ours that goes straight to NumPy's with small arrays, if NumPy's is one of those."""
    return slow


def shorten_calls(cls: type, name: str) -> None:
    """Let calls of instances, which hold a function of NumPy's as ``name``, go straight to it likewise."""


if BUILT:  # else `fallback.quick` and the methods themselves do it
    from dcarray._speedups import serve, short, short_call

    # on plain arrays there is nothing to dispatch
    serve({function: function._implementation for function in functions()}, tuple(_METHODS.split()))
    shortened = short
    shorten_calls = short_call
