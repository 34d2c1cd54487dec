"""NumPy's functions along an axis, each element with those before it, on traced values."""

from __future__ import annotations

from functools import partialmethod

import numpy as np

from dcarray.core.ufunc_loops import resolve_fold
from dcarray.ir.build import extreme
from dcarray.ir.nodes import Compute
from dcarray.ir.ops import OPS, const

from .tools import Tools
from .values import Data, Value, cast, is_array, is_number


class Scans(Tools):
    """``_np_cumsum`` traces ``numpy.cumsum``, and so on."""

    def _ufunc_accumulate(self, ufunc: str, array: Value, axis: Value = 0, dtype: Value = None) -> Value:
        """Trace ``ufunc.accumulate``."""
        if ufunc not in ("add", "multiply", "maximum", "minimum"):
            raise self.scope.fail(f"a scan by {ufunc} does not compile")
        return self._scan(ufunc, array, axis, dtype)

    def _scan(self, name: str, a: Value, axis: Value = None, dtype: Value = None) -> Data:
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

    _np_cumsum, _np_cumprod = partialmethod(_scan, "add"), partialmethod(_scan, "multiply")

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

    def _np_trapezoid(self, y: Value, x: Value = None, dx: Value = 1.0, axis: Value = -1) -> Value:
        y, step = self._sequence(y), dx if x is None else self._sequence(x)
        fits = is_number(dx) and not is_array(dx) if x is None else len(step.shape) == 1
        if not fits or len(y.shape) != 1 or y.dtype.char not in "fd" or axis not in (0, -1):
            raise self.scope.fail("an integral that is not understood")
        if x is not None:
            step = self._np_diff(step)
        later, earlier = self.arrays.element(y, (slice(1, None),)), self.arrays.element(y, (slice(None, -1),))
        both = self.math.elementwise("add", (later, earlier))
        halves = self.math.elementwise("divide", (self.math.elementwise("multiply", (step, both)), 2.0))
        return self.reductions.reduce("add", halves, -1)
