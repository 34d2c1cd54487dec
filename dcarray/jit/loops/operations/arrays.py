"""Operations on traced arrays: views, elements, creation, conversion and assignment."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from dcarray.core.strides import c_strides
from dcarray.ir import dims
from dcarray.ir.nodes import Dim, Expr, Window
from dcarray.ir.windows import compose, overlap, remap

from ..entry.entry_values import DType, PublicObject
from . import overflow
from .arithmetic import Arithmetic, Operations
from .gathers import Gathers
from .indexing import Selection, flipped, is_basic, only_integers, resized, select, transposed
from .masks import Masks
from .ragged import RaggedSlices
from .scatters import Scatters
from .values import (
    PYTHON,
    Data,
    Masked,
    PythonOrNumpy,
    Ragged,
    Shape,
    Value,
    cast,
    is_array,
    is_int,
    is_number,
    kind_of,
    shape_of,
    whole_window,
)


class Arrays(Operations):
    """Views, creation, conversion and assignment of arrays."""

    def __init__(self, math: Arithmetic) -> None:
        super().__init__(math)
        self.masks = Masks(math)
        self.gathers = Gathers(math)
        self.ragged = RaggedSlices(math, self.gathers)
        self.scatters = Scatters(self)

    # ---- views --------------------------------------------------------------------------------------
    def view_or_value(self, x: Data, selection: Selection) -> Data:
        """Return a selection of an array: a view; if the array is not stored in memory, a computed value."""
        amap, shape = selection
        if x.window is not None:
            view = self.memory.view(compose(x.window, amap, shape), x.dtype)
            view.readonly = x.readonly
            return view
        value = self.memory.value(remap(x.expr, amap, shape), shape, views_in_numpy=x.views_in_numpy)
        window = compose(whole_window("", x.shape), amap, shape)
        if x.part_of is not None or self.memory.is_contiguous(window, x.shape) is not True:
            value.part_of = x, selection
        return value

    def getitem(self, x: Data, key: Value) -> Value:
        """Trace ``x[key]``."""
        if not is_array(x):
            raise self.scope.fail("a scalar is indexed")
        if self.masks.is_mask(x, key):
            return self.masks.select(x, key)
        if self.ragged.is_slice(x, key):
            return self.ragged.slice(x, key)
        if isinstance(key, Ragged):
            return self.ragged.gather(x, key)
        key = self.gathers.with_run_time_ints(x, key)
        if self.gathers.is_data_dependent(key):
            return self.gathers.gather(x, key)
        if not is_basic(key):
            raise self.scope.fail("an index is an array")
        amap, shape = select(self.scope, x.shape, key)
        if only_integers(key, len(x.shape)):
            return self.memory.value(remap(x.expr, amap, ()), scalar=True)
        return self.view_or_value(x, (amap, shape))

    def element(self, x: Data, key: Value) -> Data:
        """Trace ``x[key]`` as a view, also of a single element."""
        if not is_basic(key):
            raise self.scope.fail("an index is an array")
        return self.view_or_value(x, select(self.scope, x.shape, key))

    def transpose(self, a: Data, axes: Any = None) -> Data:
        ndim = len(a.shape)
        order = tuple(range(ndim))[::-1] if axes is None else self.axes(axes, ndim)
        if len(order) != ndim:
            raise self.scope.fail("axes do not fit the array")
        return self.view_or_value(a, transposed(a.shape, order))

    def flip(self, m: Data, axis: Any = None) -> Data:
        return self.view_or_value(m, flipped(m.shape, self.axes(axis, len(m.shape))))

    def reshape(self, a: Data, shape: Value) -> Data:
        wanted = self.shape(shape, a.shape)
        sizes = size_of(a.shape), size_of(wanted)
        joins = self.scope.eq(*sizes) is True  # else sizes are more likely to be those that are there
        selection = resized(self.scope, a.shape, wanted, proved=joins)
        if selection is not None:
            return self.view_or_value(a, selection)
        if not self.scope.need_eq(*sizes):
            raise self.scope.fail("a reshape joins or splits axes, and the sizes are not known to fit")
        if a.window is None and (a.part_of is not None or a.views_in_numpy):
            raise self.scope.fail("a reshape joins or splits axes of a view")
        return self.memory.note_order(self.memory.perhaps_view(self.memory.reshaped(a, wanted), a), a)

    def shape(self, given: Value, old: Shape | None = None) -> Shape:
        """Return the shape that a program's argument such as ``shape=(n, 3)`` means."""
        shape = tuple(given) if isinstance(given, tuple | list) else (given,)
        if not all(map(is_int, shape)):
            raise self.scope.fail("a shape is not known")
        if old is not None and shape.count(-1) == 1 and all(type(n) is int for n in (*shape, *old)):
            known = int(np.prod([n for n in shape if n != -1], dtype=object))
            size = int(np.prod(old, dtype=object))
            if not known or size % known:
                raise self.scope.fail("a shape does not fit")
            shape = tuple(size // known if n == -1 else n for n in shape)
        if not all(map(self.scope.need_nonneg, shape)):
            raise self.scope.fail("a size may be negative")
        return shape

    def axes(self, axis: Value, ndim: int) -> tuple[int, ...]:
        """Return the non-negative axes that a program's argument ``axis`` means; None means all."""
        if axis is None:
            return tuple(range(ndim))
        given = axis if isinstance(axis, tuple | list) else (axis,)
        if not all(type(k) is int for k in given):
            raise self.scope.fail("an axis is not known")
        try:
            return normalize_axis_tuple(tuple(given), ndim)
        except ValueError as error:
            raise self.scope.fail(str(error)) from error

    def count(self, shape: Shape, axis: Value) -> Dim:
        """Return the product of the lengths of a shape along the axes ``axis``."""
        return size_of(tuple(shape[k] for k in self.axes(axis, len(shape))))

    # ---- creation -----------------------------------------------------------------------------------
    def dtype(self, given: Value) -> DType:
        """Return the dtype that a program's argument ``dtype`` means."""
        if isinstance(given, PublicObject):
            kind = {"builtins." + t.__name__: t for t in PYTHON}.get(given.name)
            name = given.name.removeprefix("numpy.")
            given = kind or (getattr(np, name, None) if name in np.sctypeDict else None)
        if given is None or not isinstance(given, type | str | np.dtype):
            raise self.scope.fail("a dtype is not understood")
        try:
            return np.dtype(given)
        except TypeError as error:
            raise self.scope.fail(str(error)) from error

    def empty(self, shape: Shape, dtype: DType) -> Data:
        return self.memory.view(self.memory.new(shape, dtype), dtype)

    def filled(self, x: Data, value: Value) -> Data:
        """Assign a value to all elements of a new array, and return the array."""
        self.assign(x, value)
        return x

    def asarray(self, value: Value) -> Data:
        """Trace ``numpy.asarray(value)``."""
        if is_array(value):
            return value  # type: ignore[no-any-return]
        if not is_number(value):
            raise self.scope.fail("an array is made of something that is not a number")
        return self.memory.copy(self.math.as_numpy(value))

    def astype_masked(self, x: Masked, dtype: DType) -> Masked:
        """Return a selection cast to a dtype."""
        if x.dtype == dtype:
            return x
        full = self.astype(self.memory.value(self.math.ones_if_unselected(x), x.full.shape), dtype)
        return Masked(full, x.mask, x.along)

    def astype(self, x: Data, dtype: DType) -> Data:
        """Return a value cast to a dtype."""
        if x.dtype.kind == "c" != dtype.kind and dtype.kind != "b":
            raise self.scope.fail("the imaginary part is dropped")
        return self.memory.value(cast(x.expr, dtype), x.shape, scalar=x.scalar)

    # ---- writing ------------------------------------------------------------------------------------
    def assign(self, target: Data, value: Value, spent: bool = False, strict: bool = False) -> None:
        """Trace ``target[...] = value``; with ``strict``, scalars that do not fit an integer dtype raise."""
        window = target.window
        if window is None:
            raise self.scope.fail("an array without memory of its own is written")
        if isinstance(value, PythonOrNumpy) and (
            target.dtype.kind in "fc" or target.dtype == value.numpy.dtype
        ):
            value = value.numpy
        if not is_number(value):
            raise self.scope.fail("the value assigned to elements is not a number")
        self.writeable(target)
        if kind_of(value) is complex and target.dtype.kind != "c":
            raise self.scope.fail("a complex number is assigned to real elements")
        if isinstance(value, Data) and (value.weak is None or value.weak is not int):
            if value.dtype.kind == "c" != target.dtype.kind:
                raise self.scope.fail("the imaginary part is dropped")
            expr = cast(value.expr, target.dtype)
            if strict and value.scalar and not np.can_cast(value.dtype, target.dtype):
                expr = self._checked_cast(value, target.dtype)
        elif type(value) is float and target.dtype.kind in "iu":
            expr = self.math.expr(self._truncate(value), target.dtype)
        else:
            expr = self.math.expr(value, target.dtype)
        if isinstance(value, Data) and value.window is not None:
            self._check_direction(window, value.window)
        shape = self.math.fits(shape_of(value), window.shape)
        if len(shape) < len(shape_of(value)):
            drop = (0,) * (len(shape_of(value)) - len(shape)) + (Ellipsis,)
            expr = remap(expr, select(self.scope, shape_of(value), drop)[0], shape)
        done = [value] if spent and isinstance(value, Data) else []
        self.memory.write(window, self.math.expand(expr, shape, window.shape), *done)

    def _check_direction(self, target: Window, source: Window) -> None:
        """Refuse to assign a vector to a part of its own memory that has another step.  NumPy copies element
        by element then, and reads elements that it has already written."""
        if target.array != source.array or len(target.shape) != 1 or len(source.shape) != 1:
            return
        if overlap(target, source) is False or self._meet_at_their_starts(target, source):
            return
        if not self._steps_equal(target, source):
            raise self.scope.fail("a vector is assigned to a part of itself with another step")

    def _meet_at_their_starts(self, a: Window, b: Window) -> bool:
        """Whether two vectors along different dimensions of an array share just their first element."""
        pairs = list(zip(a.index, b.index, strict=True))
        if any(x.axis == 0 == y.axis for x, y in pairs):
            return False
        return all(self.scope.eq(x.offset, y.offset) is True for x, y in pairs)

    def _steps_equal(self, a: Window, b: Window) -> bool:
        """Whether two vectors in the same array have equal steps in memory, or steps of opposite signs."""
        array = self.memory.arrays[a.array]
        each = array.strides or c_strides(array.shape)
        steps = [
            dims.simplify(
                sum((ix.stride * s for ix, s in zip(w.index, each, strict=True) if ix.axis == 0), 0)
            )
            for w in (a, b)
        ]
        backwards = [self.scope.lt(step, 0) for step in steps]
        return self.scope.eq(*steps) is True or set(backwards) == {True, False}

    def _checked_cast(self, value: Data, dtype: DType) -> Expr:
        """Return a scalar cast to a dtype.  A cast to integers checks that it fits, as ``int()`` does."""
        if dtype.kind not in "iu":
            return cast(value.expr, dtype)
        self.memory.may_raise = True
        return overflow.checked_cast(value.expr, dtype)

    def _truncate(self, value: float) -> int:
        try:
            return int(value)
        except (OverflowError, ValueError) as error:
            raise self.scope.fail(str(error)) from error

    def writeable(self, x: Data) -> None:
        """Raise `Untraceable` if NumPy would refuse to write to an array."""
        if x.window is None or x.readonly or x.window.array in self.memory.unwriteable:
            raise self.scope.fail("an array may not be written")
        self.memory.changed.add(x.window.array)

    def update(self, op: str, target: Data, value: Value) -> None:
        """Trace ``target op= value`` on an array."""
        window = target.window
        if window is None:
            raise self.scope.fail("an array without memory of its own is written")
        self.writeable(target)
        expr, result = self.updated(op, target, value)
        self.memory.write(window, expr, *[v for v in (result, value) if isinstance(v, Data)])

    def updated(self, op: str, target: Data, value: Value) -> tuple[Expr, Data]:
        """Return what ``target op= value`` writes, of the dtype of ``target``, and the result before."""
        result = self.math.binary(op, target, value)
        if not isinstance(result, Data) or not np.can_cast(result.dtype, target.dtype, "same_kind"):
            raise self.scope.fail("an in-place operation does not keep its dtype")
        shape = self.math.broadcast([result.shape, target.shape])
        if not self.scope.need_same_shape(shape, target.shape):
            raise self.scope.fail("an in-place operation makes an array larger")
        return self.math.expand(cast(result.expr, target.dtype), result.shape, target.shape), result

    # ---- scalars ------------------------------------------------------------------------------------
    def python(self, kind: type, value: Value) -> Value:
        """Trace ``kind(value)`` for a Python number type."""
        if isinstance(value, Data):
            if kind is bool:
                return self.math.truth(value)
            if value.shape:  # NumPy raises or warns
                raise self.scope.fail("an array becomes a Python scalar")
            if value.weak is kind:
                return value
            if value.weak is int and kind in (float, complex):
                return self.memory.value(self.math.expr(value, np.dtype(kind)), scalar=True, weak=kind)
            fine = {float: "fiub", complex: "cfiub", int: "fiub"}.get(kind, "")
            if value.dtype.kind not in fine or value.weak is int:
                raise self.scope.fail(f"{kind.__name__}() of a scalar")
            if kind is int:
                return self.math.as_counter(value)
            return self.memory.value(cast(value.expr, np.dtype(kind)), scalar=True, weak=kind)
        if type(value) in (*PYTHON, str):
            try:
                return kind(value)
            except (ValueError, OverflowError, TypeError) as error:
                raise self.scope.fail(str(error)) from error
        if is_int(value) and kind is int:
            return value
        if is_int(value) and kind in (float, complex):
            return self.memory.value(self.math.expr(value, np.dtype(kind)), scalar=True, weak=kind)
        raise self.scope.fail(f"{kind.__name__}() of a value that is not understood")


def size_of(shape: Shape) -> Dim:
    """Return the number of elements."""
    total: Dim = 1
    for n in shape:
        total = total * n
    return total
