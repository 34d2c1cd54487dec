"""NumPy's functions of each element that are no ufuncs, on traced values."""

from __future__ import annotations

import numpy as np

from dcarray.ir.nodes import Apply, Expr

from ..entry.entry_values import DType
from .tools import Tools
from .values import Data, Masked, Shape, Value, is_array, is_int, is_number, kind_of

_BOOL = np.dtype(np.bool_)


class Elementwise(Tools):
    """``_np_clip`` traces ``numpy.clip``, and so on."""

    def _np_where(self, condition: Value, x: Value, y: Value) -> Value:
        if not any(is_array(v) and v.shape for v in (condition, x, y)):  # NumPy gives an array without axes
            raise self.scope.fail("where of scalars")
        if kind_of(condition) not in (bool, "?"):
            condition = self.math.elementwise("not_equal", (condition, 0))
        return self.math.elementwise("where", (condition, x, y))

    def _np_clip(self, a: Value, a_min: Value = None, a_max: Value = None) -> Value:
        if a_min is None and a_max is None:
            raise self.scope.fail("bounds that are not understood")
        if a_min is None or a_max is None:
            name, bound = ("minimum", a_max) if a_min is None else ("maximum", a_min)
            return self.math.elementwise(name, (a, bound))
        if isinstance(a, Data) and a.weak is float:  # NumPy takes it for an array of float64
            a = self.math.as_numpy(a)
        if not isinstance(a, Data) or a.weak or a.dtype.char not in "fdbhilqBHILQ":
            raise self.scope.fail("bounds of a value that is not understood")
        if not (a.shape or a.scalar):
            raise self.scope.fail("bounds of an array without axes")
        dtype: DType = a.dtype
        low, high = (self._bound(v, dtype, a.shape) for v in (a_min, a_max))
        raised = Apply("where", (Apply("less", (a.expr, low), _BOOL), low, a.expr), dtype)
        expr = Apply("where", (Apply("greater", (raised, high), _BOOL), high, raised), dtype)
        return self.memory.value(expr, a.shape, scalar=a.scalar)

    def _bound(self, v: Value, dtype: DType, shape: Shape) -> Expr:
        """Return a scalar bound of `numpy.clip`, with a check that it is not NaN."""
        fits = kind_of(v) in ((bool, int, float) if dtype.kind == "f" else (bool, int)) or (
            isinstance(v, Data) and v.dtype == dtype
        )
        if is_array(v) or isinstance(v, Masked) or not fits:
            raise self.scope.fail("bounds that are not understood")
        expr = self.math.expr(v, dtype)
        if dtype.kind == "f" and not is_int(v):
            number = Apply("logical_not", (Apply("isnan", (expr,), _BOOL),), _BOOL)
            self.memory.may_raise = True
            checked = self.memory.value(Apply("checked", (number, expr), dtype), scalar=True)
            self.memory.store(checked)
            expr = checked.expr
        return self.math.expand(expr, (), shape)

    def _np_round(self, a: Value, decimals: Value = 0) -> Value:
        is_one = is_number(a) and not isinstance(a, Masked)
        x = a if is_array(a) or not is_one else self.math.as_numpy(a)
        if not is_one or x.dtype.char not in "fd" or type(decimals) is not int or not 0 <= decimals <= 15:
            raise self.scope.fail("a rounding that is not understood")
        if not decimals:
            return self.math.elementwise("rint", (x,))
        ten = float(10**decimals)
        scaled = self.math.elementwise("rint", (self.math.elementwise("multiply", (x, ten)),))
        return self.math.elementwise("divide", (scaled, ten))

    _np_around = _np_round

    def _np_angle(self, z: Value, deg: Value = False) -> Value:
        if not isinstance(z, Data) or z.dtype.kind != "c" or z.weak or deg is not False:
            raise self.scope.fail("an angle that is not understood")
        kind = np.empty(0, z.dtype).real.dtype
        parts = [
            self.memory.value(Apply(name, (z.expr,), kind), z.shape, scalar=z.scalar)
            for name in ("imag", "real")
        ]
        return self.math.elementwise("arctan2", parts)
