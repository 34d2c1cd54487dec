"""Run-time checks for overflows of NumPy's integer scalars: NumPy warns of these, but not of arrays'
overflows.

Where a check fails, compiled code raises the floating-point flag of an invalid operation, as for indices out
of bounds (`gathers`).  Then Python runs the loop, and NumPy warns.
"""

from __future__ import annotations

import numpy as np

from dcarray.ir.nodes import Apply, Expr
from dcarray.ir.ops import const

from ..entry.entry_values import DType
from .values import cast

_F8, _BOOL = np.dtype(np.float64), np.dtype(np.bool_)
WATCHED = frozenset({"add", "subtract", "multiply", "negative", "absolute"})


def with_overflow_check(name: str, value: Expr, args: tuple[Expr, ...], dtype: DType) -> Expr:
    """Return the result of an integer operation, with a check that it has not overflowed."""
    if name == "absolute":
        if dtype.kind == "u":
            return value
        smallest = const(np.iinfo(dtype).min, dtype)
        return _checked(Apply("not_equal", (*args, smallest), _BOOL), value, dtype)
    if name == "negative":
        name, args = "subtract", (const(0, dtype), *args)
    return _checked(Apply(f"{name}_fits", args, _BOOL), value, dtype)


def checked_cast(value: Expr, dtype: DType) -> Expr:
    """Return a scalar cast to an integer dtype, with a check that it fits."""
    number, info = cast(value, _F8), np.iinfo(dtype)
    wide = dtype.itemsize == 8  # its bounds are no float64: they round to the next power of two
    low = const(float(info.min) - (not wide), _F8)
    high = const(float(info.max) + (not wide), _F8)
    above = Apply("greater_equal" if wide and info.min else "greater", (number, low), _BOOL)
    if wide and not info.min:
        above = Apply("greater", (number, const(-1.0, _F8)), _BOOL)
    fits = Apply("logical_and", (above, Apply("less", (number, high), _BOOL)), _BOOL)
    return _checked(fits, cast(value, dtype), dtype)


def _checked(fits: Expr, value: Expr, dtype: DType) -> Expr:
    return Apply("checked", (fits, value), dtype)
