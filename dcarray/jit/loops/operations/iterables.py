"""Iterables of ``for`` loops: ranges, arrays, and ``enumerate``, ``zip`` and ``reversed`` of them."""

from __future__ import annotations

from dcarray.ir.nodes import Dim

from .arithmetic import Operations
from .arrays import Arrays
from .indexing import run_length
from .lists import Lists
from .texts import Text
from .values import Data, ItemRange, NumberList, RaggedList, Value, is_array, is_int


class Iterables(Operations):
    """Conversion of iterables to `ItemRange`."""

    def __init__(self, arrays: Arrays) -> None:
        super().__init__(arrays.math)
        self.arrays, self.lists = arrays, Lists(arrays)

    def items(self, value: Value) -> ItemRange:
        """Return the items of a range or an array, each read in its iteration."""
        if isinstance(value, ItemRange):
            return value
        if isinstance(value, NumberList):
            return ItemRange(0, value.array.shape[0], 1, lambda k: self.lists.getitem(value, k))
        if isinstance(value, Text):
            return ItemRange(0, value.codes.shape[0], 1, lambda k: self.lists.character(value, k))
        if isinstance(value, RaggedList):
            return ItemRange(0, value.starts.shape[0], 1, lambda k: self.lists.row(value, k))
        if not is_array(value) or not value.shape:
            raise self.scope.fail(
                "a loop over another object: loop over range(n), an array or a list of numbers"
            )
        stored = self.memory.array(value)
        return ItemRange(0, stored.shape[0], 1, lambda k: self.arrays.getitem(stored, k))

    def enumerate(self, iterable: Value, start: Value = 0) -> ItemRange:
        """Trace ``enumerate(iterable, start)``."""
        if not is_int(start):
            raise self.scope.fail("enumerate from something that is not an integer")
        steps = self._from_zero(iterable)
        return ItemRange(0, steps.stop, 1, lambda k: (self._at(start, k), steps.item(k)))

    def zip(self, values: tuple[Value, ...]) -> ItemRange:
        """Trace ``zip(*values)``."""
        parts = [self._from_zero(v) for v in values]
        if not parts:
            raise self.scope.fail("zip of nothing")
        shortest = parts[0].stop
        for part in parts[1:]:
            if self.scope.le(shortest, part.stop) is not True:
                if self.scope.le(part.stop, shortest) is not True:
                    raise self.scope.fail("it is not known which argument of zip ends first")
                shortest = part.stop
        return ItemRange(0, shortest, 1, lambda k: tuple([part.item(k) for part in parts]))

    def reversed(self, value: Value, /) -> ItemRange:
        """Trace ``reversed(value)``."""
        if isinstance(value, ItemRange) and value.iterator:
            raise self.scope.fail("reversed of an iterator")
        steps = self._from_zero(value)
        return ItemRange(0, steps.stop, 1, lambda k: steps.item(self._at(steps.stop - 1, k, -1)))

    def _from_zero(self, value: Value) -> ItemRange:
        """Return the same items as ones of a range from 0 with step 1."""
        steps = self.items(value)
        start, step = steps.start, steps.step
        count = run_length(self.scope, start, steps.stop, step)

        return ItemRange(0, count, 1, lambda k: steps.item(self._at(start, k, step)))

    def _at(self, start: Dim, k: Value, step: int = 1) -> Value:
        """Trace ``start + k * step``; the counter ``k`` is known exactly or at run time only."""
        if not isinstance(k, Data):
            return start + k * step
        return self.math.binary("+", start, k if step == 1 else self.math.binary("*", k, step))
