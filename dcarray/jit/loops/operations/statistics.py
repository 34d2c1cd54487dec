"""NumPy's sums, extrema and their places, means, variances and counts, on traced values."""

from __future__ import annotations

from functools import partial, partialmethod

import numpy as np

from dcarray.ir.build import extreme
from dcarray.ir.nodes import Apply, Expr, Index, Iota, Load, Size, Window
from dcarray.ir.ops import PLACES, const

from .tools import Tools
from .values import Data, Masked, Value, is_array, is_int

REDUCTIONS = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum", "amax": "maximum",
         "amin": "minimum", "any": "logical_or", "all": "logical_and"}  # fmt: skip
_I8, _BOOL = np.dtype(np.int64), np.dtype(np.bool_)
_COUNTS_ARE_INTS = isinstance(np.count_nonzero(np.ones(1, bool)), int)  # else NumPy's integers
_PLACED = "?bhilqBHILQfd"  # dtypes of which the place of an extremum is found


class Statistics(Tools):
    """``_np_mean`` traces ``numpy.mean``, ``_ufunc_reduce`` a ufunc's method, and so on."""

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        for name, ufunc in REDUCTIONS.items():
            method = self._reduction if ufunc in ("add", "multiply") else self._untyped_reduction
            setattr(self, f"_np_{name}", partial(method, ufunc))

    # ---- reductions ---------------------------------------------------------------------------------
    def _reduction(
        self, ufunc: str, a: Value, axis: Value = None, dtype: Value = None, out: Value = None,
        keepdims: Value = False,
    ) -> Value:  # fmt: skip
        self._none(out)
        a = self._array_of(a)
        if isinstance(a, Data) and a.scalar and a.dtype.char in "fd" and axis is None and dtype is None:
            return self._of_scalar(ufunc, a)
        return self.reductions.reduce(ufunc, a, axis, self._dtype(dtype), self._flag(keepdims))

    def _of_scalar(self, ufunc: str, x: Data) -> Data:
        """Return the reduction of a scalar by a ufunc: the scalar itself, except that -0.0 may become 0.0."""
        if ufunc not in ("add", "multiply", "maximum", "minimum"):
            raise self.scope.fail("a fold of a scalar")
        x = self.math.as_numpy(x)
        return self.math.elementwise("add", (x, 0.0)) if ufunc == "add" else x

    def _untyped_reduction(
        self, ufunc: str, a: Value, axis: Value = None, out: Value = None, keepdims: Value = False
    ) -> Value:
        return self._reduction(ufunc, a, axis, None, out, keepdims)

    def _ufunc_reduce(
        self, ufunc: str, array: Value, axis: Value = 0, dtype: Value = None, out: Value = None,
        keepdims: Value = False,
    ) -> Value:  # fmt: skip
        return self._reduction(ufunc, array, axis, dtype, out, keepdims)

    def _np_count_nonzero(self, a: Value) -> Value:
        return self.reductions.count_true(a, _COUNTS_ARE_INTS)

    def _np_mean(
        self, a: Value, axis: Value = None, dtype: Value = None, out: Value = None, keepdims: Value = False
    ) -> Value:
        self._none(out)
        a = self._array_of(a)
        return self.reductions.mean(a, axis, self._dtype(dtype), self._flag(keepdims))

    def _np_var(
        self, a: Value, axis: Value = None, dtype: Value = None, out: Value = None, ddof: Value = 0,
        keepdims: Value = False,
    ) -> Value:  # fmt: skip
        self._none(dtype, out)
        keep = self._flag(keepdims)
        if ddof not in (0, 1) or type(ddof) is not int:
            raise self.scope.fail("a variance that is not understood")
        if isinstance(a, Masked) and axis is None and not keep:
            return self.reductions.masked_variance(a, ddof)
        if not is_array(a) or a.dtype.char not in "fd":
            raise self.scope.fail("a variance that is not understood")
        count = self.arrays.count(a.shape, axis)
        if not self.scope.need_nonneg(count - ddof - 1):
            raise self.scope.fail("a variance of too few elements")
        mean = self.reductions.mean(a, axis, None, True)
        deviations = self.math.elementwise("subtract", (a, mean))
        squares = self.math.elementwise("multiply", (deviations, deviations))
        total = self.reductions.reduce("add", squares, axis, None, keep)
        return self.reductions.quotient(total, count - ddof)

    def _np_std(
        self, a: Value, axis: Value = None, dtype: Value = None, out: Value = None, ddof: Value = 0,
        keepdims: Value = False,
    ) -> Value:  # fmt: skip
        return self.math.elementwise("sqrt", (self._np_var(a, axis, dtype, out, ddof, keepdims),))

    def _np_average(self, a: Value, axis: Value = None, weights: Value = None) -> Value:
        x = self._sequence(a)
        if weights is None:
            return self.reductions.mean(x, axis, None)
        w = self._sequence(weights)
        fits = len(x.shape) == len(w.shape) == 1 and x.dtype.char == w.dtype.char == "d" and axis in (None, 0)
        if not fits or not self.scope.need_eq(x.shape[0], w.shape[0]):
            raise self.scope.fail("an average that is not understood")
        total = self.reductions.reduce("add", w)
        nonzero = Apply("not_equal", (total.expr, const(0.0, total.dtype)), _BOOL)
        self.memory.may_raise = True  # NumPy raises ZeroDivisionError
        checked = self.memory.value(Apply("checked", (nonzero, total.expr), total.dtype), scalar=True)
        product = self.reductions.reduce("add", self.math.elementwise("multiply", (x, w)))
        return self.math.elementwise("divide", (product, checked))

    # ---- places of extrema --------------------------------------------------------------------------
    def _place(self, name: str, a: Value, axis: Value = None) -> Data:
        """Return the first index of the extremum along an axis, or in C order if ``axis`` is None; NaN counts
        as extreme."""
        x = self._sequence(a)
        if not x.shape or x.dtype.char not in _PLACED or not (axis is None or type(axis) is int):
            raise self.scope.fail("the place of an extremum in a value that is not understood")
        axes = self.arrays.axes(axis, len(x.shape))
        if not all(self.scope.need_nonneg(x.shape[k] - 1) for k in axes):
            raise self.scope.fail("the place of an extremum in something that may be empty")
        x = x if isinstance(x.expr, Load) else self.memory.array(x)
        fold, kept = PLACES[name], tuple(k for k in range(len(x.shape)) if k not in axes)
        best = self.memory.new(tuple(x.shape[k] for k in kept), x.dtype)
        over = Window(best.array, x.shape, tuple(Index(0, 1, k) for k in kept))
        self.memory.fold(fold, over, x.expr, extreme(fold, x.dtype))
        self.memory.immutable.add(best.array)
        is_best: Expr = Apply("equal", (x.expr, Load(over, x.dtype)), _BOOL)
        if x.dtype.kind == "f":
            is_best = Apply("logical_or", (is_best, Apply("isnan", (x.expr,), _BOOL)), _BOOL)
        at: Expr = Iota(axes[0], _I8)
        for k in axes[1:]:
            row = Apply("multiply", (at, Size(x.shape[k], _I8)), _I8)
            at = Apply("add", (row, Iota(k, _I8)), _I8)
        last = extreme("minimum", _I8)
        body = Apply("where", (is_best, at, const(last, _I8)), _I8)
        places = self.reductions.fold("minimum", x.shape, axes, body, last)
        return self.memory.note_order(places, x) if places.shape else places

    _np_argmax, _np_argmin = partialmethod(_place, "argmax"), partialmethod(_place, "argmin")

    # ---- at places ----------------------------------------------------------------------------------
    def _ufunc_at(self, ufunc: str, a: Value, indices: Value, b: Value) -> None:
        """Trace ``ufunc.at``: one element after the other, so that an index that occurs twice has effect
        twice."""
        if ufunc not in ("add", "subtract", "multiply", "maximum", "minimum") or not is_array(a):
            raise self.scope.fail("values that are combined at indices are not understood")
        key = indices if isinstance(indices, tuple) else (indices,)
        if not self.arrays.gathers.is_data_dependent(key) or not self.arrays.scatters.is_scatter(key):
            raise self.scope.fail("indices that are not arrays of integers")

        def combined(old: Value, value: Value) -> Value:
            result = self.math.elementwise(ufunc, (old, value))
            if result.dtype != a.dtype:
                raise self.scope.fail("values that are combined at indices have another dtype")
            return result

        self.arrays.scatters.write(a, key, b, combined)

    def _np_bincount(self, x: Value, weights: Value = None, minlength: Value = 0) -> Value:
        x = self._sequence(x)
        if len(x.shape) != 1 or x.dtype.kind not in "iu" or x.dtype == np.uint64:
            raise self.scope.fail("counts of values that are not indices")
        if not is_int(minlength) or not self.scope.need_nonneg(minlength - 1):
            raise self.scope.fail("the number of counts is not known")
        zero = self.math.expand(const(0, x.dtype), (), x.shape)
        self.memory.may_raise = True
        positive = Apply("greater_equal", (x.expr, zero), _BOOL)
        places = self.memory.array(self.memory.value(Apply("checked", (positive, x.expr), x.dtype), x.shape))
        kind, w = (_I8, 1) if weights is None else (np.dtype(float), self._sequence(weights))
        if isinstance(w, Data):
            if w.dtype.kind not in "fiub" or w.shape != x.shape:
                raise self.scope.fail("weights of counts that are not understood")
            w = self.arrays.astype(w, kind)
        counts = self.arrays.filled(self.arrays.empty((minlength,), kind), 0)
        self._ufunc_at("add", counts, places, w)
        return counts
