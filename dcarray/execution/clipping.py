"""Bounds in the op-by-op interpreter: a recorded ``where(x < low, low, x)`` is one call of NumPy's ``clip``.

`numpy.clip` of floats is recorded as two of these, which are kernels of their own without branches; NumPy
takes five times as long for the comparison and the choice as for what it does itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy._core import umath

NDArray = np.ndarray[Any, Any]

_clip: np.ufunc = vars(umath)["clip"]
_BOUNDS = frozenset({"less", "greater"})


def can_join(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    """Whether one statement compares an array of floats with a number, and the other chooses that number
    where it says so, and the array elsewhere."""
    if first[0] != "map" or first[1] not in _BOUNDS or second[:2] != ("map", "where"):
        return False
    x, bound = first[6:8]
    mask, number, rest = second[6:9]
    same = first[3] == second[3] and type(bound) is type(number) is int and x == rest and type(x) is tuple
    kinds = first[2][0] == first[2][1] == second[2][1] == second[2][2] == second[2][-1]
    return same and kinds and first[2][0] in "fd" and first[5] is None and mask == (first[4], None, None)


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
