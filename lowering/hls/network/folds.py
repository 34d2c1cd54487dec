"""Folds (reductions) in circuits: the number of accumulators per result, and their initial values."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.ir.nodes import Window

LANES = 16
"""Accumulators of a sum or product of floating-point numbers, to which operands go in turn."""


def kept_axes(target: Window) -> tuple[int, ...]:
    """Return the domain axes of a fold that are not reduced, given its target."""
    return tuple(sorted({ix.axis for ix in target.index if ix.axis is not None}))


def accumulators(combine: str | None, dtype: np.dtype[Any]) -> int:
    """Return the number of accumulators per result: several for floats, whose addition is slow."""
    return LANES if dtype.kind == "f" and combine in ("add", "multiply") else 1


def neutral(combine: str, dtype: np.dtype[Any]) -> np.generic | None:
    """Return the neutral element of a fold's operation; None if there is none."""
    value = _neutral(combine, dtype)
    return None if value is None else np.full(1, value, dtype)[0]


def _neutral(combine: str, dtype: np.dtype[Any]) -> float | None:
    match combine:
        case "add" | "bitwise_or" | "bitwise_xor" | "logical_or" | "logical_xor":
            return 0
        case "multiply" | "logical_and":
            return 1
        case "bitwise_and":
            return np.iinfo(dtype).max if dtype.kind == "u" else 1 if dtype.kind == "b" else -1
        case "maximum" | "minimum":
            low = combine == "maximum"
            if dtype.kind == "b":
                return int(not low)
            if dtype.kind == "f":
                return -np.inf if low else np.inf
            ends = np.iinfo(dtype)
            return ends.min if low else ends.max
    return None  # fmax and fmin: only NaN changes nothing, and is not always what is there
