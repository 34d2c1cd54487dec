"""Bounds in the op-by-op interpreter: a recorded ``where(x < low, low, x)`` is one call of NumPy's ``clip``.

`numpy.clip` of floats is recorded as two of these, which are kernels of their own without branches; in NumPy
the comparison and ``where`` take five times as long as ``clip``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy._core import umath

from dcarray.ir.log_entries import Statement

NDArray = np.ndarray[Any, Any]

_clip: np.ufunc = vars(umath)["clip"]
_BOUNDS = frozenset({"less", "greater"})


def can_join(first: Statement, second: Statement) -> bool:
    """Whether one statement compares an array of floats with a number, and the other chooses that number
    where the comparison is true, and else the array."""
    if first.kind != "map" or first.op not in _BOUNDS or (second.kind, second.op) != ("map", "where"):
        return False
    x, bound = first.args
    mask, number, rest = second.args
    same = first.shape == second.shape and type(bound) is type(number) is int and x == rest
    kinds = first.loop[0] == first.loop[1] == second.loop[1] == second.loop[2] == second.loop[-1]
    whole = first.index is None and mask == (first.out, None, None)
    return same and type(x) is tuple and kinds and first.loop[0] in "fd" and whole


def bound_by(comparison: str, x: NDArray, bound: Any, number: Any, out: NDArray) -> bool:
    """Do ``out[...] = where(comparison(x, bound), number, x)``; False where NumPy's ``clip`` gives something
    else, or something overlaps."""
    if x.shape != out.shape or bound.tobytes() != number.tobytes() or np.isnan(bound):
        return False
    if comparison == "less":
        _clip(x, bound, _INFINITY[bound.dtype.char], out=out)
    else:
        _clip(x, -_INFINITY[bound.dtype.char], bound, out=out)
    return True


_INFINITY = {char: np.dtype(char).type(np.inf) for char in "fd"}
