"""Python's operators: the ufuncs of NumPy that do the same, and Python's functions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

__all__ = ["BINARY", "COMPARISONS", "UNARY"]

BINARY: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "+": ("add", operator.add), "-": ("subtract", operator.sub), "*": ("multiply", operator.mul),
    "/": ("divide", operator.truediv), "//": ("floor_divide", operator.floordiv),
    "%": ("remainder", operator.mod), "**": ("power", operator.pow), "&": ("bitwise_and", operator.and_),
    "|": ("bitwise_or", operator.or_), "^": ("bitwise_xor", operator.xor),
    "<<": ("left_shift", operator.lshift), ">>": ("right_shift", operator.rshift),
    "<": ("less", operator.lt), "<=": ("less_equal", operator.le), ">": ("greater", operator.gt),
    ">=": ("greater_equal", operator.ge), "==": ("equal", operator.eq), "!=": ("not_equal", operator.ne),
}  # fmt: skip
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
UNARY: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "-": ("negative", operator.neg), "+": ("positive", operator.pos), "~": ("invert", operator.invert)
}  # fmt: skip
