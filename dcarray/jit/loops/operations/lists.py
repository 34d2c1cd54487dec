"""Lists of numbers, and nested lists, in traced code: arrays to compiled code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dcarray.ir.nodes import Apply
from dcarray.ir.ops import const

from .arithmetic import Operations
from .arrays import Arrays
from .either_type import either_kind, int_or_float, value_and_type
from .texts import Character, Text
from .values import INT_OR_FLOAT, Data, NumberList, RaggedList, Row, Shape, Value, cast, is_int, kind_of

_DTYPES = {int: np.dtype(np.int64), float: np.dtype(np.float64), bool: np.dtype(np.bool_)}
_F8, _BOOL = np.dtype(np.float64), np.dtype(np.bool_)


class Lists(Operations):
    """Elements and slices of lists, and assignments to them.  Code with other operations on lists, such as
    `+` or `insert`, runs in Python.

    Attributes
    ----------
    kinds : mapping of str to Any
        By a list's origin (a name or a place in the source) the `kind_of` its numbers found in an earlier
        trace.
    wanted : dict of str to Any
        The kinds that this trace found to be needed instead.
    """

    def __init__(self, arrays: Arrays) -> None:
        super().__init__(arrays.math)
        self.arrays = arrays
        self.kinds: Mapping[str, Any] = {}
        self.wanted: dict[str, Any] = {}

    def new(self, shape: Shape, kind: Any, origin: str, of_tuples: bool = False) -> NumberList:
        """Return a new list of this shape (nested if it has several axes) with numbers of the `kind_of`
        ``kind``."""
        kind = self.kinds.get(origin, kind)
        mixed = kind == INT_OR_FLOAT
        array = self.arrays.empty(shape, np.dtype(complex) if mixed else np.dtype(kind))
        return NumberList(array, isinstance(kind, str), mixed, origin, of_tuples)

    def ragged(self, items: NumberList, starts: Data, lengths: Data) -> RaggedList:
        """Return a list of lists of several lengths, given each one's start and length."""
        for places in (starts, lengths):
            assert places.window is not None
            self.memory.immutable.add(places.window.array)
        return RaggedList(items, starts, lengths, items.origin)

    def row(self, x: RaggedList, key: Value) -> Row:
        """Trace ``x[key]`` of a list of lists of several lengths."""
        self.check_key(key)
        most = self.scope.limits(x.items.array.shape[0])[1]
        parts = [self.arrays.getitem(places, key) for places in (x.starts, x.lengths)]
        numbers = [self.memory.value(p.expr, scalar=True, weak=int, limits=(0, most)) for p in parts]
        return Row(x.items, *numbers)

    def getitem(self, x: NumberList, key: Value) -> Value:
        """Trace ``x[key]``."""
        if isinstance(key, slice):
            return self._slice(x, key)
        self.check_key(key)
        if x.of_tuples:
            width = x.array.shape[-1]
            if type(width) is not int:
                raise self.scope.fail("the length of a tuple is not known")
            return tuple([self._element(x, (key, k)) for k in range(width)])
        if len(x.array.shape) == 1:
            return self._element(x, key)
        if not is_int(key):
            raise self.scope.fail("a list among lists is chosen by data")
        row = self.arrays.getitem(x.array, key)
        assert isinstance(row, Data)
        return replace(x, array=row)

    def _slice(self, x: NumberList, key: slice) -> NumberList:
        """Trace ``x[start:stop]``: a new list; lists among its items are the same objects as in ``x``."""
        part = self.arrays.getitem(x.array, key)
        if not isinstance(part, Data) or not all(self.scope.need_le(1, n) for n in part.shape):
            raise self.scope.fail("a part of a list that may be empty, or is as long as data say")
        return replace(x, array=self.memory.copy(part) if x.of_tuples or len(part.shape) == 1 else part)

    def _element(self, x: NumberList, key: Value) -> Value:
        """Return one number of a list; ``key`` has an index for each level."""
        item = self.arrays.getitem(x.array, key)
        if x.mixed:
            value, is_float = [Apply(part, (item.expr,), _F8) for part in ("real", "imag")]
            return int_or_float(self.memory, value, Apply("not_equal", (is_float, const(0.0, _F8)), _BOOL))
        return item if x.of_numpy else self.arrays.python(x.kind, item)

    def as_array(self, x: NumberList) -> Data:
        """Return the array that NumPy makes of a list; it shares the memory that stands for the list."""
        shape, dtype = x.array.shape, x.array.dtype
        if x.mixed:
            raise self.scope.fail("an array is made of a list of ints and floats: begin the list with floats")
        if dtype != _DTYPES[float] and not all(self.scope.need_le(1, n) for n in shape):
            raise self.scope.fail("an array is made of a list that may be empty")
        return x.array

    def chosen(self, items: Sequence[Value], key: Value) -> Value:
        """Trace ``items[key]`` for a few numbers of one type, or tuples of these, and an index that is not
        negative."""
        if all(type(one) is tuple and len(one) == len(items[0]) for one in items):
            return tuple([self.chosen(parts, key) for parts in zip(*items, strict=True)])
        if is_int(key):
            expr = self.math.expr(key, _DTYPES[int])
            key = self.memory.value(expr, scalar=True, weak=int, limits=self.scope.limits(key))
        kinds = set(map(kind_of, items))
        kind = kinds.pop() if len(kinds) == 1 and kinds <= _DTYPES.keys() else None
        least, most = (isinstance(key, Data) and key.weak is int and key.limits) or (-1, -1)
        if kind is None or least < 0 or most >= len(items):
            raise self.scope.fail("an index into a few values is only known at run time")
        dtype = _DTYPES[kind]
        choice = self.math.expr(items[-1], dtype)
        for k in reversed(range(len(items) - 1)):
            here = Apply("equal", (key.expr, const(k, key.dtype)), _BOOL)
            choice = Apply("where", (here, self.math.expr(items[k], dtype), choice), dtype)
        item = self.memory.value(choice, scalar=True, weak=kind)
        if kind is int:
            bounds = [self.math.limits(one) for one in items]
            item.limits = min(low for low, _ in bounds), max(high for _, high in bounds)
        return item

    def assigned(self, x: NumberList, key: Value, value: Value) -> Value:
        """Return what ``x[key] = value`` puts into the array of a list of numbers.

        Raises
        ------
        Untraceable
            If the list would then have numbers of other types.
        """
        self.check_key(key)
        if len(x.array.shape) == 1:
            return self.number_for(x, value)
        raise self.scope.fail(f"a list of lists of {x.array.dtype} gets another list")

    def number_for(self, x: NumberList, value: Value) -> Value:
        """Return the number that represents ``value`` in the array of a list; raises as `assigned`."""
        if x.mixed and either_kind(value, 0, 0.0) == INT_OR_FLOAT:
            pair = value_and_type(self.math, value, INT_OR_FLOAT)
            expr = Apply("complex", (pair[0], cast(pair[1], _F8)), np.dtype(complex))
            return self.memory.value(expr, scalar=True, weak=complex)
        if kind_of(value) is x.kind:
            return value
        if {x.kind, kind_of(value)} <= {int, float, INT_OR_FLOAT}:
            self.want(x.origin, INT_OR_FLOAT)
        raise self.scope.fail(f"a list of {x.array.dtype} gets another element")

    def want(self, origin: str, kind: Any) -> None:
        """Note that a list gets numbers of the `kind_of` ``kind``, for the next trace."""
        known = self.wanted.get(origin, self.kinds.get(origin, kind))
        self.wanted[origin] = kind if known == kind else INT_OR_FLOAT

    def character(self, x: Text, key: Value) -> Character:
        """Trace ``x[key]`` of a string, or of a list or an array of characters."""
        self.check_key(key, "a string")
        return Character(self.arrays.getitem(x.codes, key))

    def check_key(self, key: Value, what: str = "a list") -> None:
        """Raise `Untraceable` if a key is not an integer."""
        run_time = isinstance(key, Data) and key.scalar and key.dtype.kind in "iu"
        if not (is_int(key) or run_time):
            raise self.scope.fail(f"{what} is indexed by something that is not an integer")
