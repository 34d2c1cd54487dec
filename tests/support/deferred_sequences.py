"""Functions whose call sites are op sequences (`dcarray.execution.op_sequences`), and what holds of their
arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dcarray as dc

N = 40_001


def arrays(dtype: Any = float, shape: Any = N) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(7)
    return (rng.random(shape) * 9 - 3).astype(dtype), (rng.random(shape) * 9 - 3).astype(dtype)


def fresh(text: str, file: str = __file__) -> Callable[..., Any]:
    """A function of ``x`` and ``y`` at places of its own, as if in a file."""
    scope: dict[str, Any] = {"np": np}
    exec(compile(f"def f(x, y):\n    return {text}", file, "exec"), scope)
    return scope["f"]  # type: ignore[no-any-return]


def deferred(x: Any) -> bool:
    """Is this array still to be computed by an op sequence?"""
    return type(x._store.dirty).__name__ == "Deferred"


def same(got: Any, want: Any) -> bool:
    """The same value, bit by bit, of the same type; NaN is NaN."""
    return type(got) is type(want) and np.array_equal(np.asarray(got), np.asarray(want), equal_nan=True)


def learned(text: str, fold: str = "sum", dtype: Any = float) -> tuple[Callable[..., Any], Any, Any]:
    """A function whose call sites are an op sequence, and two arrays."""
    scope: dict[str, Any] = {"np": np}
    exec(compile(f"def f(x, y):\n    r = {text}\n    return r", __file__, "exec"), scope)
    f = scope["f"]
    x, y = map(dc.asarray, arrays(dtype))
    for _ in range(4):
        getattr(f(x, y), fold)()
    if not deferred(f(x, y)):
        pytest.skip("other places have taken those of this function in the table")
    return f, x, y
