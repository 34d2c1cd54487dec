"""Arithmetic of Python's complex numbers on traced values, with the bits that Python gives."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from dcarray.ir.nodes import Apply, Expr
from dcarray.ir.ops import const

from .numbers import Numbers
from .values import Data, Value, is_int, kind_of

__all__ = ["ComplexNumbers", "product"]

_F8, _C16, _BOOL = np.dtype(np.float64), np.dtype(np.complex128), np.dtype(np.bool_)
_CONVERTS = sys.version_info < (3, 14)  # real numbers beside complex ones are made complex first
_MAX_POWER = 8  # of which products are made
Pair = tuple[Expr, Expr]


class ComplexNumbers(Numbers):
    """Arithmetic of complex numbers; values are stored in ``memory``."""

    def complex_operator(self, op: str, a: Value, b: Value) -> Data:
        """Trace ``a op b`` of Python's numbers, of which at least one is complex."""
        if op == "**":
            return self._complex_power(a, b)
        both = kind_of(a) is complex is kind_of(b)
        if not both and not _CONVERTS and op not in ("==", "!="):
            raise self.scope.fail("a complex number and a real one")
        x, y = self.parts(a), self.parts(b)
        if op in ("==", "!="):
            name, joined = ("equal", "logical_and") if op == "==" else ("not_equal", "logical_or")
            equal = tuple([Apply(name, pair, _BOOL) for pair in zip(x, y, strict=True)])
            return self.memory.value(Apply(joined, equal, _BOOL), scalar=True, weak=bool)
        if op in ("+", "-"):
            name = "add" if op == "+" else "subtract"
            real, imag = [Apply(name, pair, _F8) for pair in zip(x, y, strict=True)]
            return self.complex_of(real, imag)
        if op == "*":
            return self.complex_of(*_times(x, y))
        if op == "/":
            return self.complex_of(*_quotient(x, y))
        raise self.scope.fail(f"{op} of complex numbers")

    def complex_of(self, real: Expr, imag: Expr) -> Data:
        """Return the complex number with these parts."""
        return self.memory.value(Apply("complex", (real, imag), _C16), scalar=True, weak=complex)

    def parts(self, x: Value) -> Pair:
        """Return the real and the imaginary part of a number of Python's."""
        if kind_of(x) is not complex:
            return self.exact(x, _F8), const(0.0, _F8)
        if type(x) is complex:
            return const(x.real, _F8), const(x.imag, _F8)
        return Apply("real", (x.expr,), _F8), Apply("imag", (x.expr,), _F8)

    def part(self, x: Value, name: str) -> Value:
        """Trace ``x.real``, ``x.imag`` or ``x.conjugate()`` of a number of Python's."""
        if type(x) is bool or (not isinstance(x, Data) and not is_int(x)):
            return getattr(x, name)() if name == "conjugate" else getattr(x, name)
        kind = kind_of(x)
        if kind in (int, float):
            return kind(0) if name == "imag" else x
        if kind is not complex:
            raise self.scope.fail(f"the attribute {name} of a bool")
        real, imag = self.parts(x)
        if name == "conjugate":
            return self.complex_of(real, Apply("negative", (imag,), _F8))
        return self.memory.value(real if name == "real" else imag, scalar=True, weak=float)

    def negative_complex(self, x: Data) -> Data:
        """Trace ``-x``."""
        return self.complex_of(*[Apply("negative", (part,), _F8) for part in self.parts(x)])

    def _complex_power(self, a: Value, b: Value) -> Data:
        """Trace a power with a small positive int as exponent, for which Python multiplies, too."""
        whole = b.real if type(b) is complex and not b.imag else b
        if type(whole) not in (int, float) or not 0 < whole <= _MAX_POWER or whole != int(whole):
            raise self.scope.fail("a power of complex numbers")
        exponent, factor = int(whole), self.parts(a)
        power: Pair = (const(1.0, _F8), const(0.0, _F8))
        while True:
            if exponent & 1:
                power = _times(power, factor)
            exponent >>= 1
            if not exponent:
                return self.complex_of(*power)
            stored = self.complex_of(*_times(factor, factor))
            self.memory.store(stored)
            factor = self.parts(stored)


def product(a: Expr, b: Expr) -> Expr:
    """Return the product of complex scalars, without the fused operations of NumPy's arrays."""
    part = np.empty(0, a.dtype).real.dtype
    x, y = [(Apply("real", (z,), part), Apply("imag", (z,), part)) for z in (a, b)]
    return Apply("complex", _times(x, y), a.dtype)


def _times(x: Pair, y: Pair) -> Pair:
    (a, b), (c, d) = x, y
    return _sum_of_products("subtract", [(a, c), (b, d)]), _sum_of_products("add", [(a, d), (b, c)])


def _sum_of_products(op: str, factors: Sequence[Pair]) -> Expr:
    dtype = factors[0][0].dtype
    return Apply(op, tuple([Apply("multiply", pair, dtype) for pair in factors]), dtype)


def _quotient(x: Pair, y: Pair) -> Pair:
    """Return a quotient by Smith's method, with a check that the divisor is not 0."""
    (a, b), (c, d) = x, y
    sizes = tuple([Apply("absolute", (part,), _F8) for part in (c, d)])
    swapped = Apply("less", sizes, _BOOL)

    def either(there: Expr, here: Expr) -> Expr:
        return Apply("where", (swapped, there, here), _F8)

    large, small, first, second = either(d, c), either(c, d), either(b, a), either(a, b)
    fits = Apply("not_equal", (large, const(0.0, _F8)), _BOOL)
    ratio = Apply("divide", (small, Apply("checked", (fits, large), _F8)), _F8)
    whole = Apply("add", (large, Apply("multiply", (small, ratio), _F8)), _F8)
    added, taken = [Apply("multiply", (part, ratio), _F8) for part in (second, first)]
    real = Apply("divide", (Apply("add", (first, added), _F8), whole), _F8)
    above = either(Apply("subtract", (taken, second), _F8), Apply("subtract", (second, taken), _F8))
    return real, Apply("divide", (above, whole), _F8)
