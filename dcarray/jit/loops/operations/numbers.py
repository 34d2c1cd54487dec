"""Broadcasting of traced values with proofs about shapes, and numbers as expressions of a dtype."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dcarray.ir.nodes import Apply, Dim, Expr, Index, Size
from dcarray.ir.ops import const
from dcarray.ir.windows import remap

from ..entry.entry_values import DType
from .bounds import Bounds
from .flag_checks import may_fail
from .memory import Memory
from .values import Data, Shape, Value, cast, is_int, kind_of

_EXACT = 1 << 53
MAX_COUNTER = 1 << 52  # a loop that counts takes days to get there
_I8, _F8, _BOOL = np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.bool_)
ERRORS = (ArithmeticError, TypeError, ValueError, RuntimeWarning, FloatingPointError)


class Numbers:
    """Conversions of shapes and numbers; values are stored in ``memory``."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.scope = memory.scope

    # ---- shapes -------------------------------------------------------------------------------------
    def broadcast(self, shapes: Sequence[Shape]) -> Shape:
        """Return the broadcast shape; fails unless shapes are proved to fit."""
        out: list[Dim] = []
        for axis in range(-max(map(len, shapes), default=0), 0):
            sizes = [s[axis] for s in shapes if -axis <= len(s)]
            sizes = [n for n in sizes if n != 1] or [1]
            if not all(self.scope.need_eq(n, sizes[0]) for n in sizes[1:]):
                raise self.scope.fail("shapes are not known to fit")
            out.append(sizes[0])
        return tuple(out)

    def expand(self, expr: Expr, shape: Shape, domain: Shape) -> Expr:
        """Return an expression over ``shape``, broadcast to ``domain``.  A scalar that may raise an
        exception is computed before: there may be no elements."""
        if shape == domain:
            return expr
        if not shape and may_fail(expr):
            self.memory.store(scalar := self.memory.value(expr, scalar=True))
            expr = scalar.expr
        shift = len(domain) - len(shape)
        amap = tuple(
            Index(0) if n == 1 != domain[k + shift] else Index(0, 1, k + shift) for k, n in enumerate(shape)
        )
        return remap(expr, amap, domain)

    def fits(self, shape: Shape, target: Shape) -> Shape:
        """Return the shape of an assigned value without leading axes of length 1 that NumPy drops."""
        while len(shape) > len(target) and shape[0] == 1:
            shape = shape[1:]
        if len(shape) > len(target):
            raise self.scope.fail("a value has too many axes")
        for n, m in zip(reversed(shape), reversed(target), strict=False):
            if n != 1 and not self.scope.need_eq(n, m):
                raise self.scope.fail("a value is not known to fit where it is assigned")
        return shape

    # ---- expressions --------------------------------------------------------------------------------
    def expr(self, value: Value, dtype: DType) -> Expr:
        """Return a number as an expression of a dtype; raises `Untraceable` if it may not fit."""
        if isinstance(value, Data):
            return cast(self._fitting(value, dtype) if value.weak is int else value.expr, dtype)
        if is_int(value) and type(value) is not int:
            self._dimension_fits(value, dtype)
            return cast(Size(value, _I8), dtype)
        try:
            with np.errstate(all="raise"):
                return const(value, dtype)
        except ERRORS as error:
            raise self.scope.fail(f"a number does not fit {dtype}") from error

    def exact(self, value: Value, dtype: DType) -> Expr:
        """Do what `expr` does, for numbers that a dtype has exactly."""
        large = type(value) is int and dtype.kind == "f" and abs(value) > _EXACT
        if large and (value.bit_length() > 1023 or int(float(value)) != value):
            raise self.scope.fail(f"no number of type {dtype} is {value}")
        return self.expr(value, dtype)

    def _fitting(self, value: Data, dtype: DType) -> Expr:
        """Return a Python int, with a check (if needed) that a floating-point dtype has it exactly."""
        (low, high), limits = _exact(dtype), value.limits
        if dtype.kind not in "fc" or limits is None or (low <= limits[0] and limits[1] <= high):
            self._fits(limits, dtype)
            return value.expr
        ends = [("greater_equal", low), ("less_equal", high)]
        fits = [Apply(op, (value.expr, const(end, _I8)), _BOOL) for op, end in ends]
        self.memory.may_raise = True
        return Apply("checked", (Apply("logical_and", tuple(fits), _BOOL), value.expr), _I8)

    def _fits(self, limits: tuple[int, int] | None, dtype: DType) -> None:
        low, high = _exact(dtype)
        if limits is None or limits[0] < low or limits[1] > high:
            raise self.scope.fail(f"an integer may not fit {dtype}")

    def _dimension_fits(self, value: Dim, dtype: DType) -> None:
        limits, (low, high) = self.scope.limits(value), _exact(dtype)
        if limits[0] < low and self.scope.need_le(low, value):
            limits = low, limits[1]
        if limits[1] > high and self.scope.need_le(value, high):
            limits = limits[0], high
        self._fits(limits, dtype)

    def as_numpy(self, value: Value) -> Data:
        """Return a number with the dtype of ``numpy.asarray(value)``."""
        if isinstance(value, Data) and not value.weak:
            return value
        dtype = value.dtype if isinstance(value, Data) else np.result_type(kind_of(value)(0))
        return self.memory.value(self.expr(value, dtype), scalar=True)

    def append_axes(self, expr: Expr, shape: Shape, wanted: Shape) -> Expr:
        """Return an expression over ``shape``, with axes of length 1 added at the end."""
        if len(shape) == len(wanted):
            return expr
        return remap(expr, tuple(Index(0, 1, k) for k in range(len(shape))), wanted)

    # ---- integers -----------------------------------------------------------------------------------
    def as_counter(self, x: Value) -> Data:
        """Return a scalar truncated to a Python int, with a run-time check that it is below `MAX_COUNTER`."""
        if not isinstance(x, Data):
            raise self.scope.fail(f"{x} is large")
        low, high = -MAX_COUNTER, MAX_COUNTER - 1
        if x.dtype.kind != "f":
            low, high = (max(low, self.limits(x)[0]), min(high, self.limits(x)[1]))
        counter, dtype = cast(x.expr, _I8), x.dtype
        if x.dtype.kind == "f":
            absolute = Apply("absolute", (cast(x.expr, _F8),), _F8)
            within = Apply("less", (absolute, const(float(MAX_COUNTER), _F8)), _BOOL)
        elif (low, high) == self.limits(x):
            within = None
        elif dtype == np.uint64:
            within = Apply("less_equal", (x.expr, const(high, dtype)), _BOOL)
        else:
            ends = [("greater_equal", low), ("less_equal", high)]
            tests = [Apply(op, (counter, const(end, _I8)), _BOOL) for op, end in ends]
            within = Apply("logical_and", tuple(tests), _BOOL)
        if within is not None:
            self.memory.may_raise = True
            counter = Apply("checked", (within, counter), _I8)
        return self.memory.value(counter, scalar=True, weak=int, limits=(low, high))

    def limits(self, x: Value) -> Bounds:
        """Return the bounds of an integer, Python's or NumPy's."""
        if not isinstance(x, Data):
            return self.scope.limits(int(x) if type(x) is bool else x)
        if x.dtype.kind == "b" or (x.weak is None and x.dtype.kind in "iu"):
            return _exact(x.dtype)
        if x.limits is None:
            raise self.scope.fail("an integer has no known bounds")
        return x.limits


def _exact(dtype: DType) -> Bounds:
    """Return the bounds within which a dtype represents all integers exactly."""
    if dtype.kind in "iu":
        return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return (-_EXACT, _EXACT) if dtype.kind in "fc" else (0, 1)
