"""NumPy's functions of reductions, products, creation and reshaping."""

from __future__ import annotations

import numpy as np

from .python_calls import Args, Named, PythonCalls
from .values import Value, is_array, kind_of, shape_of

REDUCTIONS = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum", "amax": "maximum",
         "amin": "minimum", "any": "logical_or", "all": "logical_and"}  # fmt: skip


_COUNTS = isinstance(
    np.count_nonzero(np.ones(1, bool)), int
)  # whether `numpy.count_nonzero` returns a Python int


class NumpyCalls(PythonCalls):
    """``_np_zeros`` traces ``numpy.zeros``."""

    # ---- reductions ---------------------------------------------------------------------------------
    def _reduced(self, name: str, args: Args, named: Named) -> Value:
        typed = ["dtype"] if name in ("add", "multiply") else []
        a, axis, *dtype, out, keepdims = self._bind(
            ["a", "axis", *typed, "out", "keepdims"], args, named, axis=None, out=None, keepdims=False,
            **dict.fromkeys(typed),
        )  # fmt: skip
        self._none(out)
        found = self._dtype(dtype[0]) if dtype else None
        return self.reductions.reduce(name, a, axis, found, self._flag(keepdims))

    def _np_count_nonzero(self, args: Args, named: Named) -> Value:
        (a,) = self._bind(["a"], args, named)
        return self.reductions.number(a, _COUNTS)

    def _np_mean(self, args: Args, named: Named) -> Value:
        a, axis, dtype, out, keepdims = self._bind(
            ["a", "axis", "dtype", "out", "keepdims"],
            args,
            named,
            axis=None,
            dtype=None,
            out=None,
            keepdims=False,
        )
        self._none(out)
        return self.reductions.mean(a, axis, self._dtype(dtype), self._flag(keepdims))

    def _np_dot(self, args: Args, named: Named) -> Value:
        return self.reductions.dot(*self._bind(["a", "b"], args, named))

    def _np_inner(self, args: Args, named: Named) -> Value:
        return self.reductions.inner(*self._bind(["a", "b"], args, named))

    def _np_outer(self, args: Args, named: Named) -> Value:
        a, b = self._bind(["a", "b"], args, named)
        if len(shape_of(a)) != 1 or len(shape_of(b)) != 1:
            raise self.scope.fail("an outer product of what are no vectors")
        return self.reductions.outer("multiply", a, b)

    # ---- arrays -------------------------------------------------------------------------------------
    def _created(self, args: Args, named: Named, value: Value) -> Value:
        shape, dtype, order = self._bind(
            ["shape", "dtype", "order"], args, named, dtype=np.dtype("f8"), order="C"
        )
        if order != "C":
            raise self.scope.fail("an order that is not understood")
        shape = self.arrays.shape(shape)
        dtype = self.arrays.dtype(dtype) if dtype is not None else np.dtype("f8")
        return self.arrays.empty(shape, dtype) if value is None else self.arrays.full(shape, dtype, value)

    def _np_zeros(self, args: Args, named: Named) -> Value:
        return self._created(args, named, 0)

    def _np_ones(self, args: Args, named: Named) -> Value:
        return self._created(args, named, 1)

    def _np_empty(self, args: Args, named: Named) -> Value:
        return self._created(args, named, None)

    def _np_ndarray(self, args: Args, named: Named) -> Value:
        return self._created(args, named, None)

    def _np_full(self, args: Args, named: Named) -> Value:
        shape, value, dtype = self._bind(["shape", "fill_value", "dtype"], args, named, dtype=None)
        found = self.math.as_numpy(value).dtype if dtype is None else self.arrays.dtype(dtype)
        return self.arrays.full(self.arrays.shape(shape), found, value)

    def _like(self, args: Args, named: Named, value: Value) -> Value:
        a, dtype = self._bind(["a", "dtype"], args, named, dtype=None)
        if not is_array(a):
            raise self.scope.fail("an array like a scalar")
        found = a.dtype if dtype is None else self.arrays.dtype(dtype)
        made = self.arrays.empty(a.shape, found)
        if value is not None:
            self.arrays.assign(made, value)
        return self.memory.laid_out(made, a)

    def _np_zeros_like(self, args: Args, named: Named) -> Value:
        return self._like(args, named, 0)

    def _np_ones_like(self, args: Args, named: Named) -> Value:
        return self._like(args, named, 1)

    def _np_empty_like(self, args: Args, named: Named) -> Value:
        return self._like(args, named, None)

    def _np_full_like(self, args: Args, named: Named) -> Value:
        a, value, dtype = self._bind(["a", "fill_value", "dtype"], args, named, dtype=None)
        return self._like((a,), {"dtype": dtype}, value)

    def _np_copy(self, args: Args, named: Named) -> Value:
        (a,) = self._bind(["a"], args, named)
        x = self.arrays.asarray(a)
        return self.memory.laid_out(self.memory.copy(x), x) if is_array(a) else x

    def _np_asarray(self, args: Args, named: Named) -> Value:
        a, dtype = self._bind(["a", "dtype"], args, named, dtype=None)
        x = self.arrays.asarray(a)
        found = self._dtype(dtype)
        return x if found is None or found == x.dtype else self.arrays.astype(x, found)

    def _np_ascontiguousarray(self, args: Args, named: Named) -> Value:
        a, dtype = self._bind(["a", "dtype"], args, named, dtype=None)
        if not is_array(a) or not a.shape:
            raise self.scope.fail("what is to be contiguous is no array with axes")
        found = self._dtype(dtype) or a.dtype
        if found == a.dtype:
            self.memory.pin_sources(a)
        if a.window is None or found != a.dtype:
            return self.memory.copy(a, dtype=found)
        contiguous = self.memory.contiguous(a)
        if contiguous is None:
            raise self.scope.fail("it is not known whether an array is contiguous")
        return a if contiguous else self.memory.copy(a)

    def _np_reshape(self, args: Args, named: Named) -> Value:
        return self.arrays.reshape(*self._bind(["a", "shape"], args, named))

    def _np_transpose(self, args: Args, named: Named) -> Value:
        a, axes = self._bind(["a", "axes"], args, named, axes=None)
        return self.arrays.transpose(a, axes)

    def _np_flip(self, args: Args, named: Named) -> Value:
        a, axis = self._bind(["m", "axis"], args, named, axis=None)
        return self.arrays.flip(a, axis)

    def _np_where(self, args: Args, named: Named) -> Value:
        cond, x, y = self._bind(["condition", "x", "y"], args, named)
        if not any(map(is_array, (cond, x, y))):
            raise self.scope.fail("where of scalars")
        if kind_of(cond) not in (bool, "?"):
            cond = self.math.elementwise("not_equal", (cond, 0))
        return self.math.elementwise("where", (cond, x, y))
