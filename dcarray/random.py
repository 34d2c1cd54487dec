"""`numpy.random` with wrapped arrays of the same streams, and `block`, which draws a window of an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.api.functions.random import Generator, RandomState, default_rng, function
from dcarray.core.backend import backend

__all__ = ["Generator", "RandomState", "block", "default_rng"]  # noqa: F822  (`block` is imported when used)


def __getattr__(name: str) -> Any:
    if name == "__path__":  # this is a module, NumPy's a package
        raise AttributeError(name)
    value = backend().block if name == "block" else function(name)  # few programs draw windows
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*dir(np.random), "block"])
