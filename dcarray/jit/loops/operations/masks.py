"""Boolean selections, ``x[mask]``, whose length is known at run time only.

As long as its length is not used, a selection is an array of the shape of ``x`` with a mask.  Computations
use 1 in place of unselected elements, so that these raise no floating-point flags.
"""

from __future__ import annotations

import numpy as np

from dcarray.ir.nodes import Apply, Expr

from .arithmetic import Operations
from .values import Data, Masked, Shape, Value, cast, is_array, is_number, kind_of

_BOOL = np.dtype(np.bool_)


class Masks(Operations):
    """Reads and writes through masks."""

    def is_mask(self, x: Data, key: Value) -> bool:
        """Whether the key is a mask of the first axes of ``x``."""
        if not is_array(key) or key.dtype != _BOOL or not 0 < len(key.shape) <= len(x.shape):
            return False
        return all(self.scope.eq(n, m) is True for n, m in zip(key.shape, x.shape, strict=False))

    def select(self, x: Data, key: Data) -> Masked:
        """Trace ``x[key]``."""
        mask = self._mask(key, x.shape)
        full, chosen = (self.memory.value(expr, x.shape) for expr in (x.expr, mask))
        return Masked(full, chosen, len(key.shape))

    def _mask(self, key: Data, shape: Shape) -> Expr:
        full_rank = (*key.shape, *(1,) * (len(shape) - len(key.shape)))
        return self.math.expand(self.math.append_axes(key.expr, key.shape, full_rank), full_rank, shape)

    def assign(self, x: Data, key: Data, value: Value) -> None:
        """Trace ``x[key] = value``."""
        mask = self._mask(key, x.shape)
        target = x.window
        if target is None or not is_number(value) or is_array(value):
            raise self.scope.fail("the value assigned through a mask is not understood")
        if np.dtype(kind_of(value)).kind == "c" != x.dtype.kind:
            raise self.scope.fail("the imaginary part is dropped")
        spent = [key]
        if isinstance(value, Masked):
            identical = value.mask.expr is mask and value.along == len(key.shape)
            if not identical or not self.scope.same_shape(value.full.shape, x.shape):
                raise self.scope.fail("the value assigned through a mask was selected by another mask")
            expr = cast(value.full.expr, x.dtype)
            spent += [value.full, value.mask]
            if not np.can_cast(value.dtype, x.dtype, "safe"):
                expr = cast(self.math.ones_if_unselected(value), x.dtype)
        else:
            if kind_of(value) is float and x.dtype.kind in "iu":
                raise self.scope.fail("a float is assigned to integers through a mask")
            one = cast(value.expr, x.dtype) if isinstance(value, Data) and value.weak is not int else None
            one = self.math.expr(value, x.dtype) if one is None else one
            expr = self.math.expand(one, (), x.shape)
        self.memory.write(target, Apply("where", (mask, expr, x.expr), x.dtype), *spent)
