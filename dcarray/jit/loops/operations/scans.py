"""NumPy's functions along an axis, on traced values: places of extrema, scans, norms and averages."""

from __future__ import annotations

import numpy as np

from dcarray.core.ufunc_loops import resolve_fold
from dcarray.ir.build import extreme
from dcarray.ir.nodes import Apply, Compute, Expr, Index, Iota, Load, Size, Window
from dcarray.ir.ops import OPS, PLACES, const

from .arrays import size_of
from .creation import Creation
from .values import Data, Masked, NumberList, PythonOrNumpy, Value, cast, is_array, is_int, is_number

_I8, _BOOL = np.dtype(np.int64), np.dtype(np.bool_)
_PLACED = "?bhilqBHILQfd"  # dtypes of which the place of an extremum is found


class Scans(Creation):
    """Tracing of NumPy's functions, continued: ``_np_cumsum`` traces ``numpy.cumsum``."""

    # ---- places of extrema --------------------------------------------------------------------------
    def _np_argmax(self, a: Value, axis: Value = None) -> Value:
        return self._place("argmax", a, axis)

    def _np_argmin(self, a: Value, axis: Value = None) -> Value:
        return self._place("argmin", a, axis)

    def _place(self, name: str, a: Value, axis: Value) -> Data:
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
        found: Expr = Apply("equal", (x.expr, Load(over, x.dtype)), _BOOL)
        if x.dtype.kind == "f":
            found = Apply("logical_or", (found, Apply("isnan", (x.expr,), _BOOL)), _BOOL)
        at: Expr = Iota(axes[0], _I8)
        for k in axes[1:]:
            row = Apply("multiply", (at, Size(x.shape[k], _I8)), _I8)
            at = Apply("add", (row, Iota(k, _I8)), _I8)
        last = extreme("minimum", _I8)
        body = Apply("where", (found, at, const(last, _I8)), _I8)
        made = self.reductions.fold("minimum", x.shape, axes, body, last)
        return self.memory.note_order(made, x) if made.shape else made

    def _sequence(self, a: Value) -> Data:
        """Return an array as it is, and a sequence as an array."""
        if isinstance(a, NumberList | tuple | list):
            a = self._np_array(a)
        if not is_array(a):
            raise self.scope.fail("a value that is neither an array nor a sequence")
        return a  # type: ignore[no-any-return]

    # ---- scans --------------------------------------------------------------------------------------
    def _np_cumsum(self, a: Value, axis: Value = None, dtype: Value = None) -> Value:
        return self._scan("add", a, axis, dtype)

    def _np_cumprod(self, a: Value, axis: Value = None, dtype: Value = None) -> Value:
        return self._scan("multiply", a, axis, dtype)

    def _accumulate(self, ufunc: str, array: Value, axis: Value = 0, dtype: Value = None) -> Value:
        """Trace ``ufunc.accumulate``."""
        if ufunc not in ("add", "multiply", "maximum", "minimum"):
            raise self.scope.fail(f"a scan by {ufunc} does not compile")
        return self._scan(ufunc, array, axis, dtype)

    def _scan(self, name: str, a: Value, axis: Value, dtype: Value) -> Data:
        x = self._sequence(a)
        if axis is None and len(x.shape) == 1:
            axis = 0
        if type(axis) is not int or not x.shape:
            raise self.scope.fail("a scan along no axis")
        (place,) = self.arrays.axes(axis, len(x.shape))
        loop = resolve_fold(name, x.dtype.char, self._dtype(dtype))
        if loop is None or loop[-1] not in "bhilqBHILQfd":
            raise self.scope.fail(f"a scan of {x.dtype} does not compile")
        kind = np.dtype(loop[-1])
        start = OPS[name].identity
        if name == "add" and kind.kind == "f":
            start = -0.0  # 0.0 would change -0.0
        start = extreme(name, kind) if start is None else start
        window = self.memory.new(x.shape, kind)
        self.memory.emit(
            Compute(window, cast(x.expr, kind), name, const(start, kind), loc=self.memory.loc, scan=place)
        )
        return self.memory.note_order(self.memory.view(window, kind), x)

    def _np_diff(self, a: Value, n: Value = 1, axis: Value = -1) -> Value:
        x = self._sequence(a)
        if n != 1 or type(n) is not int or x.dtype.kind == "b" or not x.shape or type(axis) is not int:
            raise self.scope.fail("differences that are not understood")
        (place,) = self.arrays.axes(axis, len(x.shape))
        later, earlier = (
            self.arrays.element(x, (*(slice(None),) * place, part, Ellipsis))
            for part in (slice(1, None), slice(None, -1))
        )
        return self.math.elementwise("subtract", (later, earlier))

    # ---- norms and averages -------------------------------------------------------------------------
    def _np_linalg_norm(
        self, x: Value, ord: Value = None, axis: Value = None, keepdims: Value = False
    ) -> Value:
        x, keep = self._sequence(x), self._flag(keepdims)
        if x.dtype.kind in "iub":
            x = self.arrays.astype(x, np.dtype(float))
        if x.dtype.char not in "fd" or not x.shape or not (axis is None or type(axis) is int):
            raise self.scope.fail("a norm that is not understood")
        vector = len(x.shape) == 1 or axis is not None
        if not (ord is None or (vector and type(ord) is int and ord == 2)):
            raise self.scope.fail("a norm that is not understood")
        squares = self.math.elementwise("multiply", (x, x))
        total = self.reductions.reduce("add", squares, axis, None, keep)
        return self.math.elementwise("sqrt", (total,))

    def _np_average(self, a: Value, axis: Value = None, weights: Value = None) -> Value:
        x = self._sequence(a)
        if weights is None:
            return self.reductions.mean(x, axis, None)
        w = self._sequence(weights)
        if len(x.shape) != 1 or len(w.shape) != 1 or not {x.dtype.char, w.dtype.char} <= set("d"):
            raise self.scope.fail("an average that is not understood")
        if axis not in (None, 0) or not self.scope.need_eq(x.shape[0], w.shape[0]):
            raise self.scope.fail("an average that is not understood")
        total = self.reductions.reduce("add", w)
        nonzero = Apply("not_equal", (total.expr, const(0.0, total.dtype)), _BOOL)
        self.memory.may_raise = True  # NumPy raises ZeroDivisionError
        checked = self.memory.value(Apply("checked", (nonzero, total.expr), total.dtype), scalar=True)
        product = self.reductions.reduce("add", self.math.elementwise("multiply", (x, w)))
        return self.math.elementwise("divide", (product, checked))

    def _np_trapezoid(self, y: Value, x: Value = None, dx: Value = 1.0, axis: Value = -1) -> Value:
        y = self._sequence(y)
        if len(y.shape) != 1 or y.dtype.char not in "fd" or axis not in (0, -1):
            raise self.scope.fail("an integral that is not understood")
        step = dx
        if x is not None:
            x = self._sequence(x)
            if len(x.shape) != 1:
                raise self.scope.fail("an integral that is not understood")
            step = self._np_diff(x)
        elif not is_number(dx) or is_array(dx):
            raise self.scope.fail("an integral that is not understood")
        later, earlier = self.arrays.element(y, (slice(1, None),)), self.arrays.element(y, (slice(None, -1),))
        both = self.math.elementwise("add", (later, earlier))
        halves = self.math.elementwise("divide", (self.math.elementwise("multiply", (step, both)), 2.0))
        return self.reductions.reduce("add", halves, -1)

    def _np_cross(self, a: Value, b: Value) -> Value:
        x, y = self._sequence(a), self._sequence(b)
        if x.shape != (3,) or y.shape != (3,) or not {x.dtype.char, y.dtype.char} <= set("fd"):
            raise self.scope.fail("a product of other things than vectors with three elements")
        made = self.arrays.empty((3,), np.promote_types(x.dtype, y.dtype))
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            first, second = (
                self.math.elementwise("multiply", (self.arrays.getitem(x, m), self.arrays.getitem(y, n)))
                for m, n in ((i, j), (j, i))
            )
            self.arrays.assign(self.arrays.element(made, (k, Ellipsis)),
                               self.math.elementwise("subtract", (first, second)), spent=True)  # fmt: skip
        return made

    # ---- at places ----------------------------------------------------------------------------------
    def _at(self, ufunc: str, a: Value, indices: Value, b: Value) -> None:
        """Trace ``ufunc.at``: one element after the other, so that an index that occurs twice has effect
        twice."""
        if ufunc not in ("add", "subtract", "multiply", "maximum", "minimum") or not is_array(a):
            raise self.scope.fail("values that are combined at indices are not understood")
        key = indices if isinstance(indices, tuple) else (indices,)
        if not self.arrays.gathers.is_data_dependent(key) or not self.arrays.scatters.is_scatter(key):
            raise self.scope.fail("indices that are not arrays of integers")

        def combined(old: Value, value: Value) -> Value:
            made = self.math.elementwise(ufunc, (old, value))
            if made.dtype != a.dtype:
                raise self.scope.fail("values that are combined at indices have another dtype")
            return made

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
        if weights is None:
            made = self.arrays.filled(self.arrays.empty((minlength,), _I8), 0)
            self._at("add", made, places, 1)
            return made
        w = self._sequence(weights)
        if w.dtype.kind not in "fiub" or w.shape != x.shape:
            raise self.scope.fail("weights of counts that are not understood")
        made = self.arrays.filled(self.arrays.empty((minlength,), np.dtype(float)), 0)
        self._at("add", made, places, self.arrays.astype(w, np.dtype(float)))
        return made

    # ---- element by element -------------------------------------------------------------------------
    def _np_round(self, a: Value, decimals: Value = 0) -> Value:
        x = (
            a
            if is_array(a)
            else self.math.as_numpy(a)
            if is_number(a) and not isinstance(a, Masked)
            else None
        )
        if x is None or x.dtype.char not in "fd" or type(decimals) is not int or not 0 <= decimals <= 15:
            raise self.scope.fail("a rounding that is not understood")
        if not decimals:
            return self.math.elementwise("rint", (x,))
        ten = float(10**decimals)
        scaled = self.math.elementwise("rint", (self.math.elementwise("multiply", (x, ten)),))
        return self.math.elementwise("divide", (scaled, ten))

    _np_around = _np_round

    def _py_round(self, number: Value, ndigits: Value = None) -> Value:
        """Trace ``round``; with ``ndigits`` only of NumPy's floats, since Python's decimal rounding is
        exact."""
        if isinstance(number, PythonOrNumpy) or is_array(number):
            raise self.scope.fail("a rounding that is not understood")
        if ndigits is None:
            return self._rounded("rint", number)
        if not isinstance(number, Data) or number.weak or number.dtype.kind != "f":
            raise self.scope.fail("a rounding that is not understood")
        return self._np_round(number, ndigits)

    def _np_angle(self, z: Value, deg: Value = False) -> Value:
        if not isinstance(z, Data) or z.dtype.kind != "c" or z.weak or deg is not False:
            raise self.scope.fail("an angle that is not understood")
        kind = np.empty(0, z.dtype).real.dtype
        parts = [
            self.memory.value(Apply(name, (z.expr,), kind), z.shape, scalar=z.scalar)
            for name in ("imag", "real")
        ]
        return self.math.elementwise("arctan2", parts)

    # ---- one axis -----------------------------------------------------------------------------------
    def _np_ravel(self, a: Value) -> Value:
        if not is_array(a) or len(a.shape) != 1:
            raise self.scope.fail("axes are joined")
        whole = self.arrays.getitem(a, slice(None))
        if a.window is None:
            return whole if a.part_of is None else self.memory.value(a.expr, a.shape)
        contiguous = self.memory.contiguous(a)
        if contiguous is None:
            raise self.scope.fail("whether a vector is contiguous is not known")
        return whole if contiguous else self.memory.copy(a)

    def _method_flatten(self, x: Value) -> Value:
        if not is_array(x):
            raise self.scope.fail("axes are joined")
        if len(x.shape) == 1:
            return self.memory.copy(x)
        return self.memory.reshaped(x, (size_of(x.shape),))

    def _method_item(self, x: Value) -> Value:
        if not isinstance(x, Data) or x.shape or x.weak or x.dtype.kind not in "fi":
            raise self.scope.fail("an item that is not understood")
        return self.arrays.python(
            float if x.dtype.kind == "f" else int, self.memory.value(x.expr, scalar=True)
        )
