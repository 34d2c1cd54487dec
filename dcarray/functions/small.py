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
sort squeeze std sum swapaxes take trace transpose var
"""


def functions() -> frozenset[Callable[..., Any]]:
    """The dispatched functions of NumPy that have an implementation, or NumPy's own as the intended one."""
    found: set[Callable[..., Any]] = set()
    for module in _MODULES:
        for value in vars(module).values():  # to ask for an attribute may import a module
            dispatched = hasattr(value, "_implementation")
            if dispatched and (value in IMPLEMENTATIONS or served_by_numpy(value)):
                found.add(value)
    return frozenset(found)


if BUILT:  # else `fallback.quick` and the methods themselves do it
    from dcarray._speedups import serve

    serve(functions(), tuple(_METHODS.split()))
