"""Masked reductions in the op-by-op interpreter: a recorded ``sum(where(mask, x, 0))`` is ``x[mask].sum()``.

It needs no temporary array of the size of ``x``, and the less time the fewer elements are selected.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.ir.log_entries import Statement
from dcarray.ir.ops import OPS

NDArray = np.ndarray[Any, Any]

_FOLDS = frozenset({"add", "maximum", "minimum"})


def can_join(first: Statement, second: Statement) -> bool:
    """Whether one statement is a `where` of an array and a scalar, and the other a full reduction of its
    result, in its dtype."""
    if (first.kind, first.op) != ("map", "where") or second.kind != "fold" or second.op not in _FOLDS:
        return False
    mask, x, rest = first.args
    (arg,) = second.args
    chosen = type(arg) is tuple and arg[:2] == (first.out, None) and second.shape == first.shape
    kinds = first.loop[-1] == second.loop[0] != "?"
    return (
        chosen and kinds and first.index is None and len(second.axes) == len(first.shape)
        and type(mask) is type(x) is tuple and type(rest) is int
    )  # fmt: skip


def reduce_selected(op: str, dtype: Any, out: NDArray, mask: NDArray, x: NDArray, rest: Any) -> bool:
    """Do ``out[...] = op.reduce(where(mask, x, rest))`` on the selected elements; False, with nothing done,
    if ``rest`` would change the result."""
    if mask.shape != x.shape or mask.dtype != bool or not _is_identity(op, rest):
        return False
    ufunc: Any = OPS[op].reference
    values = x[mask]
    if values.size:
        ufunc.reduce(values, 0, dtype, out.reshape(()))
    else:
        out[...] = rest
    return True


def _is_identity(op: str, rest: Any) -> bool:
    """Whether a value is the identity of an operation."""
    kind = rest.dtype.kind
    if op == "add":
        return not rest and (kind in "iu" or (kind == "f" and bool(np.signbit(rest))))
    if kind == "f":
        return bool(rest == (-np.inf if op == "maximum" else np.inf))
    if kind not in "iu":
        return False
    bounds = np.iinfo(rest.dtype)
    return bool(rest == (bounds.min if op == "maximum" else bounds.max))


def count_true(op: str, value: NDArray, out: NDArray) -> bool:
    """Do ``out[...] = add.reduce(value)`` of bools as integers; False for any other reduction."""
    if op != "add" or value.dtype != bool or out.dtype.kind not in "iu" or out.size != 1:
        return False
    out[...] = np.asarray(np.count_nonzero(value))  # a number that is too large raises, an array wraps around
    return True
