"""Inequalities between dimensions that follow from a condition."""

from __future__ import annotations

import numpy as np

from .dims import simplify
from .nodes import Apply, Const, Dim, Expr, Size
from .ops import const_value

_OTHER = {"less": "greater_equal", "less_equal": "greater", "greater": "less_equal", "greater_equal": "less",
          "equal": "not_equal", "not_equal": "equal"}  # fmt: skip


def implied_inequalities(cond: Expr, holds: bool = True) -> list[Dim]:
    """Return dimensions that are at least 0 if a condition is true (with ``holds=False``, if it is false)."""
    if not isinstance(cond, Apply):
        return []
    if cond.op == "logical_not":
        return implied_inequalities(cond.args[0], not holds)
    if cond.op == ("logical_and" if holds else "logical_or"):
        return [fact for arg in cond.args for fact in implied_inequalities(arg, holds)]
    if cond.op not in _OTHER:
        return []
    a, b = (_dim(arg) for arg in cond.args)
    if a is None or b is None:
        return []
    d = simplify(b - a)
    facts = {
        "less": [d - 1], "less_equal": [d], "greater": [-d - 1], "greater_equal": [-d], "equal": [d, -d]
    }.get(cond.op if holds else _OTHER[cond.op], [])  # fmt: skip
    return [simplify(fact) for fact in facts]


def _dim(expr: Expr) -> Dim | None:
    """Return the dimension that an expression of dtype int64 is, if it is a size or a constant; else None."""
    if expr.dtype != np.int64:
        return None
    if isinstance(expr, Size):
        return expr.dim
    return int(const_value(expr)) if isinstance(expr, Const) else None
