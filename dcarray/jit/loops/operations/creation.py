"""NumPy's functions that make arrays of numbers, sequences and ranges, and borders, on traced values."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from dcarray.ir import dims
from dcarray.ir.nodes import Apply, Dim, Expr, Index, Iota
from dcarray.ir.ops import const
from dcarray.ir.windows import remap

from ..entry.entry_values import DType
from .indexing import run_length
from .joining import Joining
from .values import PYTHON, Data, NumberList, Shape, Value, is_array, is_int, is_number, kind_of, shape_of

_I8, _F8, _BOOL = np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.bool_)
_FEW = 1e-290  # of which no size makes a step of 0
_MOST_ITEMS = 64  # of a sequence, each of which is a statement
_MOST_CHECKED = 1 << 20  # elements of a range whose formula is compared with NumPy's range
_GRIDS_ARE_TUPLES = isinstance(np.meshgrid([0.0]), tuple)  # else lists


class Creation(Joining):
    """Tracing of NumPy's functions, continued: ``_np_linspace`` traces ``numpy.linspace``."""

    # ---- of sequences -------------------------------------------------------------------------------
    def _np_array(self, object: Value, dtype: Value = None, copy: Value = True) -> Value:
        if copy is not True:
            raise self.scope.fail("an array that is perhaps no copy")
        kind = self._dtype(dtype)
        if isinstance(object, NumberList):
            object = self.iterables.lists.as_array(object)
        if isinstance(object, tuple | list):
            return self._of_sequence(object, kind)
        if is_array(object):
            if kind is None or kind == object.dtype:
                return self._np_copy(object)
            made = self.arrays.astype(object, kind)
            return self.memory.note_order(self.memory.copy(made), object)
        return self._of_number(object, kind)

    def _np_asarray(self, a: Value, dtype: Value = None) -> Value:
        if isinstance(a, NumberList | tuple | list):
            return self._np_array(a, dtype)
        if not is_array(a):
            return self._of_number(a, self._dtype(dtype))
        kind = self._dtype(dtype)
        return a if kind is None or kind == a.dtype else self.arrays.astype(a, kind)

    def _of_number(self, x: Value, kind: DType | None) -> Data:
        """Return an array without axes that holds a number."""
        if not is_number(x) or not (isinstance(x, Data) or is_int(x) or type(x) in PYTHON):
            raise self.scope.fail("an array is made of something that is not a number")
        made = self.arrays.empty((), kind or self._dtype_of(x))
        self.arrays.assign(made, x, strict=True)
        return made

    def array_of_sequence(self, items: Value, dtype: DType) -> Data:
        """Return a sequence of numbers as an array, to be assigned to elements of another one."""
        return self._of_sequence(items, dtype)

    def _of_sequence(self, items: Value, kind: DType | None) -> Data:
        """Return the array of a sequence of numbers, of arrays, or of such sequences."""
        shape, leaves = self._leaves(items)
        if not leaves or len(leaves) > _MOST_ITEMS:
            raise self.scope.fail("an array is made of nothing, or of many items")
        if kind is None:
            kind = reduce(np.promote_types, [self._dtype_of(x) for x in leaves.values()])
        made = self.arrays.empty(shape, kind)
        for place, x in leaves.items():
            self.arrays.assign(self.arrays.element(made, (*place, Ellipsis)), x, strict=True)
        return made

    def _leaves(self, items: Value) -> tuple[Shape, dict[tuple[int, ...], Value]]:
        """Return the shape of the array that a nested sequence makes, and its items by their indices."""
        if isinstance(items, NumberList):
            items = self.iterables.lists.as_array(items)
        if not isinstance(items, tuple | list):
            if not is_number(items) or not (
                isinstance(items, Data) or is_int(items) or type(items) in PYTHON
            ):
                raise self.scope.fail("an array is made of something that is not a number")
            if is_array(items) and not items.shape:
                raise self.scope.fail("an array is made of arrays without axes")
            return shape_of(items), {(): items}
        leaves: dict[tuple[int, ...], Value] = {}
        shapes = []
        for k, item in enumerate(items):
            shape, inner = self._leaves(item)
            shapes.append(shape)
            leaves.update({(k, *place): x for place, x in inner.items()})
        if any(not self.scope.need_same_shape(shape, shapes[0]) for shape in shapes[1:]):
            raise self.scope.fail("an array is made of items that are not known to have one shape")
        return (len(items), *(shapes[0] if shapes else ())), leaves

    def _dtype_of(self, x: Value) -> DType:
        """Return the dtype that a number has as an array."""
        return x.dtype if isinstance(x, Data) and not x.weak else np.result_type(kind_of(x)(0))

    # ---- ranges -------------------------------------------------------------------------------------
    def _np_arange(self, *args: Value, dtype: Value = None) -> Value:
        if not 1 <= len(args) <= 3:
            raise self.scope.fail("a range that is not known")
        start, stop = (0, args[0]) if len(args) == 1 else args[:2]
        step = args[2] if len(args) == 3 else 1
        kind = self._dtype(dtype)
        if any(type(x) is float for x in args):
            return self._float_range(start, stop, step, kind)
        if not all(map(is_int, args)) or type(step) is not int or not step:
            raise self.scope.fail("a range that is not known")
        if kind is not None and kind.kind not in "iuf":
            raise self.scope.fail("a range that is not understood")
        for end in (start, stop):
            self.math.expr(end, kind or _I8)  # in range, or untraceable
        value = self._steps(start, step, _I8)
        return self.memory.value(
            value if kind in (None, _I8) else Apply("cast", (value,), kind),
            (run_length(self.scope, start, stop, step),),
        )

    def _steps(self, start: Value, step: int, dtype: DType) -> Expr:
        value: Expr = Iota(0, dtype)
        if step != 1:
            value = Apply("multiply", (value, const(step, dtype)), dtype)
        return Apply("add", (value, self.math.expr(start, dtype)), dtype)

    def _float_range(self, start: Value, stop: Value, step: Value, kind: DType | None) -> Data:
        """Return a range of floats known when tracing: the first two are computed, the next are multiples of
        their difference, as in NumPy."""
        if kind not in (None, _F8) or not all(type(x) in (int, float) for x in (start, stop, step)):
            raise self.scope.fail("a range of floats that is not known")
        try:
            with np.errstate(all="raise"):
                wanted = np.arange(start, stop, step)
                second = float(start) + float(step)
                between = second - float(start)
        except (ArithmeticError, ValueError, MemoryError) as error:
            raise self.scope.fail("a range of floats fails") from error
        expr = self._line(float(start), between)
        if wanted.dtype != _F8 or not 2 < wanted.size <= _MOST_CHECKED:
            raise self.scope.fail("a range of floats that is too short or too long")
        if not np.array_equal(wanted, np.arange(wanted.size, dtype=float) * between + float(start)):
            raise self.scope.fail("a range of floats whose elements are not understood")
        return self.memory.value(expr, (wanted.size,))

    def _line(self, start: float, step: float) -> Expr:
        """Return ``k * step + start`` at the index k."""
        steps = Apply("multiply", (Apply("cast", (Iota(0, _I8),), _F8), const(step, _F8)), _F8)
        return Apply("add", (steps, const(start, _F8)), _F8)

    def _np_linspace(
        self, start: Value, stop: Value, num: Value = 50, endpoint: Value = True, dtype: Value = None
    ) -> Value:
        kind, last = self._dtype(dtype) or _F8, self._flag(endpoint)
        ends = [start, stop]
        if kind.char not in "fd" or not is_int(num) or not all(self._is_double(x) for x in ends):
            raise self.scope.fail("a linspace that is not understood")
        if not self.scope.need_le(2, num):  # NumPy has another formula for a single element
            raise self.scope.fail("a linspace of perhaps less than two elements")
        of = self.math.elementwise
        count = dims.simplify(num - last)
        low, high, parts = (self.memory.value(self.math.expr(x, _F8), scalar=True) for x in (*ends, count))
        delta = of("subtract", (high, low))
        step = of("divide", (delta, parts))
        place = self.memory.value(Apply("cast", (Iota(0, _I8),), _F8), (num,))
        made = of("multiply", (place, step))
        known = all(type(x) in (int, float) for x in ends)
        if not known or abs(float(stop) - float(start)) < _FEW:  # a step of 0 may have underflowed
            small = of("multiply", (of("divide", (place, parts)), delta))
            made = of("where", (of("equal", (step, 0.0)), small, made))
        made = of("add", (made, low))
        if last:
            at_end = self.memory.value(
                Apply("equal", (Iota(0, _I8), self.math.expr(dims.simplify(num - 1), _I8)), _BOOL), (num,)
            )
            made = of("where", (at_end, high, made))
        return made if kind == _F8 else self.arrays.astype(made, kind)

    def _is_double(self, x: Value) -> bool:
        """Whether a number is an int, a float, or a scalar of float64."""
        return is_number(x) and not is_array(x) and kind_of(x) in (int, float, "d")

    def _np_meshgrid(self, *xi: Value, indexing: Value = "xy") -> Value:
        if not xi or indexing not in ("xy", "ij") or not all(is_array(x) and len(x.shape) == 1 for x in xi):
            raise self.scope.fail("a grid of other things than vectors")
        order = list(range(len(xi)))
        if indexing == "xy" and len(xi) > 1:
            order[:2] = 1, 0
        shape: list[Dim] = [0] * len(xi)
        for x, axis in zip(xi, order, strict=True):
            shape[axis] = x.shape[0]
        made = [
            self.memory.copy(
                self.memory.value(remap(x.expr, (Index(0, 1, axis),), tuple(shape)), tuple(shape))
            )
            for x, axis in zip(xi, order, strict=True)
        ]
        return tuple(made) if _GRIDS_ARE_TUPLES else made

    # ---- borders ------------------------------------------------------------------------------------
    def _np_pad(
        self, array: Value, pad_width: Value, mode: Value = "constant", constant_values: Value = 0
    ) -> Value:
        if not is_array(array) or not array.shape or not all(type(n) is int for n in array.shape):
            raise self.scope.fail("the padded value is not an array of a known shape")
        widths = self._widths(pad_width, len(array.shape))
        if mode == "constant":
            return self._surrounded(array, widths, constant_values)
        if mode not in _BORDERS or constant_values != 0:
            raise self.scope.fail(f"a border of the kind {mode}")
        made = array
        for axis, (before, after) in enumerate(widths):
            size = array.shape[axis]
            if (
                max(before, after) > (size - (mode == "reflect") if mode != "edge" else before + after)
                or not size
            ):
                raise self.scope.fail("a border that is wider than the array")
            parts = [*_BORDERS[mode](size, before, after)]
            made = self._join([self._border(made, axis, key, n) for key, n in parts if n], axis)
        return self.memory.note_order(made, array)

    def _widths(self, given: Value, ndim: int) -> list[tuple[int, int]]:
        """Return the number of elements that `numpy.pad` adds before and after, along each axis."""
        try:
            widths = np.broadcast_to(np.asarray(given), (ndim, 2))
        except (ValueError, TypeError) as error:
            raise self.scope.fail("the width of a border is not known") from error
        if widths.dtype != np.dtype(int) or (widths < 0).any():
            raise self.scope.fail("the width of a border is not known")
        return [(int(before), int(after)) for before, after in widths]

    def _surrounded(self, array: Data, widths: list[tuple[int, int]], value: Value) -> Data:
        shape = tuple([n + before + after for n, (before, after) in zip(array.shape, widths, strict=True)])
        if type(value) not in (int, float, bool):
            raise self.scope.fail("the value of a border is not a known number")
        made = self.arrays.empty(shape, array.dtype)
        self.arrays.assign(made, value, strict=True)
        inside = tuple(
            [slice(before, before + n) for n, (before, _) in zip(array.shape, widths, strict=True)]
        )
        self.arrays.assign(self.arrays.element(made, inside), array)
        return self.memory.note_order(made, array)

    def _border(self, x: Data, axis: int, key: slice, count: int) -> Data:
        part = self.arrays.element(x, (*(slice(None),) * axis, key, Ellipsis))
        if part.shape[axis] == count:
            return part
        shape = (*part.shape[:axis], count, *part.shape[axis + 1 :])
        index = tuple(Index(0) if k == axis else Index(0, 1, k) for k in range(len(shape)))
        return self.memory.value(remap(part.expr, index, shape), shape)


def _edge(n: int, before: int, after: int) -> list[tuple[slice, int]]:
    return [(slice(0, 1), before), (slice(None), n), (slice(n - 1, n), after)]


def _wrap(n: int, before: int, after: int) -> list[tuple[slice, int]]:
    return [(slice(n - before, n), before), (slice(None), n), (slice(0, after), after)]


def _mirror(n: int, before: int, after: int, skip: int) -> list[tuple[slice, int]]:
    """Return the slices and steps of which `numpy.pad` makes a mirrored axis; the outermost ``skip`` elements
    are not repeated."""
    low = slice(before - 1 + skip, skip - 1 if skip else None, -1)
    high_stop = n - 1 - skip - after
    high = slice(n - 1 - skip, high_stop if high_stop >= 0 else None, -1)
    return [(low, before), (slice(None), n), (high, after)]


_BORDERS: dict[str, Any] = {
    "edge": _edge,
    "wrap": _wrap,
    "symmetric": lambda n, before, after: _mirror(n, before, after, 0),
    "reflect": lambda n, before, after: _mirror(n, before, after, 1),
}
