"""Python's built-in functions and those of `math`, on traced values."""

from __future__ import annotations

import math
from functools import partialmethod

import numpy as np

from dcarray.ir.nodes import Apply, Load
from dcarray.ir.ops import const

from .descriptions import described
from .either_type import choice, either_kind, of_both
from .elementwise import Elementwise
from .tables import listed
from .texts import Text
from .tools import Tools
from .values import (
    PYTHON,
    Data,
    GrownList,
    ItemRange,
    Masked,
    NumberList,
    PythonOrNumpy,
    RaggedList,
    RangeProduct,
    Row,
    RuntimeRange,
    Stack,
    Value,
    is_array,
    is_int,
    kind_of,
)  # fmt: skip

_I8, _F8, _BOOL = np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.bool_)
MOST_IN_RANGE = 1 << 46
"""The largest end or step of a range: kernels add thousands of steps to a number of it, in 64 bits."""


class PythonCalls(Tools):
    """Tracing of Python's functions: ``_py_len`` traces ``len``, ``_math_sqrt`` traces ``math.sqrt``."""

    # ---- built-ins ----------------------------------------------------------------------------------
    def _py_range(self, *args: Value) -> ItemRange | RuntimeRange:
        if not 1 <= len(args) <= 3:
            raise self.scope.fail("a range that is not known")
        ends = [self._whole(x) for x in args]
        start, stop = (0, ends[0]) if len(ends) == 1 else ends[:2]
        step = ends[2] if len(ends) == 3 else 1
        if any(type(end) is int and abs(end) > MOST_IN_RANGE for end in (start, stop, step)):
            raise self.scope.fail("a range of so large numbers")
        if type(step) is not int:
            return RuntimeRange(start, stop, self._positive(step))
        if not step:
            raise self.scope.fail("a range of step 0")
        known = is_int(start) and is_int(stop)
        return ItemRange(start, stop, step) if known else RuntimeRange(start, stop, step)

    def range_product(self, key: Value) -> RangeProduct:
        """Trace ``dc.map[key]``."""
        axes = key if type(key) is tuple else (key,)
        ranges = []
        for axis in axes:
            if not isinstance(axis, slice) or axis.stop is None:
                raise self.scope.fail("dc.map takes start:stop for each axis")
            bounds = (
                0 if axis.start is None else axis.start,
                axis.stop,
                1 if axis.step is None else axis.step,
            )
            if any(isinstance(bound, float | complex) for bound in bounds):
                raise self.scope.fail("dc.map takes integers as bounds")
            ranges.append(self._py_range(*bounds))
        if not ranges:
            raise self.scope.fail("dc.map takes start:stop for each axis, and there is none")
        return RangeProduct(tuple(ranges))

    def _whole(self, x: Value) -> Value:
        """Return an integer as a Python int, stored if it is a run-time value."""
        if not (isinstance(x, Data) and x.scalar and x.dtype.kind in "iu"):
            if not is_int(x):
                raise self.scope.fail("a range that is not known")
            return x
        integer = x if x.weak is int else self.math.as_counter(x)
        if not isinstance(integer.expr, Load):
            self.memory.store(integer)
        return integer

    def _positive(self, step: Value) -> Value:
        """Return the step of a range, with a check that it is above 0."""
        low, high = self.math.limits(step)
        if low > 0:
            return step
        number = self.math.expr(step, _I8)
        fits = Apply("greater", (number, const(0, _I8)), _BOOL)
        safe = Apply("where", (fits, number, const(1, _I8)), _I8)
        positive = self.memory.value(
            Apply("checked", (fits, safe), _I8), scalar=True, weak=int, limits=(1, max(1, high))
        )
        self.memory.store(positive)
        return positive

    def _np_ndindex(self, *shape: Value) -> RangeProduct:
        """Trace ``np.ndindex(*shape)``."""
        sizes = self.reductions.arrays.shape(shape[0] if len(shape) == 1 else shape)
        if not sizes:
            raise self.scope.fail("the places of an array without axes")
        return RangeProduct(tuple([ItemRange(0, size, 1) for size in sizes]), tuples=True)

    def _py_zip(self, *iterables: Value) -> Value:
        return self.iterables.zip(iterables)

    def _py_len(self, x: Value, /) -> Value:
        x = listed(x)
        if isinstance(x, tuple | list | str):
            return len(x)
        if isinstance(x, NumberList):
            return x.array.shape[0]
        if isinstance(x, Text):
            return x.codes.shape[0]
        if isinstance(x, GrownList):
            return x.count
        if isinstance(x, Row | Stack):
            return self.math.length(x)
        if isinstance(x, RaggedList):
            return x.starts.shape[0]
        if is_array(x) and x.shape:
            return x.shape[0]
        if isinstance(x, Masked) and x.along == len(x.full.shape):
            return self.reductions.count_true(x.mask)
        raise self.scope.fail("len() of a value that is not understood")

    def _py_complex(self, real: Value = 0, imag: Value = None) -> Value:
        if imag is None:
            return self.arrays.python(complex, real)
        parts = [self.arrays.python(float, x) for x in (real, imag)]
        if not any(isinstance(x, Data) for x in parts):
            return complex(*parts)
        return self.math.complex_of(*[self.math.expr(x, _F8) for x in parts])

    def _py_slice(self, *ends: Value) -> slice:
        if not 1 <= len(ends) <= 3:
            raise self.scope.fail("a slice that is not understood")
        return slice(*ends)

    def _py_list(self, *items: Value) -> Value:
        if items:
            raise self.scope.fail("a list of the items of another")
        return []

    def _py_abs(self, x: Value, /) -> Value:
        if isinstance(x, PythonOrNumpy):
            return of_both(self._py_abs, x, self.scope)
        if type(x) in PYTHON:
            return abs(x)
        if is_int(x) or (isinstance(x, Data) and x.weak is int):
            low, high = self.math.limits(x)
            if low >= 0 or high <= 0:
                return x if low >= 0 else self.math.unary("-", x)
            size = Apply("absolute", (self.math.expr(x, _I8),), _I8)
            return self.memory.value(size, scalar=True, weak=int, limits=(0, max(-low, high)))
        if isinstance(x, Data) and x.weak is complex:
            real, imag = [self.math.part(x, name) for name in ("real", "imag")]
            return self.math.of_c("hypot", [real, imag])
        if kind_of(x) in ("D", "F") and not is_array(x):  # NumPy's arrays have another formula
            dtype = np.dtype(x.dtype.char.lower())
            parts = [self.memory.value(Apply(p, (x.expr,), dtype), scalar=True) for p in ("real", "imag")]
            return self.math.elementwise("hypot", parts)
        if isinstance(x, Data) and (is_array(x) or (x.dtype.kind == "f" and x.weak in (None, float))):
            magnitude = self.math.elementwise("absolute", (x,))
            magnitude.weak = x.weak
            return magnitude
        raise self.scope.fail("abs() of a value that is not understood")

    def _py_sum(self, iterable: Value, /, start: Value = 0) -> Value:
        """Trace ``sum`` of a few values, one after the other."""
        if not isinstance(iterable, tuple | list):
            raise self.scope.fail("a sum of something that is neither a tuple nor a list")
        total = start
        for x in iterable:
            if kind_of(x) in (float, complex) and not is_array(x):  # Python 3.12 compensates their rounding
                raise self.scope.fail("a sum of Python floats")
            total = self.math.binary("+", total, x)
        return total

    def _connected(self, name: str, iterable: Value, /) -> Value:
        """Trace ``any`` or ``all`` of a few values."""
        if not isinstance(iterable, tuple | list):
            raise self.scope.fail("any() or all() of something that is neither a tuple nor a list")
        decides = name == "logical_or"
        so_far: bool | Data = not decides
        for x in iterable:
            truth = self.math.truth(x)
            if truth is decides:
                return decides
            if isinstance(truth, Data):
                so_far = truth if isinstance(so_far, bool) else self.math.both(name, so_far, truth)
        return so_far

    _py_any, _py_all = partialmethod(_connected, "logical_or"), partialmethod(_connected, "logical_and")

    def _py_round(self, number: Value, ndigits: Value = None) -> Value:
        """Trace ``round``; with ``ndigits`` only of NumPy's floats, since Python's decimal rounding is
        exact."""
        is_bool = isinstance(number, Data) and not number.weak and number.dtype == _BOOL
        if isinstance(number, PythonOrNumpy) or is_array(number) or is_bool:
            raise self.scope.fail("a rounding that is not understood")
        if ndigits is None:
            return self._rounded("rint", number)
        if not isinstance(number, Data) or number.weak or number.dtype.kind != "f":
            raise self.scope.fail("a rounding that is not understood")
        return Elementwise(self)._np_round(number, ndigits)

    def _py_divmod(self, a: Value, b: Value, /) -> Value:
        return self.math.binary("//", a, b), self.math.binary("%", a, b)

    def _py_pow(self, base: Value, exp: Value) -> Value:
        return self.math.binary("**", base, exp)

    def _extremum(self, op: str, *values: Value) -> Value:
        """Trace ``min`` or ``max`` of several values: the first extreme one."""
        if len(values) == 1:
            values = tuple(values[0]) if isinstance(values[0], tuple | list) else ()
        if not values:
            raise self.scope.fail("an extremum of values that are not understood")
        best = values[0]
        for x in values[1:]:
            better = self.math.truth(self.math.binary(op, x, best))
            if isinstance(better, Data):
                kind = kind_of(x)
                if kind is int and kind_of(best) is int:
                    best = self._extreme_integer(op, better, x, best)
                    continue
                if (either := either_kind(x, best)) is not None:
                    best = choice(self.memory, self.math, better.expr, x, best, either)
                    continue
                if is_array(x) or is_array(best) or kind != kind_of(best) or not isinstance(x, Data | float):
                    both = f"{described(best)} and {described(x)}"
                    raise self.scope.fail(
                        f"an extremum of {both} is the one or the other: give both one type"
                    )
                dtype, weak = np.dtype(kind), kind if isinstance(kind, type) else None
                pair = (self.math.expr(x, dtype), self.math.expr(best, dtype))
                if weak not in (None, float):
                    raise self.scope.fail("an extremum of Python integers")
                best = self.memory.value(Apply("where", (better.expr, *pair), dtype), scalar=True, weak=weak)
            elif better:
                best = x
        return best

    _py_max, _py_min = partialmethod(_extremum, ">"), partialmethod(_extremum, "<")

    def _extreme_integer(self, op: str, better: Data, x: Value, best: Value) -> Data:
        """Return ``x`` if it is ``better`` than ``best``, else ``best``, for Python ints."""
        lows, highs = zip(self.math.limits(x), self.math.limits(best), strict=True)
        choose = max if op == ">" else min
        expr = Apply("where", (better.expr, self.math.expr(x, _I8), self.math.expr(best, _I8)), _I8)
        limits = choose(lows), choose(highs)
        return self.memory.value(expr, scalar=True, weak=int, limits=limits)

    # ---- math ---------------------------------------------------------------------------------------
    def _scaled(self, factor: float, x: Value, /) -> Value:
        return self.math.binary("*", self.arrays.python(float, x), factor)

    _math_radians = partialmethod(_scaled, math.pi / 180.0)
    _math_degrees = partialmethod(_scaled, 180.0 / math.pi)

    def _math_fabs(self, x: Value, /) -> Value:
        return self._py_abs(self.arrays.python(float, x))

    def _rounded(self, name: str, x: Value, /) -> Value:
        if is_int(x):
            return x
        x = self.arrays.python(float, x)
        if isinstance(x, Data):
            x = self.memory.value(Apply(name, (x.expr,), x.dtype), scalar=True, weak=float)
            return self.math.as_counter(x)
        return self.arrays.python(int, float(getattr(np, name)(x)))

    _math_floor, _math_ceil = partialmethod(_rounded, "floor"), partialmethod(_rounded, "ceil")

    def _math_trunc(self, x: Value, /) -> Value:
        if isinstance(x, Data) and not x.weak and x.dtype != _F8:
            raise self.scope.fail("math.trunc of a NumPy scalar, which is no float: use int()")
        return self.arrays.python(int, x)

    def _test_of_float(self, name: str, x: Value, /) -> Value:
        value = self.arrays.python(float, x)
        if isinstance(value, Data):
            return self.memory.value(Apply(name, (value.expr,), _BOOL), scalar=True, weak=bool)
        return bool(getattr(math, name)(value))

    _math_isnan, _math_isinf = partialmethod(_test_of_float, "isnan"), partialmethod(_test_of_float, "isinf")
    _math_isfinite = partialmethod(_test_of_float, "isfinite")

    def _math_copysign(self, x: Value, y: Value, /) -> Value:
        given = [self.arrays.python(float, value) for value in (x, y)]
        if not any(isinstance(value, Data) for value in given):
            return math.copysign(*given)
        expr = Apply("copysign", tuple([self.math.expr(value, _F8) for value in given]), _F8)
        return self.memory.value(expr, scalar=True, weak=float)

    def _math_sqrt(self, x: Value, /) -> Value:
        value = self.arrays.python(float, x)
        if isinstance(value, Data):
            below = Apply("less", (value.expr, const(0.0, value.dtype)), _BOOL)
            root = Apply("sqrt", (value.expr,), value.dtype)
            expr = Apply("checked", (Apply("logical_not", (below,), _BOOL), root), value.dtype)
            return self.memory.value(expr, scalar=True, weak=float)
        if value < 0:
            raise self.scope.fail("the root of a negative number")
        return math.sqrt(value)
