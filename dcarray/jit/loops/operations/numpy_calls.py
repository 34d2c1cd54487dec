"""NumPy's functions of reductions, products, creation and reshaping, on traced values."""

from __future__ import annotations

import numpy as np

from .python_calls import PythonCalls
from .reductions import Reductions
from .values import Data, NumberList, Value, is_array, kind_of, shape_of

REDUCTIONS = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum", "amax": "maximum",
         "amin": "minimum", "any": "logical_or", "all": "logical_and"}  # fmt: skip
_F8 = np.dtype("f8")
_COUNTS_ARE_INTS = isinstance(np.count_nonzero(np.ones(1, bool)), int)  # else NumPy's integers


class NumpyCalls(PythonCalls):
    """Tracing of NumPy's functions: ``_np_zeros`` traces ``numpy.zeros``, whose parameters it has."""

    def __init__(self, reductions: Reductions) -> None:
        super().__init__(reductions)
        self._np_dot, self._np_inner = reductions.dot, reductions.inner
        self._np_reshape, self._np_transpose = self.arrays.reshape, self.arrays.transpose
        self._np_flip = self.arrays.flip

    def _np_array(self, object: Value, dtype: Value = None, copy: Value = True) -> Value:
        raise NotImplementedError  # `creation` has it

    def _array_of(self, a: Value) -> Value:
        """Return the array of a sequence; any other value as it is."""
        return self._np_array(a) if isinstance(a, NumberList | tuple | list) else a

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

    def _np_count_nonzero(self, a: Value) -> Value:
        return self.reductions.count_true(a, _COUNTS_ARE_INTS)

    def _np_mean(
        self, a: Value, axis: Value = None, dtype: Value = None, out: Value = None, keepdims: Value = False
    ) -> Value:
        self._none(out)
        a = self._array_of(a)
        return self.reductions.mean(a, axis, self._dtype(dtype), self._flag(keepdims))

    def _np_outer(self, a: Value, b: Value) -> Value:
        if len(shape_of(a)) != 1 or len(shape_of(b)) != 1:
            raise self.scope.fail("an outer product of other things than vectors")
        return self.reductions.outer("multiply", a, b)

    # ---- arrays -------------------------------------------------------------------------------------
    def _np_empty(self, shape: Value, dtype: Value = _F8, order: Value = "C") -> Value:
        if order != "C":
            raise self.scope.fail("an order that is not understood")
        return self.arrays.empty(self.arrays.shape(shape), self._dtype(dtype) or _F8)

    _np_ndarray = _np_empty

    def _np_zeros(self, shape: Value, dtype: Value = _F8, order: Value = "C") -> Value:
        return self.arrays.filled(self._np_empty(shape, dtype, order), 0)

    def _np_ones(self, shape: Value, dtype: Value = _F8, order: Value = "C") -> Value:
        return self.arrays.filled(self._np_empty(shape, dtype, order), 1)

    def _np_full(self, shape: Value, fill_value: Value, dtype: Value = None) -> Value:
        kind = self.math.as_numpy(fill_value).dtype if dtype is None else self.arrays.dtype(dtype)
        return self.arrays.filled(self.arrays.empty(self.arrays.shape(shape), kind), fill_value)

    def _np_empty_like(self, a: Value, dtype: Value = None) -> Value:
        if not is_array(a):
            raise self.scope.fail("an array like a scalar")
        return self.memory.note_order(self.arrays.empty(a.shape, self._dtype(dtype) or a.dtype), a)

    def _np_zeros_like(self, a: Value, dtype: Value = None) -> Value:
        return self.arrays.filled(self._np_empty_like(a, dtype), 0)

    def _np_ones_like(self, a: Value, dtype: Value = None) -> Value:
        return self.arrays.filled(self._np_empty_like(a, dtype), 1)

    def _np_full_like(self, a: Value, fill_value: Value, dtype: Value = None) -> Value:
        return self.arrays.filled(self._np_empty_like(a, dtype), fill_value)

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

    def _np_where(self, condition: Value, x: Value, y: Value) -> Value:
        if not any(map(is_array, (condition, x, y))):
            raise self.scope.fail("where of scalars")
        if kind_of(condition) not in (bool, "?"):
            condition = self.math.elementwise("not_equal", (condition, 0))
        return self.math.elementwise("where", (condition, x, y))
