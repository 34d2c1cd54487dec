"""Tracing of lists that grow and shrink at their end: ``append``, ``pop()``, elements and the length.

Such a list is memory with room for many numbers, and a count.  When it is full, a check fails, and Python
runs the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from dcarray.ir.nodes import Apply, Expr, Load
from dcarray.ir.ops import const

from ..operations.values import (
    INT_OR_FLOAT,
    Data,
    NumberList,
    Row,
    RuntimeRange,
    Stack,
    Value,
    is_array,
    is_number,
    kind_of,
)
from .expressions import Frame
from .statements import Statements

__all__ = ["ROOM", "Stacks"]

ROOM = 1 << 20
"""Numbers for which such a list has room, besides those that it begins with: memory that is not touched costs
nothing."""
_I8, _BOOL = np.dtype(np.int64), np.dtype(np.bool_)


class Stacks(Statements):
    """Tracing of lists that grow and shrink; the subclasses add loops."""

    def perhaps_stack(self, value: Value, node: ast.expr, frame: Frame) -> Value:
        """Return a newly made list as a list that grows, if it holds numbers; else as it is."""
        origin = f"{frame.file}:{frame.line + node.lineno}:{node.col_offset}"
        if isinstance(value, NumberList):
            return (
                value
                if value.array.entry_name or len(value.array.shape) > 1
                else self.stack_of(value, origin)
            )
        if not isinstance(value, list):
            return value
        kind = self._kind_of(value, origin)
        return value if kind is None else self._filled(value, kind, origin)

    def stack_of(self, items: Value, origin: str) -> Stack:
        """Return a list that grows, with the numbers of another one."""
        if isinstance(items, list):
            return self._filled(items, self.lists.kinds.get(origin, int), origin)
        if not isinstance(items, NumberList) or len(items.array.shape) > 1:
            raise self.scope.fail("a list that grows holds other things than numbers")
        count = items.array.shape[0]
        kind = self.lists.kinds.get(origin, items.kind)
        room = self.lists.new((count + ROOM,), kind, origin)
        stack = Stack(room, self.memory.new((), _I8, "count"), True)
        if kind == items.kind:
            begin = self.arrays.element(room.array, slice(0, count))
            self.arrays.assign(begin, items.array)
        else:
            self.lists.want(origin, kind)
            raise self.scope.fail("a list of ints gets floats: append float(x) from the start")
        self.memory.write(stack.count, self.math.expr(count, _I8))
        return stack

    def _kind_of(self, values: Sequence[Value], origin: str) -> Any:
        """Return the `kind_of` numbers; None if they are no numbers of one type, or of ints and floats."""
        if origin in self.lists.kinds:
            return self.lists.kinds[origin]
        kinds = {kind_of(one) for one in values}
        if not all(kind_of(one) == INT_OR_FLOAT or (is_number(one) and not is_array(one)) for one in values):
            return None
        if len(kinds) > 1:
            return INT_OR_FLOAT if kinds <= {int, float, INT_OR_FLOAT} else None
        return kinds.pop() if kinds else int

    def _filled(self, values: Sequence[Value], kind: Any, origin: str) -> Stack:
        room = self.lists.new((max(len(values), 1) + ROOM,), kind, origin)
        stack = Stack(room, self.memory.new((), _I8, "count"), bool(values) or origin in self.lists.kinds)
        if not values:  # what is read is written before
            first = self.arrays.element(room.array, 0)
            assert first.window is not None
            self.memory.write(first.window, const(0, first.dtype))
        for k, value in enumerate(values):
            self.setitem(room, k, value, False)
        self.memory.write(stack.count, const(len(values), _I8))
        return stack

    def items_of(self, x: Row | Stack) -> RuntimeRange:
        """Return the items of a loop over a list, which may change during the loop."""
        end = x.length if isinstance(x, Row) else x
        return RuntimeRange(0, end, 1, lambda k: self.lists.getitem(x.items, self.place_of(x, k)))

    # ---- operations ---------------------------------------------------------------------------------
    def append(self, stack: Stack, value: Value) -> None:
        """Trace ``stack.append(value)``."""
        kind, origin = kind_of(value), stack.items.origin
        if kind != INT_OR_FLOAT and (not is_number(value) or is_array(value)):
            raise self.scope.fail("it appends something that is not a number to a list")
        if not stack.is_typed:
            self.lists.want(origin, kind)
            raise self.scope.fail("the type of the items that it appends is not known")
        if isinstance(value, Data) and not isinstance(value.expr, Load):
            self.memory.store(value)
        count = self.math.length(stack)
        self.setitem(stack.items, count, value, False)
        self.memory.write(stack.count, Apply("add", (Load(stack.count, _I8), const(1, _I8)), _I8))

    def pop(self, stack: Stack) -> Value:
        """Trace ``stack.pop()``."""
        count = Load(stack.count, _I8)
        last = Apply("subtract", (count, const(1, _I8)), _I8)
        place = self._place(Apply("greater", (count, const(0, _I8)), _BOOL), last, stack)
        number = self.stored_number(self.lists.getitem(stack.items, place))
        self.memory.write(stack.count, place.expr)
        return number

    def place_of(self, x: Stack | Row, key: Value) -> Data:
        """Return the index of ``x[key]`` in the list's memory, with a check that the item exists."""
        self.lists.check_key(key)
        if isinstance(key, Data) and key.dtype.kind == "u":  # with a check: as an int64 it may be negative
            key = self.math.as_counter(key)
        given: Expr = self.math.expr(key, _I8)
        count, zero = self.math.length(x).expr, const(0, _I8)
        low, high = self.math.limits(key)
        if low < 0:
            there = Apply("add", (given, count), _I8)
            below = Apply("less", (given, zero), _BOOL)
            given = there if high < 0 else Apply("where", (below, there, given), _I8)
        fits = Apply("less", (given, count), _BOOL)
        if low < 0:
            fits = Apply("logical_and", (fits, Apply("greater_equal", (given, zero), _BOOL)), _BOOL)
        if isinstance(x, Row):
            given = Apply("add", (x.start.expr, given), _I8)
        return self._place(fits, given, x)

    def _place(self, fits: Expr, place: Expr, x: Stack | Row) -> Data:
        """Return a place in the memory of a list, with a check."""
        safe = Apply("where", (fits, place, const(0, _I8)), _I8)
        limits = 0, self.scope.limits(x.items.array.shape[0])[1] - 1
        index = self.memory.value(Apply("checked", (fits, safe), _I8), scalar=True, weak=int, limits=limits)
        self.memory.may_raise = True
        self.memory.store(index, "at")
        return index
