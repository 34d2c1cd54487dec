"""Overflows of NumPy's integer scalars, of which NumPy warns: that of arrays passes unseen.

As with places outside of an array (`gathers`), the run itself looks, and raises the floating-point flag of an
invalid operation; then the loop runs as it is written, and NumPy says it.
"""

from __future__ import annotations

import numpy as np

from dcarray.ir.nodes import Apply, Expr
from dcarray.ir.ops import const

from .entry_values import DType
from .values import cast

_F8, _BOOL = np.dtype(np.float64), np.dtype(np.bool_)
WATCHED = frozenset({"add", "subtract", "multiply", "negative", "absolute"})


def watched(name: str, value: Expr, args: tuple[Expr, ...], dtype: DType) -> Expr:
    """The result of an operation on integers, which raises the flag where it is not the true one."""
    if name == "absolute":
        if dtype.kind == "u":
            return value
        least = const(np.iinfo(dtype).min, dtype)
        return _raising(Apply("not_equal", (*args, least), _BOOL), value, dtype)
    if name == "negative":
        name, args = "subtract", (const(0, dtype), *args)
    return _raising(Apply(f"{name}_fits", args, _BOOL), value, dtype)


def fitting(value: Expr, dtype: DType) -> Expr:
    """A scalar as an integer of a dtype, which raises the flag where that does not hold it."""
    number, info = cast(value, _F8), np.iinfo(dtype)
    wide = dtype.itemsize == 8  # whose bounds are no float64, but for what they round to
    low = const(float(info.min) - (not wide), _F8)
    high = const(float(info.max) + (not wide), _F8)
    above = Apply("greater_equal" if wide and info.min else "greater", (number, low), _BOOL)
    if wide and not info.min:
        above = Apply("greater", (number, const(-1.0, _F8)), _BOOL)
    fits = Apply("logical_and", (above, Apply("less", (number, high), _BOOL)), _BOOL)
    return _raising(fits, cast(value, dtype), dtype)


def _raising(fits: Expr, value: Expr, dtype: DType) -> Expr:
    return Apply("checked", (fits, value), dtype)
