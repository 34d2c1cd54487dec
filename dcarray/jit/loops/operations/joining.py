"""NumPy's functions that join, roll, border and reshape arrays, and of triangles and diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partialmethod
from itertools import product
from typing import Any

import numpy as np

from dcarray.ir import dims
from dcarray.ir.nodes import Apply, Dim, Expr, Index, Iota
from dcarray.ir.ops import const
from dcarray.ir.windows import remap

from .arrays import size_of
from .tools import Tools
from .values import Data, Value, cast, is_array, is_int

_I8, _BOOL = np.dtype(np.int64), np.dtype(np.bool_)


class Joining(Tools):
    """``_np_hstack`` traces ``numpy.hstack``, and so on."""

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
        joined = self.arrays.empty(shape, np.result_type(*(x.dtype for x in parts)))
        start: Dim = 0
        for x in parts:
            stop = dims.simplify(start + x.shape[place])
            key = (slice(None),) * place + (slice(start, stop), Ellipsis)
            self.arrays.assign(self.arrays.element(joined, key), x, spent=True)
            start = stop
        return self.memory.note_order(joined, *parts)

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
        rolled = self.arrays.empty(a.shape, a.dtype)
        halves = [[(0, 0, n)] if not n or not s % n else [(0, s % n, n - s % n), (n - s % n, 0, s % n)]
                  for n, s in zip(a.shape, moved, strict=True)]  # fmt: skip
        for part in product(*halves):
            into = tuple(slice(to, to + n) for _, to, n in part)
            out = tuple(slice(at, at + n) for at, _, n in part)
            self.arrays.assign(self.arrays.element(rolled, into), self.arrays.element(a, out), spent=True)
        return self.memory.note_order(rolled, a)

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
        rolled = self.memory.value(self.arrays.gathers.at(stored, index, a.shape), a.shape)
        return self.memory.note_order(self.memory.copy(rolled), a)

    # ---- borders ------------------------------------------------------------------------------------
    def _np_pad(
        self, array: Value, pad_width: Value, mode: Value = "constant", *, constant_values: Value = 0
    ) -> Value:
        if not is_array(array) or not array.shape or not all(type(n) is int for n in array.shape):
            raise self.scope.fail("the padded value is not an array of a known shape")
        widths = self._widths(pad_width, len(array.shape))
        if mode == "constant":
            return self._surrounded(array, widths, constant_values)
        if mode not in _BORDERS or constant_values != 0:
            raise self.scope.fail(f"a border of the kind {mode}")
        padded = array
        for axis, (before, after) in enumerate(widths):
            size = array.shape[axis]
            if (
                max(before, after) > (size - (mode == "reflect") if mode != "edge" else before + after)
                or not size
            ):
                raise self.scope.fail("a border that is wider than the array")
            parts = [*_BORDERS[mode](size, before, after)]
            padded = self._join([self._border(padded, axis, key, n) for key, n in parts if n], axis)
        return self.memory.note_order(padded, array)

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
        padded = self.arrays.empty(shape, array.dtype)
        self.arrays.assign(padded, value, strict=True)
        inside = tuple(
            [slice(before, before + n) for n, (before, _) in zip(array.shape, widths, strict=True)]
        )
        self.arrays.assign(self.arrays.element(padded, inside), array)
        return self.memory.note_order(padded, array)

    def _border(self, x: Data, axis: int, key: slice, count: int) -> Data:
        part = self.arrays.element(x, (*(slice(None),) * axis, key, Ellipsis))
        if part.shape[axis] == count:
            return part
        shape = (*part.shape[:axis], count, *part.shape[axis + 1 :])
        index = tuple(Index(0) if k == axis else Index(0, 1, k) for k in range(len(shape)))
        return self.memory.value(remap(part.expr, index, shape), shape)

    # ---- triangles and diagonals --------------------------------------------------------------------
    def _triangle(self, op: str, m: Value, k: Value = 0) -> Data:
        if not is_array(m) or len(m.shape) < 2 or not is_int(k):
            raise self.scope.fail("a triangle of something that is not a matrix")
        rank = len(m.shape)
        row, column = Iota(rank - 2, _I8), Iota(rank - 1, _I8)
        edge = Apply("add", (row, self.math.expr(k, _I8)), _I8)
        inside = Apply(op, (edge, column), _BOOL)
        return self.memory.value(Apply("where", (inside, m.expr, const(0, m.dtype)), m.dtype), m.shape)

    _np_triu, _np_tril = partialmethod(_triangle, "less_equal"), partialmethod(_triangle, "greater_equal")

    def _np_trace(self, a: Value) -> Value:
        return self.reductions.reduce("add", self._np_diagonal(a))

    def _np_diagonal(self, a: Value) -> Data:
        if not is_array(a) or len(a.shape) != 2 or not self.scope.need_eq(*a.shape):
            raise self.scope.fail("a diagonal of something that is not a square matrix")
        view = self.arrays.view_or_value(a, ((Index(0, 1, 0), Index(0, 1, 0)), a.shape[:1]))
        view.readonly = True
        return view

    _np_diag = _np_diagonal

    # ---- axes ---------------------------------------------------------------------------------------
    def _np_expand_dims(self, a: Value, axis: Value) -> Value:
        (place,) = self.arrays.axes(axis, len(a.shape) + 1)
        return self.arrays.element(a, ((slice(None),) * place) + (None, Ellipsis))

    def _np_squeeze(self, a: Value, axis: Value = None) -> Value:
        ndim = len(a.shape)
        gone = [k for k in range(ndim) if a.shape[k] == 1] if axis is None else self.arrays.axes(axis, ndim)
        if any(a.shape[k] != 1 for k in gone):
            raise self.scope.fail("an axis that is not of length 1 is dropped")
        if axis is None and not all(self.scope.need_le(2, n) for n in a.shape if n != 1):
            raise self.scope.fail("an axis is perhaps of length 1")
        return self.arrays.element(a, (*[0 if k in gone else slice(None) for k in range(ndim)], Ellipsis))

    def _np_swapaxes(self, a: Value, axis1: Value, axis2: Value) -> Value:
        order = list(range(len(a.shape)))
        (i,), (j,) = (self.arrays.axes(k, len(order)) for k in (axis1, axis2))
        order[i], order[j] = j, i
        return self.arrays.transpose(a, tuple(order))

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
    "edge": lambda n, before, after: [(slice(0, 1), before), (slice(None), n), (slice(n - 1, n), after)],
    "wrap": _wrap,
    "symmetric": lambda n, before, after: _mirror(n, before, after, 0),
    "reflect": lambda n, before, after: _mirror(n, before, after, 1),
}
