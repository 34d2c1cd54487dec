"""Reductions, and inner, outer and matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.core.ufunc_loops import resolve_fold
from dcarray.ir.build import extreme
from dcarray.ir.nodes import Apply, Dim, Expr, Index, Window
from dcarray.ir.ops import OPS, const
from dcarray.ir.windows import remap

from ..entry.entry_values import DType
from .arithmetic import Operations
from .arrays import Arrays
from .values import Data, Masked, Ragged, Shape, Value, cast, is_array, shape_of

_MOST_FOLDED_PRODUCTS = 1 << 15  # of larger matrix products BLAS is faster
_F8, _BOOL = np.dtype(np.float64), np.dtype(np.bool_)


class Reductions(Operations):
    """Reductions and products of traced values."""

    def __init__(self, arrays: Arrays) -> None:
        super().__init__(arrays.math)
        self.arrays = arrays

    # ---- reductions ---------------------------------------------------------------------------------
    def reduce(
        self, name: str, x: Value, axis: Value = None, dtype: DType | None = None, keepdims: bool = False
    ) -> Data:
        """Trace ``ufunc.reduce``."""
        if isinstance(x, Masked):
            return self._reduce_masked(name, x, axis, dtype, keepdims)
        x = self._array(x)
        try:
            loop = resolve_fold(name, x.dtype.char, dtype)
        except TypeError as error:
            raise self.scope.fail(f"{name} does not fold {x.dtype}") from error
        if loop is None or loop[-1] in "eF" or (loop[-1] == "D" and name != "add") or not OPS[name].combine:
            raise self.scope.fail(f"a fold by {name} of {x.dtype} does not compile")
        if isinstance(axis, list):
            raise self.scope.fail("a reduction along a list of axes")
        axes = self.arrays.axes(axis, len(x.shape))
        kinds, result = loop.split("->")
        start = OPS[name].identity
        if start is None:
            if not all(self.scope.need_nonneg(x.shape[k] - 1) for k in axes):
                raise self.scope.fail("an extremum of something that may be empty")
            start = extreme(name, np.dtype(result))
        folded = self.fold(name, x.shape, axes, cast(x.expr, np.dtype(kinds[0])), start, keepdims)
        return self.memory.note_order(folded, x)

    def fold(
        self, name: str, domain: Shape, axes: tuple[int, ...], body: Expr, start: Any, keepdims: bool = False
    ) -> Data:
        """Return ``body`` reduced over the axes ``axes`` of its domain, by the operation ``name``."""
        kept = tuple(1 if k in axes else n for k, n in enumerate(domain) if keepdims or k not in axes)
        window = self.memory.new(kept, body.dtype)
        index: list[Index] = []
        for k in range(len(domain)):
            if k not in axes:
                index.append(Index(0, 1, k))
            elif keepdims:
                index.append(Index(0))
        self.memory.fold(name, Window(window.array, domain, tuple(index)), body, start)
        if kept:
            return self.memory.view(window, body.dtype)
        self.memory.immutable.add(window.array)
        return self.memory.value(self.memory.view(window, body.dtype).expr, scalar=True)

    def mean(self, x: Value, axis: Value = None, dtype: DType | None = None, keepdims: bool = False) -> Data:
        """Trace ``numpy.mean``."""
        if isinstance(x, Masked):
            return self._masked_mean(x, axis, dtype, keepdims)
        x = self._array(x)
        count = self.arrays.count(x.shape, axis)
        if not self.scope.need_nonneg(count - 1) or x.dtype.char == "e" or x.dtype.kind == "c":
            raise self.scope.fail("a mean of nothing, or of a dtype that does not compile")
        if dtype is None and x.dtype.kind in "iub":
            dtype = np.dtype(np.float64)
        total = self.reduce("add", x, axis, dtype, keepdims)
        if total.dtype.kind != "f":
            raise self.scope.fail("a mean in integers")
        return self.quotient(total, count)

    def quotient(self, total: Data, count: Dim) -> Data:
        """Return a sum divided by the number of its elements, in the sum's dtype."""
        divisor = self.math.expand(self.math.expr(count, _F8), (), total.shape)
        return self._divided(total, divisor)

    def _divided(self, total: Data, count: Expr) -> Data:
        """Return a sum divided by a count: in doubles, as the sum's dtype may not have the count exactly."""
        expr = Apply("divide", (cast(total.expr, _F8), cast(count, _F8)), _F8)
        return self.memory.value(cast(expr, total.dtype), total.shape, scalar=total.scalar)

    def _reduce_masked(self, name: str, x: Masked, axis: Value, dtype: DType | None, keepdims: bool) -> Data:
        """Reduce a boolean selection: the full array with the operation's identity at unselected elements."""
        axes = self._masked_axes(x, axis, keepdims)
        loop = resolve_fold(name, x.dtype.char, dtype)
        empty = OPS[name].identity
        if loop is None or (empty is None and x.dtype.kind == "c"):  # no complex number is the least one
            raise self.scope.fail(f"a fold by {name} of {x.dtype} does not compile")
        kind = np.dtype(loop[0])
        identity = const(extreme(name, kind) if empty is None else empty, kind)
        if name == "add" and kind.kind in "fc":
            identity = const(-kind.type(0), kind)  # the identity of floating-point addition
        body = Apply("where", (x.mask.expr, cast(x.full.expr, kind), identity), kind)
        folded = self.reduce(name, self.memory.value(body, x.full.shape), axes, dtype)
        return folded if empty is not None else self._check_nonempty(folded, self._selected_count(x, axes))

    def _masked_axes(self, x: Masked, axis: Value, keepdims: bool) -> tuple[int, ...]:
        """Return the axes of the full array over which a selection is reduced."""
        rank = len(x.full.shape)
        if axis is None and not keepdims:
            return tuple(range(rank))
        if keepdims or (axis != 0 and (axis != -1 or x.along < rank)):
            raise self.scope.fail("a fold of what a mask chooses along an axis")
        return tuple(range(x.along))

    def _selected_count(self, x: Masked, axes: tuple[int, ...]) -> Data:
        """Return the number of selected elements."""
        return self.reduce("add", x.mask, axes, np.dtype(np.int64))

    def count_true(self, mask: Value, plain: bool = True) -> Data:
        """Return the number of True elements of an array, as a Python int if ``plain``."""
        mask = self._array(mask)
        size = self.arrays.count(mask.shape, None)
        if mask.dtype != _BOOL or type(size) is not int:
            raise self.scope.fail("a count of something that is not known to be a mask")
        count = self.reduce("add", mask, None, np.dtype(np.int64))
        return self.memory.value(count.expr, scalar=True, weak=int, limits=(0, size)) if plain else count

    def _check_nonempty(self, reduction: Data, count: Data) -> Data:
        """Return a reduction of ``count`` elements, with a run-time check that ``count`` is not 0."""
        less = self._minus(count, 1)
        self.memory.may_raise = True
        some = Apply("greater_equal", (less, const(0, count.dtype)), _BOOL)
        expr = Apply("checked", (some, reduction.expr), reduction.dtype)
        return self.memory.value(expr, reduction.shape, scalar=reduction.scalar)

    def _masked_mean(self, x: Masked, axis: Value, dtype: DType | None, keepdims: bool) -> Data:
        if x.dtype.char not in "fd" or dtype is not None:
            raise self.scope.fail(f"a mean of chosen {x.dtype}")
        total = self._reduce_masked("add", x, axis, dtype, keepdims)
        return self._divided(total, self._selected_count(x, self._masked_axes(x, axis, keepdims)).expr)

    def masked_variance(self, x: Masked, ddof: int) -> Data:
        """Return the variance of a boolean selection; too few elements give a division by zero, as in
        NumPy."""
        mean = self._masked_mean(x, None, None, False)
        deviations = self.math.ufunc("subtract", (x, mean))
        total = self.reduce("add", self.math.ufunc("multiply", (deviations, deviations)))
        return self._divided(
            total, self._minus(self._selected_count(x, tuple(range(len(x.full.shape)))), ddof)
        )

    def _minus(self, x: Data, by: int) -> Expr:
        return Apply("subtract", (x.expr, const(by, x.dtype)), x.dtype) if by else x.expr

    def _array(self, x: Value) -> Data:
        if not is_array(x):
            raise self.scope.fail("a fold of a scalar")
        return x  # type: ignore[no-any-return]

    # ---- products -----------------------------------------------------------------------------------
    def dot(self, a: Value, b: Value) -> Data:
        """Trace ``numpy.dot``."""
        if isinstance(a, Ragged) or isinstance(b, Ragged):
            return self.arrays.ragged.dot(a, b)
        if not shape_of(a) or not shape_of(b):
            return self.math.elementwise("multiply", (a, b))
        if len(shape_of(b)) > 2 or (len(shape_of(a)) > 2 and len(shape_of(b)) > 1):
            raise self.scope.fail("a dot product of many axes")
        return self.matmul(a, b)

    def inner(self, a: Value, b: Value) -> Data:
        """Trace ``numpy.inner``."""
        if not shape_of(a) or not shape_of(b):
            return self.math.elementwise("multiply", (a, b))
        if len(shape_of(b)) == 2:
            b = self.arrays.transpose(b)
        return self.dot(a, b)

    def outer(self, name: str, a: Value, b: Value) -> Data:
        """Trace ``ufunc.outer``."""
        return self.math.elementwise(name, (self._with_unit_axes(a, len(shape_of(b))), b))

    def _with_unit_axes(self, a: Value, axes: int) -> Value:
        if not is_array(a) or not axes:
            return a
        return self.arrays.view_or_value(
            a, (tuple(Index(0, 1, k) for k in range(len(a.shape))), (*a.shape, *(1,) * axes))
        )

    def matmul(self, a: Value, b: Value) -> Data:
        """Trace ``a @ b``: a sum over one axis, or for large matrices a BLAS call."""
        if isinstance(a, Ragged) or isinstance(b, Ragged):
            return self.arrays.ragged.dot(a, b)
        if not is_array(a) or not is_array(b) or not a.shape or not b.shape:
            raise self.scope.fail("a product of matrices needs arrays")
        dtype = np.result_type(a.dtype, b.dtype)
        if dtype.char in "?eF":
            raise self.scope.fail(f"a product of {dtype} does not compile")
        left, right = a.shape, b.shape
        if not self.scope.need_eq(left[-1], right[0] if len(right) == 1 else right[-2]):
            raise self.scope.fail("the inner dimensions are not known to be equal")
        rows, columns = left[-2:-1], right[-1:] if len(right) > 1 else ()
        stack = self.math.broadcast([left[:-2], right[:-2]])
        shape = (*stack, *rows, *columns)
        if rows and columns and 1 not in (*rows, *columns) and not self._is_small((*shape, left[-1])):
            return self._blas_matmul(a, b, dtype, shape)
        # the contiguous axis is the innermost loop
        inner = left[-1]
        domain = (*stack, *rows, inner, *columns)
        shift, fold = len(stack), len(stack) + len(rows)
        args = []
        for x, pair in ((a, (shift, fold)), (b, (fold, fold + 1))):
            matrix_axes = pair if len(x.shape) > 1 else (fold,)
            stack_rank = len(x.shape) - len(matrix_axes)
            places = (*range(shift - stack_rank, shift), *matrix_axes)
            amap = tuple(
                Index(0) if n == 1 != domain[p] else Index(0, 1, p)
                for n, p in zip(x.shape, places, strict=True)
            )
            args.append(cast(remap(x.expr, amap, domain), dtype))
        return self.fold("add", domain, (fold,), Apply("multiply", tuple(args), dtype), 0)

    def _is_small(self, sizes: tuple[Dim, ...]) -> bool:
        count = 1
        for n in sizes:
            count *= max(0, self.scope.limits(n)[1])
        return count <= _MOST_FOLDED_PRODUCTS

    def _blas_matmul(self, a: Data, b: Data, dtype: DType, shape: Shape) -> Data:
        if dtype.char not in "fdD" or a.dtype != b.dtype:
            raise self.scope.fail(f"a product of {a.dtype} and {b.dtype} matrices does not compile")
        stored = [self.memory.array(x) for x in (a, b)]
        window = self.memory.new(shape, dtype)
        self.memory.call("blas.matmul", (window,), tuple(x.window for x in stored if x.window is not None))
        return self.memory.view(window, dtype)
