"""NumPy's functions that make arrays of numbers, sequences and ranges, on traced values."""

from __future__ import annotations

from functools import partialmethod

import numpy as np

from dcarray.ir import dims
from dcarray.ir.nodes import Apply, Dim, Expr, Index, Iota
from dcarray.ir.ops import const
from dcarray.ir.windows import remap

from ..entry.entry_values import DType
from .indexing import run_length
from .tools import Tools
from .values import Data, Value, is_array, is_int, is_number, kind_of

_I8, _F8, _BOOL = np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.bool_)
_LEAST_SAFE_SPAN = 1e-290  # from which on no number of elements makes a step of 0
_MOST_CHECKED = 1 << 20  # elements of a range whose formula is compared with NumPy's range
_GRIDS_ARE_TUPLES = isinstance(np.meshgrid([0.0]), tuple)  # else lists


class Creation(Tools):
    """``_np_zeros`` traces ``numpy.zeros``, whose parameters it has, and so on."""

    # ---- new arrays ---------------------------------------------------------------------------------
    def _np_empty(self, shape: Value, dtype: Value = _F8, order: Value = "C") -> Value:
        if order != "C":
            raise self.scope.fail("an order that is not understood")
        return self.arrays.empty(self.arrays.shape(shape), self._dtype(dtype) or _F8)

    def _np_ndarray(self, shape: Value, dtype: Value = _F8, *, order: Value = "C") -> Value:
        return self._np_empty(shape, dtype, order)

    def _filled(self, value: int, shape: Value, dtype: Value = _F8, order: Value = "C") -> Value:
        return self.arrays.filled(self._np_empty(shape, dtype, order), value)

    _np_zeros, _np_ones = partialmethod(_filled, 0), partialmethod(_filled, 1)

    def _np_full(self, shape: Value, fill_value: Value, dtype: Value = None) -> Value:
        kind = self.math.as_numpy(fill_value).dtype if dtype is None else self.arrays.dtype(dtype)
        return self.arrays.filled(self.arrays.empty(self.arrays.shape(shape), kind), fill_value)

    def _np_empty_like(self, a: Value, dtype: Value = None) -> Value:
        if not is_array(a):
            raise self.scope.fail("an array like a scalar")
        return self.memory.note_order(self.arrays.empty(a.shape, self._dtype(dtype) or a.dtype), a)

    def _filled_like(self, value: int, a: Value, dtype: Value = None) -> Value:
        return self.arrays.filled(self._np_empty_like(a, dtype), value)

    _np_zeros_like, _np_ones_like = partialmethod(_filled_like, 0), partialmethod(_filled_like, 1)

    def _np_full_like(self, a: Value, fill_value: Value, dtype: Value = None) -> Value:
        return self.arrays.filled(self._np_empty_like(a, dtype), fill_value)

    def _np_eye(self, N: Value, M: Value = None, k: Value = 0, dtype: Value = _F8) -> Value:
        if not all(map(is_int, (N, k))) or not (M is None or is_int(M)):
            raise self.scope.fail("the size of a matrix is not known")
        kind = self.arrays.dtype(dtype)
        edge = Apply("add", (Iota(0, _I8), self.math.expr(k, _I8)), _I8)
        inside = Apply("equal", (edge, Iota(1, _I8)), _BOOL)
        expr = Apply("where", (inside, const(1, kind), const(0, kind)), kind)
        return self.memory.value(expr, self.arrays.shape((N, N if M is None else M)))

    def _np_copy(self, a: Value) -> Value:
        x = self.arrays.asarray(a)
        return self.memory.note_order(self.memory.copy(x), x) if is_array(a) else x

    def _np_ascontiguousarray(self, a: Value, dtype: Value = None) -> Value:
        if not is_array(a) or not a.shape:
            raise self.scope.fail("the value to make contiguous is not an array with axes")
        kind = self._dtype(dtype) or a.dtype
        if kind == a.dtype:
            self.memory.pin_sources(a)
        if a.window is None or kind != a.dtype:
            return self.memory.copy(a, dtype=kind)
        contiguous = self.memory.contiguous(a)
        if contiguous is None:
            raise self.scope.fail("it is not known whether an array is contiguous")
        return a if contiguous else self.memory.copy(a)

    def _np_array(self, object: Value, dtype: Value = None, *, copy: Value = True) -> Value:
        if copy is not True:
            raise self.scope.fail("an array that is perhaps no copy")
        return self.array(object, self._dtype(dtype))

    def _np_asarray(self, a: Value, dtype: Value = None) -> Value:
        kind = self._dtype(dtype)
        return self._cast(a, kind) if is_array(a) else self.array(a, kind)

    # ---- ranges -------------------------------------------------------------------------------------
    def _np_arange(self, *args: Value, dtype: Value = None) -> Value:
        if not 1 <= len(args) <= 3:
            raise self.scope.fail("a range that is not known")
        start, stop = (0, args[0]) if len(args) == 1 else args[:2]
        step = args[2] if len(args) == 3 else 1
        kind = self._dtype(dtype)
        if any(type(x) is float for x in args):
            return self._float_range(start, stop, step, kind)
        if not all(map(is_int, args)) or type(step) is not int or not step:
            raise self.scope.fail("a range that is not known")
        if kind is not None and kind.kind not in "iuf":
            raise self.scope.fail("a range that is not understood")
        for end in (start, stop):
            if kind is not None and kind.kind == "f":  # NumPy computes in this dtype
                most = 2 << np.finfo(kind).nmant
                if not (self.scope.need_le(end, most) and self.scope.need_le(-most, end)):
                    raise self.scope.fail("a range of floats that are perhaps rounded")
            self.math.expr(end, kind or _I8)  # in range, or untraceable
        value = self._steps(start, step, _I8)
        return self.memory.value(
            value if kind is None or kind == _I8 else Apply("cast", (value,), kind),
            (run_length(self.scope, start, stop, step),),
        )

    def _steps(self, start: Value, step: int, dtype: DType) -> Expr:
        value: Expr = Iota(0, dtype)
        if step != 1:
            value = Apply("multiply", (value, const(step, dtype)), dtype)
        return Apply("add", (value, self.math.expr(start, dtype)), dtype)

    def _float_range(self, start: Value, stop: Value, step: Value, kind: DType | None) -> Data:
        """Return a range of floats known when tracing: the first two are computed, the next are multiples of
        their difference, as in NumPy."""
        if (kind is not None and kind != _F8) or not all(
            type(x) in (int, float) for x in (start, stop, step)
        ):
            raise self.scope.fail("a range of floats that is not known")
        try:
            with np.errstate(all="raise"):
                wanted = np.arange(start, stop, step)
                second = float(start) + float(step)
                between = second - float(start)
        except (ArithmeticError, ValueError, MemoryError) as error:
            raise self.scope.fail("a range of floats fails") from error
        expr = self._line(float(start), between)
        if wanted.dtype != _F8 or not 2 < wanted.size <= _MOST_CHECKED:
            raise self.scope.fail("a range of floats that is too short or too long")
        if not np.array_equal(wanted, np.arange(wanted.size, dtype=float) * between + float(start)):
            raise self.scope.fail("a range of floats whose elements are not understood")
        return self.memory.value(expr, (wanted.size,))

    def _line(self, start: float, step: float) -> Expr:
        """Return ``k * step + start`` at the index k."""
        steps = Apply("multiply", (Apply("cast", (Iota(0, _I8),), _F8), const(step, _F8)), _F8)
        return Apply("add", (steps, const(start, _F8)), _F8)

    def _np_linspace(
        self, start: Value, stop: Value, num: Value = 50, endpoint: Value = True, *, dtype: Value = None
    ) -> Value:
        kind, last = self._dtype(dtype) or _F8, self._flag(endpoint)
        ends = [start, stop]
        if kind.char not in "fd" or not is_int(num) or not all(self._is_double(x) for x in ends):
            raise self.scope.fail("a linspace that is not understood")
        if not self.scope.need_le(2, num):  # NumPy has another formula for a single element
            raise self.scope.fail("a linspace of perhaps less than two elements")
        of = self.math.elementwise
        count = dims.simplify(num - last)
        low, high, parts = (self.memory.value(self.math.expr(x, _F8), scalar=True) for x in (*ends, count))
        delta = of("subtract", (high, low))
        step = of("divide", (delta, parts))
        place = self.memory.value(Apply("cast", (Iota(0, _I8),), _F8), (num,))
        points = of("multiply", (place, step))
        known = all(type(x) in (int, float) for x in ends)
        if not known or abs(float(stop) - float(start)) < _LEAST_SAFE_SPAN:  # a step of 0 may be an underflow
            small = of("multiply", (of("divide", (place, parts)), delta))
            points = of("where", (of("equal", (step, 0.0)), small, points))
        points = of("add", (points, low))
        if last:
            at_end = self.memory.value(
                Apply("equal", (Iota(0, _I8), self.math.expr(dims.simplify(num - 1), _I8)), _BOOL), (num,)
            )
            points = of("where", (at_end, high, points))
        return points if kind == _F8 else self.arrays.astype(points, kind)

    def _is_double(self, x: Value) -> bool:
        """Whether a number is an int, a float, or a scalar of float64."""
        return is_number(x) and not is_array(x) and kind_of(x) in (int, float, "d")

    def _np_meshgrid(self, *xi: Value, indexing: Value = "xy") -> Value:
        if not xi or indexing not in ("xy", "ij") or not all(is_array(x) and len(x.shape) == 1 for x in xi):
            raise self.scope.fail("a grid of other things than vectors")
        order = list(range(len(xi)))
        if indexing == "xy" and len(xi) > 1:
            order[:2] = 1, 0
        shape: list[Dim] = [0] * len(xi)
        for x, axis in zip(xi, order, strict=True):
            shape[axis] = x.shape[0]
        grids = [
            self.memory.copy(
                self.memory.value(remap(x.expr, (Index(0, 1, axis),), tuple(shape)), tuple(shape))
            )
            for x, axis in zip(xi, order, strict=True)
        ]
        return tuple(grids) if _GRIDS_ARE_TUPLES else grids
