"""Data-dependent indexing: ``x[i]`` with an array of integers, an element of one, or a run-time Python int.

Indices are checked at run time: one out of bounds is clamped, and raises the floating-point flag of an
invalid operation, upon which the loop runs in Python, which raises the error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np

from dcarray.ir.analysis.data_dependent import at_index
from dcarray.ir.dims import loop_range, symbol
from dcarray.ir.nodes import Apply, Compute, Dim, Expr, Gather, Iota, Load, Window
from dcarray.ir.ops import const

from .arithmetic import Operations
from .indexing import proved_position, select
from .values import Data, Shape, Value, cast, is_int

_I8, _F8, _BOOL = np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.bool_)


class Gathers(Operations):
    """Reads and writes at data-dependent indices."""

    def is_data_dependent(self, key: Value) -> bool:
        """Whether a key has an integer array or run-time integer, and is basic otherwise."""
        keys = key if type(key) is tuple else (key,)
        dynamic = [isinstance(k, Data) and k.weak in (None, int) and k.dtype.kind in "iu" for k in keys]
        plain = all(f or is_int(k) or isinstance(k, slice) for f, k in zip(dynamic, keys, strict=True))
        return any(dynamic) and plain

    def with_run_time_ints(self, x: Data, key: Value) -> Value:
        """Return the key, in which loop variables that are negative in some iterations only (where they count
        from the end) are run-time ints."""
        keys = key if type(key) is tuple else (key,)
        if len(keys) > len(x.shape) or not all(is_int(k) or isinstance(k, slice | Data) for k in keys):
            return key
        indices = tuple(map(self._run_time_int, keys, x.shape))
        return indices if type(key) is tuple else indices[0]

    def _run_time_int(self, k: Value, size: Dim) -> Value:
        if not is_int(k) or type(k) is int or proved_position(self.scope, k, size) is not None:
            return k
        if not (self.scope.need_le(k, size - 1) and self.scope.need_le(-size, k)):
            return k  # which is refused
        limits = self.scope.limits(k)
        return self.memory.value(self.math.expr(k, _I8), scalar=True, weak=int, limits=limits)

    def gather(self, x: Data, key: Value) -> Data:
        """Trace ``x[key]``."""
        keys = list(key) if type(key) is tuple else [key]
        if len(keys) > len(x.shape):
            raise self.scope.fail("too many indices")
        keys += [slice(None)] * (len(x.shape) - len(keys))
        places = [n for n, k in enumerate(keys) if isinstance(k, Data) and k.shape]
        chosen = [n for n, k in enumerate(keys) if not isinstance(k, slice)]
        if places and chosen != list(range(chosen[0], chosen[-1] + 1)):
            raise self.scope.fail("arrays of indices apart from one another")
        if x.window is None:
            x = self.memory.array(x)
        spread = self.math.broadcast([k.shape for k in keys if isinstance(k, Data)])
        domain: list[Dim] = []
        at: list[tuple[int, Value]] = []
        for n, k in enumerate(keys):
            if places and n == chosen[0]:
                start = len(domain)
                domain += spread
            if isinstance(k, slice):
                (index,), (length,) = select(self.scope, x.shape[n : n + 1], k)
                at.append((len(domain), index))
                domain.append(length)
            else:
                at.append((start if places else 0, k))
        shape = tuple(domain)
        axes = [self._index_along(k, x.shape[n], place, shape, spread) for n, (place, k) in enumerate(at)]
        views_in_numpy = not places and len(chosen) < len(keys)
        return self.memory.value(
            self.at(x, axes, shape), shape, scalar=not shape, views_in_numpy=views_in_numpy
        )

    def _index_along(self, k: Value, size: Dim, place: int, domain: Shape, spread: Shape) -> Expr:
        """Return the index along one axis as an expression over the domain of the result."""
        if isinstance(k, Data):
            after = len(domain) - place - len(spread)
            full_rank = (*k.shape, *(1,) * after)
            return self.math.expand(
                self.math.append_axes(self.checked_index(k, size), k.shape, full_rank), full_rank, domain
            )
        if is_int(k):
            (index,), _ = select(self.scope, (size,), k)
            return self.math.expr(index.offset, _I8)
        value: Expr = Iota(place, _I8)
        if k.stride != 1:
            value = Apply("multiply", (value, const(k.stride, _I8)), _I8)
        return self._add_offset(value, k.offset)

    def _add_offset(self, value: Expr, offset: Dim) -> Expr:
        if type(offset) is int and offset == 0:
            return value
        return Apply("add", (value, self.math.expr(offset, _I8)), _I8)

    def checked_index(self, k: Data, size: Dim) -> Expr:
        """Return non-negative indices, clamped to the axis, with a check unless they are proved in bounds."""
        given = cast(k.expr, _I8)  # one of 64 bits without sign may be too large: it is negative then
        if not self.scope.need_nonneg(size - 1):
            raise self.scope.fail("an array of indices that is not understood")
        low, high = self.math.limits(k)
        if low >= 0 and self.scope.lt(high, size) is True:
            return given
        domain = k.shape
        count = self.math.expand(self.math.expr(size, _I8), (), domain)
        zero, one = const(0, _I8), const(1, _I8)
        value = given
        if k.dtype.kind != "u":
            below = Apply("less", (given, zero), _BOOL)
            value = Apply("where", (below, Apply("add", (given, count), _I8), given), _I8)
        last = Apply("subtract", (count, one), _I8)
        room = Apply("minimum", (value, Apply("subtract", (last, value), _I8)), _I8)
        checked = Apply("checked", (Apply("greater_equal", (room, zero), _BOOL), value), _I8)
        window = self.memory.new(domain, _I8, "at")
        self.memory.note_order(self.memory.view(window, _I8), k)
        self.memory.may_raise = True
        self.memory.emit(Compute(window, checked, loc=self.memory.loc))
        self.memory.immutable.add(window.array)
        return Apply("minimum", (Apply("maximum", (Load(window, _I8), zero), _I8), last), _I8)

    # ---- writing ------------------------------------------------------------------------------------
    def normalised_key(self, x: Data, key: Value) -> Value:
        """Return the key with its scalars stored, non-negative and in bounds."""
        keys = list(key) if type(key) is tuple else [key]
        if len(keys) > len(x.shape):
            raise self.scope.fail("too many indices")
        for n, k in enumerate(keys):
            if isinstance(k, Data) and not k.shape:
                place = self.memory.value(
                    self.checked_index(k, x.shape[n]), scalar=True, weak=int,
                    limits=(0, self.scope.limits(x.shape[n])[1] - 1),
                )  # fmt: skip
                self.memory.store(place, "at")
                keys[n] = place
        return tuple(keys)

    @contextmanager
    def write_at(self, x: Data, key: Value, *spent: Value) -> Iterator[Value]:
        """A context for statements that write at a normalised key.  It yields the key with loop variables in
        place of run-time scalars."""
        keys, loc = list(key), self.memory.loc
        if any(isinstance(k, Data) and k.shape for k in keys):
            raise self.scope.fail("an array of indices is written through")
        if x.window is not None:
            self.memory.protect_values(x.window, [v for v in spent if isinstance(v, Data) and not v.scalar])
        places: list[tuple[str, Dim, Expr]] = []
        with ExitStack() as stack:
            for n, k in enumerate(keys):
                if isinstance(k, Data):
                    var, size = stack.enter_context(self.memory.variable("at")), x.shape[n]
                    stack.enter_context(self.scope.loop(var, *loop_range(0, size, 1)))
                    places.append((var, size, k.expr))
                    keys[n] = symbol(var, None)
            body = stack.enter_context(self.memory.nested_block())
            yield tuple(keys)
        stmts = tuple(body)
        for var, size, place in reversed(places):
            stmts = (at_index(var, size, place, stmts, loc),)
        for stmt in stmts:
            self.memory.emit(stmt)

    # ---- elements -----------------------------------------------------------------------------------
    def element(self, x: Data, place: Expr) -> Expr:
        """Return an element of an array with one axis, at an index in bounds."""
        return self.at(x, [place], ())

    def at(self, x: Data, axes: list[Expr], domain: Shape) -> Expr:
        """Return a gather from the memory of ``x``, with an index expression for each of its axes."""
        window = x.window
        assert window is not None
        index: list[Expr] = []
        for ix in window.index:
            if ix.axis is None:
                index.append(self.math.expr(ix.offset, _I8))
                continue
            along = axes[ix.axis]
            if type(ix.stride) is not int or ix.stride != 1:
                along = Apply("multiply", (along, self.math.expr(ix.stride, _I8)), _I8)
            index.append(self._add_offset(along, ix.offset))
        return Gather(Window(window.array, domain, ()), tuple(index), x.dtype)
