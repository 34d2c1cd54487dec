"""NumPy's products and norms, on traced values."""

from __future__ import annotations

import numpy as np

from .tools import Tools
from .values import Value, shape_of


class LinearAlgebra(Tools):
    """``_np_cross`` traces ``numpy.cross``, and so on."""

    def _np_outer(self, a: Value, b: Value) -> Value:
        if len(shape_of(a)) != 1 or len(shape_of(b)) != 1:
            raise self.scope.fail("an outer product of other things than vectors")
        return self.reductions.outer("multiply", a, b)

    def _np_linalg_norm(
        self, x: Value, ord: Value = None, axis: Value = None, keepdims: Value = False
    ) -> Value:
        x, keep = self._sequence(x), self._flag(keepdims)
        if x.dtype.kind in "iub":
            x = self.arrays.astype(x, np.dtype(float))
        fits = x.dtype.char in "fd" and x.shape and (axis is None or type(axis) is int)
        vector = len(x.shape) == 1 or axis is not None
        if not fits or not (ord is None or (vector and type(ord) is int and ord == 2)):
            raise self.scope.fail("a norm that is not understood")
        squares = self.math.elementwise("multiply", (x, x))
        return self.math.elementwise("sqrt", (self.reductions.reduce("add", squares, axis, None, keep),))

    def _np_cross(self, a: Value, b: Value) -> Value:
        x, y = self._sequence(a), self._sequence(b)
        if x.shape != (3,) or y.shape != (3,) or not {x.dtype.char, y.dtype.char} <= set("fd"):
            raise self.scope.fail("a product of other things than vectors with three elements")
        product = self.arrays.empty((3,), np.promote_types(x.dtype, y.dtype))
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            first, second = (
                self.math.elementwise("multiply", (self.arrays.getitem(x, m), self.arrays.getitem(y, n)))
                for m, n in ((i, j), (j, i))
            )
            self.arrays.assign(self.arrays.element(product, (k, Ellipsis)),
                               self.math.elementwise("subtract", (first, second)), spent=True)  # fmt: skip
        return product
