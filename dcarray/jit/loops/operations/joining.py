"""NumPy's functions that join, roll and reshape arrays, of triangles and diagonals, and statistics."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from dcarray.ir import dims
from dcarray.ir.nodes import Apply, Dim, Expr, Index, Iota
from dcarray.ir.ops import const

from ..entry.entry_values import DType
from .numpy_calls import NumpyCalls
from .values import Data, Masked, Shape, Value, cast, is_array, is_int, kind_of

_I8, _F8, _BOOL = np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.bool_)


class Joining(NumpyCalls):
    """Tracing of NumPy's functions, continued: ``_np_hstack`` traces ``numpy.hstack``."""

    # ---- joining ------------------------------------------------------------------------------------
    def _np_concatenate(self, arrays: Value, axis: Value = 0) -> Value:
        return self._join(self._array_list(arrays), axis)

    def _np_hstack(self, tup: Value) -> Value:
        parts = self._array_list(tup)
        return self._join(parts, 0 if len(parts[0].shape) == 1 else 1)

    def _np_vstack(self, tup: Value) -> Value:
        parts = self._array_list(tup)
        rows = [x if len(x.shape) > 1 else self.arrays.element(x, (None, Ellipsis)) for x in parts]
        return self._join(rows, 0)

    def _np_stack(self, arrays: Value, axis: Value = 0) -> Value:
        parts = self._array_list(arrays)
        (place,) = self.arrays.axes(axis, len(parts[0].shape) + 1)
        key = (slice(None),) * place + (None,)
        return self._join([self.arrays.element(x, (*key, Ellipsis)) for x in parts], place)

    def _np_column_stack(self, tup: Value) -> Value:
        parts = self._array_list(tup)
        columns = [x if len(x.shape) > 1 else self.arrays.element(x, (Ellipsis, None)) for x in parts]
        return self._join(columns, 1)

    def _array_list(self, given: Value) -> list[Data]:
        if not isinstance(given, tuple | list) or not given or not all(map(is_array, given)):
            raise self.scope.fail("the joined value is not a sequence of arrays")
        if any(not x.shape for x in given):
            raise self.scope.fail("arrays without axes are joined")
        return list(given)

    def _join(self, parts: Sequence[Data], axis: Value) -> Data:
        ndim = len(parts[0].shape)
        if any(len(x.shape) != ndim for x in parts):
            raise self.scope.fail("arrays of different numbers of axes are joined")
        (place,) = self.arrays.axes(axis, ndim)
        for x in parts[1:]:
            pairs = zip(x.shape, parts[0].shape, strict=True)
            if any(k != place and not self.scope.need_eq(n, m) for k, (n, m) in enumerate(pairs)):
                raise self.scope.fail("arrays that are joined are not known to fit")
        total: Dim = dims.simplify(sum(x.shape[place] for x in parts))
        shape = (*parts[0].shape[:place], total, *parts[0].shape[place + 1 :])
        made = self.arrays.empty(shape, np.result_type(*(x.dtype for x in parts)))
        start: Dim = 0
        for x in parts:
            stop = dims.simplify(start + x.shape[place])
            key = (slice(None),) * place + (slice(start, stop), Ellipsis)
            self.arrays.assign(self.arrays.element(made, key), x, spent=True)
            start = stop
        return self.memory.note_order(made, *parts)

    def _np_roll(self, a: Value, shift: Value, axis: Value = None) -> Value:
        if not is_array(a) or (axis is None and len(a.shape) != 1):
            raise self.scope.fail("the rolled value is not an array, or is rolled without an axis")
        axes = (0,) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
        if len(shifts) == len(axes) == 1 and isinstance(shifts[0], Data) and not shifts[0].shape:
            return self._rolled(a, shifts[0], self.arrays.axes(axes[0], len(a.shape))[0])
        if len(shifts) != len(axes) or not all(type(n) is int for n in (*shifts, *a.shape)):
            raise self.scope.fail("how far an array is rolled is not known")
        moved = [0] * len(a.shape)
        for k, by in zip(axes, shifts, strict=True):
            (place,) = self.arrays.axes(k, len(a.shape))
            moved[place] += by
        made = self.arrays.empty(a.shape, a.dtype)
        halves = [[(0, 0, n)] if not n or not s % n else [(0, s % n, n - s % n), (n - s % n, 0, s % n)]
                  for n, s in zip(a.shape, moved, strict=True)]  # fmt: skip
        for part in product(*halves):
            into = tuple(slice(to, to + n) for _, to, n in part)
            out = tuple(slice(at, at + n) for at, _, n in part)
            self.arrays.assign(self.arrays.element(made, into), self.arrays.element(a, out), spent=True)
        return self.memory.note_order(made, a)

    def _rolled(self, a: Data, shift: Data, axis: int) -> Data:
        """Return an array rolled by a number of places that is known at run time only."""
        size = a.shape[axis]
        if shift.dtype.kind not in "iu" or shift.dtype == np.uint64 or type(size) is not int or not size:
            raise self.scope.fail("how far an array is rolled is not known")
        stored = self.memory.array(a)
        count = const(size, _I8)
        by = self.memory.value(Apply("remainder", (cast(shift.expr, _I8), count), _I8), scalar=True)
        self.memory.store(by)
        index: list[Expr] = [Iota(k, _I8) for k in range(len(a.shape))]
        moved = Apply("subtract", (index[axis], self.math.expand(by.expr, (), a.shape)), _I8)
        index[axis] = Apply("remainder", (moved, count), _I8)
        made = self.memory.value(self.arrays.gathers.at(stored, index, a.shape), a.shape)
        return self.memory.note_order(self.memory.copy(made), a)

    # ---- coordinates --------------------------------------------------------------------------------
    def _np_triu(self, m: Value, k: Value = 0) -> Value:
        return self._triangle(m, k, "less_equal")

    def _np_tril(self, m: Value, k: Value = 0) -> Value:
        return self._triangle(m, k, "greater_equal")

    def _triangle(self, m: Value, k: Value, op: str) -> Data:
        if not is_array(m) or len(m.shape) < 2 or not is_int(k):
            raise self.scope.fail("a triangle of something that is not a matrix")
        rank = len(m.shape)
        row, column = Iota(rank - 2, _I8), Iota(rank - 1, _I8)
        edge = Apply("add", (row, self.math.expr(k, _I8)), _I8)
        inside = Apply(op, (edge, column), _BOOL)
        expr = Apply("where", (inside, m.expr, const(0, m.dtype)), m.dtype)
        return self.memory.value(expr, m.shape)

    def _np_eye(self, N: Value, M: Value = None, k: Value = 0, dtype: Value = _F8) -> Value:
        if not all(map(is_int, (N, k))) or not (M is None or is_int(M)):
            raise self.scope.fail("the size of a matrix is not known")
        kind = self.arrays.dtype(dtype)
        edge = Apply("add", (Iota(0, _I8), self.math.expr(k, _I8)), _I8)
        inside = Apply("equal", (edge, Iota(1, _I8)), _BOOL)
        expr = Apply("where", (inside, const(1, kind), const(0, kind)), kind)
        return self.memory.value(expr, self.arrays.shape((N, N if M is None else M)))

    def _np_diagonal(self, a: Value) -> Value:
        return self._diagonal(a)

    def _np_diag(self, v: Value) -> Value:
        return self._diagonal(v)

    def _np_trace(self, a: Value) -> Value:
        return self.reductions.reduce("add", self._diagonal(a))

    def _diagonal(self, a: Value) -> Data:
        if not is_array(a) or len(a.shape) != 2 or not self.scope.need_eq(*a.shape):
            raise self.scope.fail("a diagonal of something that is not a square matrix")
        view = self.arrays.view_or_value(a, ((Index(0, 1, 0), Index(0, 1, 0)), a.shape[:1]))
        view.readonly = True
        return view

    # ---- axes ---------------------------------------------------------------------------------------
    def _np_expand_dims(self, a: Value, axis: Value) -> Value:
        (place,) = self.arrays.axes(axis, len(a.shape) + 1)
        return self.arrays.element(a, ((slice(None),) * place) + (None, Ellipsis))

    def _np_squeeze(self, a: Value, axis: Value = None) -> Value:
        ndim = len(a.shape)
        gone = [k for k in range(ndim) if a.shape[k] == 1] if axis is None else self.arrays.axes(axis, ndim)
        if any(a.shape[k] != 1 for k in gone):
            raise self.scope.fail("an axis that is not of length 1 is dropped")
        return self.arrays.element(a, (*[0 if k in gone else slice(None) for k in range(ndim)], Ellipsis))

    def _np_swapaxes(self, a: Value, axis1: Value, axis2: Value) -> Value:
        order = list(range(len(a.shape)))
        (i,), (j,) = (self.arrays.axes(k, len(order)) for k in (axis1, axis2))
        order[i], order[j] = j, i
        return self.arrays.transpose(a, tuple(order))

    # ---- statistics ---------------------------------------------------------------------------------
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
