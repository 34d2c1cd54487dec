"""Arithmetic of Python's ints whose values are known at run time: 64 bits, with checks that results fit."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np

from dcarray.ir.nodes import Apply
from dcarray.ir.ops import const

from . import overflow
from .bounds import result_bounds
from .numbers import Numbers
from .operators import BINARY
from .values import Data, Value, cast

__all__ = ["Integers", "plain_int"]

_I8, _U8 = np.dtype(np.int64), np.dtype(np.uint64)
_F8, _BOOL = np.dtype(np.float64), np.dtype(np.bool_)
_UNSIGNED = (">>", "//", "%")  # faster on unsigned integers
_MAX_POWER = 8  # of which products are made


class Integers(Numbers):
    """Arithmetic of Python's ints; values are stored in ``memory``."""

    def integer(self, op: str, a: Value, b: Value) -> Data:
        """Trace ``a op b`` for Python ints known at run time."""
        if op == "**" and type(b) is int and 1 < b <= _MAX_POWER:
            power: Data = reduce(partial(self.integer, "*"), [a] * b)
            return power
        if op in ("//", "%"):
            b = self.nonzero(b)
        bounds = result_bounds(op, *[self.limits(x) for x in (a, b)])
        if bounds is None:
            raise self.scope.fail(f"an integer has no known bounds: {op}")
        if max(map(abs, bounds)) > 1 << 62:
            return self._checked_integer(op, a, b)
        smallest = min(self.limits(x)[0] for x in (a, b))
        dtype = _U8 if smallest >= 0 and op in _UNSIGNED else _I8
        expr = Apply(BINARY[op][0], (self.expr(plain_int(a), dtype), self.expr(plain_int(b), dtype)), dtype)
        return self.memory.value(cast(expr, _I8), scalar=True, weak=int, limits=bounds)

    def true_quotient(self, a: Value, b: Value) -> Data:
        """Return the quotient of two ints of at most 53 bits; the divisor is not 0."""
        args = self.exact(plain_int(a), _F8), self.exact(plain_int(b), _F8)
        return self.memory.value(Apply("divide", args, _F8), scalar=True, weak=float)

    def nonzero(self, b: Value) -> Value:
        """Return a divisor, with a check that it is not zero if it may be."""
        low, high = self.limits(b)
        if low > 0 or high < 0 or low == high:
            return b
        number = self.expr(plain_int(b), _I8)
        fits = Apply("not_equal", (number, const(0, _I8)), _BOOL)
        divisor = Apply("checked", (fits, Apply("where", (fits, number, const(1, _I8)), _I8)), _I8)
        limits = low + (not low), high - (not high)
        return self.memory.value(divisor, scalar=True, weak=int, limits=limits)

    def _checked_integer(self, op: str, a: Value, b: Value) -> Data:
        """Trace ``a op b`` for Python ints known at run time, with a check that the result has 64 bits."""
        name = BINARY[op][0]
        if name not in ("add", "subtract", "multiply"):
            raise self.scope.fail("an integer may be too large")
        args = (self.expr(plain_int(a), _I8), self.expr(plain_int(b), _I8))
        expr = overflow.with_overflow_check(name, Apply(name, args, _I8), args, _I8)
        limits = int(np.iinfo(_I8).min), int(np.iinfo(_I8).max)
        return self.memory.value(expr, scalar=True, weak=int, limits=limits)


def plain_int(value: Value) -> Value:
    return int(value) if type(value) is bool else value
