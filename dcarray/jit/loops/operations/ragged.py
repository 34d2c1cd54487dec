"""Slices with run-time bounds, as rows of sparse matrices; only inner products of them are supported.

An inner product becomes a ``while`` loop of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dcarray.ir.nodes import Apply, Compute, Expr, Load, While
from dcarray.ir.ops import const
from dcarray.ir.windows import loads

from ..entry.entry_values import DType
from .arithmetic import Arithmetic, Operations
from .gathers import Gathers
from .values import Data, Ragged, Value, cast, is_int

_I8, _BOOL = np.dtype(np.int64), np.dtype(np.bool_)


class RaggedSlices(Operations):
    """Operations on slices of run-time length."""

    def __init__(self, math: Arithmetic, gathers: Gathers) -> None:
        super().__init__(math)
        self.gathers = gathers

    def is_slice(self, x: Data, key: Value) -> bool:
        """Whether the key is a slice of step 1 with a run-time bound."""
        if not isinstance(key, slice) or key.step not in (None, 1) or len(x.shape) != 1:
            return False
        ends = [k for k in (key.start, key.stop) if isinstance(k, Data)]
        plain = all(k.scalar and k.weak is None and k.dtype.kind in "iu" for k in ends)
        return bool(ends) and plain and all(k.dtype != np.uint64 for k in ends)

    def slice(self, x: Data, key: slice) -> Ragged:
        """Trace ``x[key]``."""
        if x.window is None:
            raise self.scope.fail("a slice of unknown length of a value that is not stored")
        self.memory.assumed_unwritten.add(x.window.array)  # NumPy makes a view
        size = self.math.expr(x.shape[0], _I8)
        zero = const(0, _I8)
        first, last = self._bound_value(key.start, zero, size), self._bound_value(key.stop, size, size)
        read = {node.window.array for end in (first, last) for node in loads(end)}
        self.memory.assumed_unwritten |= read - self.memory.immutable  # so that equal bounds are equal later
        start = self._stored(first)
        room = Apply("maximum", (Apply("subtract", (last, start.expr), _I8), zero), _I8)
        count = self._stored(room)

        def at(k: Expr) -> Expr:
            return self.gathers.element(x, Apply("add", (start.expr, k), _I8))

        return Ragged(x.dtype, count, (first, last), at)

    def _bound_value(self, k: Value, default: Expr, size: Expr) -> Expr:
        """Return a bound of a slice, non-negative and clamped as NumPy does."""
        if k is None:
            return default
        if not isinstance(k, Data) and not is_int(k):
            raise self.scope.fail("a slice's bounds are not integers")
        value = cast(k.expr, _I8) if isinstance(k, Data) else self.math.expr(k, _I8)
        zero = const(0, _I8)
        below = Apply("less", (value, zero), _BOOL)
        value = Apply("where", (below, Apply("add", (value, size), _I8), value), _I8)
        return Apply("minimum", (Apply("maximum", (value, zero), _I8), size), _I8)

    def _stored(self, expr: Expr) -> Data:
        value = self.memory.value(expr, scalar=True)
        self.memory.store(value)
        return value

    def gather(self, x: Data, key: Ragged) -> Ragged:
        """Trace ``x[key]``, with run-time checks of the indices."""
        if len(x.shape) != 1 or x.window is None or key.dtype.kind not in "iu":
            raise self.scope.fail("an index of unknown length")
        self.memory.assumed_unwritten.add(x.window.array)  # it is read later than in the program

        def at(k: Expr) -> Expr:
            place = self.memory.value(key.at(k), scalar=True)
            return self.gathers.element(x, self.gathers.checked_index(place, x.shape[0]))

        return Ragged(x.dtype, key.count, key.span, at)

    def dot(self, a: Value, b: Value) -> Data:
        """Trace ``a @ b``."""
        if not (isinstance(a, Ragged) and isinstance(b, Ragged)) or a.span != b.span:
            raise self.scope.fail("slices are not known to have one length")
        dtype = np.result_type(a.dtype, b.dtype)
        if dtype.char in "?eF":
            raise self.scope.fail(f"a product of {dtype} does not compile")
        return self._sum(
            lambda k: Apply("multiply", (cast(a.at(k), dtype), cast(b.at(k), dtype)), dtype), dtype, a.count
        )

    def _sum(self, at: Callable[[Expr], Expr], dtype: DType, count: Data) -> Data:
        memory, loc = self.memory, self.memory.loc
        total, counter = memory.new((), dtype, "total"), memory.new((), _I8, "k")
        memory.write(total, const(0, dtype))
        memory.write(counter, const(0, _I8))
        k = Load(counter, _I8)
        with memory.nested_block() as body:
            value = Apply("add", (Load(total, dtype), at(k)), dtype)
            memory.emit(Compute(total, value, loc=loc))
            memory.emit(Compute(counter, Apply("add", (k, const(1, _I8)), _I8), loc=loc))
        memory.emit(While(Apply("less", (k, count.expr), _BOOL), tuple(body), loc=loc))
        memory.immutable.add(total.array)
        return memory.value(Load(total, dtype), scalar=True)
