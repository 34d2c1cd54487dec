"""Tracing of ``for`` and ``while``: the body once for all iterations (`loop_carried`), or unrolled."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dcarray.core.errors import Untraceable
from dcarray.ir import dims
from dcarray.ir.integers import Expression
from dcarray.ir.nodes import Dim, Load, Loop, While

from ..operations.indexing import run_length
from ..operations.tables import listed
from ..operations.values import (
    Data,
    GrownList,
    ItemRange,
    RangeProduct,
    Row,
    RuntimeRange,
    Stack,
    Unbound,
    Value,
    is_array,
)
from ..syntax.exits import has_break
from ..syntax.liveness import live_in_loop
from ..syntax.purity import reads_first
from ..syntax.syntax_facts import Names, stores
from ..syntax.waiting import ends_by_itself
from .branches import FALLS_THROUGH
from .carried_tuples import CarriedTuples
from .expressions import MOST_UNROLLED, Frame
from .loop_carried import MAX_UNROLLED, FirstDiffers, LoopBodies, PermutedNames

_MOST_TRACED_SINGLY = 4  # iterations that are traced one by one rather than the first by itself
_MAX_PEELED = 6
_ATTEMPTS = 16  # how often a loop is unrolled because its body cannot be traced once
_BOOL = np.dtype(np.bool_)


class LoopStatements(LoopBodies):
    """Tracing of loops."""

    outermost: ast.stmt | None = None  # the loop of the site, of which it is known that it runs at least once
    start: Dim | None = None  # where it begins, if not at the start of its range
    _attempts = 0
    _peeled = 0  # loops whose first iteration was traced by itself

    def loop(self, stmt: ast.For | ast.While, frame: Frame, after: Names) -> None:
        if stmt.orelse:
            raise self.scope.fail(
                "a loop has an else: set a flag before its break, and test it after the loop"
            )
        if isinstance(stmt, ast.While):
            self._while(stmt, frame, after)
            return
        if isinstance(stmt.iter, ast.Attribute) and stmt.iter.attr == "flat":
            items = self._flat(stmt.iter, frame)
        else:
            items = listed(self.evaluate(stmt.iter, frame))
        if isinstance(items, GrownList):
            grown = items.items
            items = RuntimeRange(0, items.count, 1, lambda k: self.lists.getitem(grown, k))
        if isinstance(items, Row | Stack):
            items = self.items_of(items)
        if self.start is not None and stmt is self.outermost:
            items = self._resumed(items, self.start)
        if isinstance(items, RangeProduct):
            self._range_product(stmt, items, frame, after)
            return
        if has_break(stmt) and not isinstance(items, RuntimeRange):
            steps = self.calls.iterables.items(items)
            items = RuntimeRange(steps.start, steps.stop, steps.step, steps.item)
        if isinstance(items, RuntimeRange):
            self._runtime_range(stmt, items, frame, after)
            return
        if isinstance(items, tuple | list):
            if len(items) > MOST_UNROLLED:
                raise self.scope.fail("a loop over many objects")
            self._unrolled(stmt, list(items), frame, after)
            return
        steps = self.calls.iterables.items(items)
        start, stop, step = steps.start, steps.stop, steps.step
        runs = self._runs(steps)
        if runs is None and self.scope.loops_run:
            runs = True if self.scope.need_nonneg((stop - start if step > 0 else start - stop) - 1) else None
        if runs is False:
            return
        last: Dim | None = None
        if type(start) is int and type(stop) is int:
            last = range(start, stop, step)[-1]
        elif abs(step) == 1:
            last = dims.simplify(stop - step)
        if runs and last is not None and self.scope.eq(start, last) is True:
            self._unrolled(stmt, [start], frame, after, steps.item)
        else:
            self._for(stmt, steps, last, runs, frame, after)

    def reduced(self, args: list[Value], node: ast.expr, frame: Frame) -> Value:
        """Trace ``functools.reduce(function, items, first)`` as a loop."""
        if not 2 <= len(args) <= 3:
            raise self.scope.fail("arguments that are not understood")
        function, items, *firsts = args
        if not firsts:
            steps = self.calls.iterables.items(items)
            if not self.scope.need_le(1, run_length(self.scope, steps.start, steps.stop, steps.step)):
                raise self.scope.fail("a reduction of something that may be empty")
            firsts = [steps.item(steps.start)]
            items = replace(steps, start=dims.simplify(steps.start + steps.step))
        names = [
            f"{node.lineno}:{node.col_offset} {part}" for part in ("function", "items", "item", "result")
        ]
        called, given, item, result = [ast.Name(name, ast.Load()) for name in names]
        frame.names.update(
            zip(names, (function, items, None, self._stored(firsts[0], names[3])), strict=True)
        )
        update = ast.Assign([ast.Name(names[3], ast.Store())], ast.Call(called, [result, item], []))
        loop = ast.For(ast.Name(names[2], ast.Store()), given, [update], [])
        for one in ast.walk(loop):
            if isinstance(one, ast.stmt | ast.expr):
                ast.copy_location(one, node)
        self.loop(loop, frame, frozenset(names[3:]))
        value = self._name(names[3], frame)
        for name in names:
            frame.names.pop(name, None)
        return value

    def _flat(self, iterable: ast.Attribute, frame: Frame) -> Value:
        """Return the items of a loop over ``x.flat``.  A ``flat`` with a name is an iterator, of which a
        second loop gets the rest only."""
        value = self.evaluate(iterable.value, frame)
        if not isinstance(value, Data) or not is_array(value) or not value.shape:
            raise self.scope.fail("the attribute flat of something that is not an array")
        stored = self.memory.array(value)
        if len(stored.shape) == 1:
            return stored
        return RangeProduct(tuple([ItemRange(0, size, 1) for size in stored.shape]), array=stored)

    def _resumed(self, items: Value, start: Dim) -> ItemRange:
        """Return what is left of a loop that Python has begun: its range from the index ``start`` on."""
        if not isinstance(items, ItemRange):
            raise self.scope.fail("it is not known where in its items a loop is that has already begun")
        low, high = (items.start, items.stop - 1) if items.step > 0 else (items.stop + 1, items.start)
        if not (self.scope.need_le(low, start) and self.scope.need_le(start, high)):
            raise self.scope.fail("it is not known where in its range a loop is that has already begun")
        return replace(items, start=start)

    def _runs(self, steps: ItemRange | RuntimeRange) -> bool | None:
        """Whether a loop over a range runs at least once."""
        if isinstance(steps, RuntimeRange):
            return None
        first, last = (steps.start, steps.stop) if steps.step > 0 else (steps.stop, steps.start)
        return self.scope.lt(first, last)

    def _has_run(self, steps: ItemRange) -> Data | None:
        """Return at run time whether a loop runs at least once, if that depends on loops around it."""
        ends = (steps.start, steps.stop) if steps.step > 0 else (steps.stop, steps.start)
        names = frozenset[str]().union(*[end.names for end in ends if isinstance(end, Expression)])
        if names <= self.scope.sizes.keys():  # one plan is for sizes with which it runs
            return None
        runs = self.math.binary("<", *ends)
        return runs if isinstance(runs, Data) else None

    def _range_product(self, stmt: ast.For, product: RangeProduct, frame: Frame, after: Names) -> None:
        """Trace ``for i, j in dc.map[0:M, 0:N]`` and the like as a nest of loops."""
        if has_break(stmt):
            raise self.scope.fail("a break out of a loop over the places of several axes")
        if any(self._runs(steps) is False for steps in product.ranges):
            return
        # The names of ranges and counters are no names of the program; a body may change its own names.
        array = f"{stmt.lineno}:{stmt.col_offset} array"
        ranges = [f"{stmt.lineno}:{stmt.col_offset} range {k}" for k in range(len(product.ranges))]
        single = len(ranges) == 1 and not product.tuples
        targets = [] if product.array is not None else _names_of_axes(stmt, len(ranges), single)
        counters = targets or [f"{stmt.lineno}:{stmt.col_offset} index {k}" for k in range(len(ranges))]
        body = stmt.body
        if not targets:
            items: list[ast.expr] = [ast.Name(name, ast.Load()) for name in counters]
            item = items[0] if single else ast.Tuple(items, ast.Load())
            if product.array is not None:
                frame.names[array] = product.array
                item = ast.Subscript(ast.Name(array, ast.Load()), item, ast.Load())
            body = [ast.Assign([stmt.target], item), *body]
        for counter, name in reversed([*zip(counters, ranges, strict=True)]):
            loop = ast.For(ast.Name(counter, ast.Store()), ast.Name(name, ast.Load()), body, [])
            body = [loop]
        for node in ast.walk(loop):
            if isinstance(node, ast.stmt | ast.expr) and not hasattr(node, "lineno"):
                ast.copy_location(node, stmt)
        frame.names.update(zip(ranges, product.ranges, strict=True))
        self.loop(loop, frame, after)
        for name in (*ranges, array, *(() if targets else counters)):
            frame.names.pop(name, None)
        if not all(self._runs(steps) for steps in product.ranges):  # an outer loop may run, and the inner not
            for name in stores(stmt.target) & after:
                frame.names[name] = Unbound(f"{name} may not be bound")

    def _unrolled(
        self, stmt: ast.For, items: list[Value], frame: Frame, after: Names,
        item: Callable[[Value], Value] = lambda value: value,
    ) -> None:  # fmt: skip
        again = after | live_in_loop(stmt.body, after)
        for k, value in enumerate(items):
            self.assign_target(stmt.target, item(value), frame)
            self._body(stmt, frame, again if k < len(items) - 1 else after)

    def _body(self, stmt: ast.For | ast.While, frame: Frame, after: Names) -> None:
        if self.block(stmt.body, frame, after) is not FALLS_THROUGH:
            raise self.scope.fail("a return inside of a loop")

    def _one_iteration(self, stmt: ast.For | ast.While, frame: Frame, after: Names) -> bool | Data:
        """Trace the body of a loop once; returns whether a ``break`` has ended it."""
        flag, outer = f"{stmt.lineno}:{stmt.col_offset} broken", frame.break_flag  # no name of the program
        frame.names[flag], frame.break_flag = False, flag
        self._body(stmt, frame, after | {flag})
        frame.break_flag = outer
        broken = frame.names.pop(flag)
        if isinstance(broken, Unbound):
            raise self.scope.fail(broken.reason)
        return self.math.truth(broken)

    # ---- for and while ------------------------------------------------------------------------------
    def _for(
        self, stmt: ast.For, steps: ItemRange, last: Dim | None, runs: bool | None, frame: Frame, after: Names
    ) -> None:
        """Trace a loop over a range whose iterations are alike, alike with some period, or few."""
        iterations = None
        if type(steps.start) is type(steps.stop) is int:
            iterations = range(steps.start, steps.stop, steps.step)
        checkpoint, before, line = self.memory.checkpoint(), dict(frame.names), self.scope.line
        try:
            self._symbolic(stmt, steps, last, runs, frame, after)
            return
        except PermutedNames as error:
            period, reason = error.period, error.reason
        except Untraceable as error:
            period, reason = 0, error
        peeled = isinstance(reason, FirstDiffers) and runs is True and self._peeled < _MAX_PEELED
        if peeled and not (iterations is not None and len(iterations) <= _MOST_TRACED_SINGLY):
            self.memory.restore(checkpoint)
            frame.names, self.scope.line, self.memory.file = before, line, frame.file
            self._peeled += 1
            self._peel(stmt, steps, last, frame, after)
            return
        if iterations is None or (
            not period and (len(iterations) > MAX_UNROLLED or self._attempts >= _ATTEMPTS)
        ):
            raise reason
        self.memory.restore(checkpoint)
        frame.names, self.scope.line, self.memory.file = before, line, frame.file
        whole = len(iterations) // period if period else 0
        if whole:
            count = whole * period
            part = ItemRange(
                iterations[0], iterations[0] + count * steps.step, steps.step * period, steps.item
            )
            later = after | live_in_loop(stmt.body, after)
            end = iterations[(whole - 1) * period]
            self._symbolic(stmt, part, end, True, frame, later, [steps.step * k for k in range(period)])
            iterations = iterations[count:]
        self._attempts += not period
        try:
            self._unrolled(stmt, list(iterations), frame, after, steps.item)
        except Untraceable:
            raise reason from None

    def _peel(self, stmt: ast.For, steps: ItemRange, last: Dim | None, frame: Frame, after: Names) -> None:
        """Trace the first iteration of a loop by itself, and then the others."""
        self._unrolled(stmt, [steps.start], frame, after | live_in_loop(stmt.body, after), steps.item)
        others = replace(steps, start=dims.simplify(steps.start + steps.step))
        if (runs := self._runs(others)) is not False:
            self._for(stmt, others, last, runs, frame, after)

    def _symbolic(
        self, stmt: ast.For, steps: ItemRange, last: Dim | None, runs: bool | None, frame: Frame,
        after: Names, offsets: Sequence[int] = (0,),
    ) -> None:  # fmt: skip
        """Trace a loop over a range, whose body is one iteration of the program for each of the offsets."""
        target, loc = stmt.target, self.memory.loc
        bound = stores(target)
        head = live_in_loop(stmt.body, after) - bound
        bounds = (steps.start, steps.stop, steps.step)
        with self.memory.variable(target.id if isinstance(target, ast.Name) else "turn") as var:
            symbol = dims.symbol(var, None)

            def body() -> None:
                for offset in offsets:
                    self.assign_target(target, steps.item(symbol + offset), frame)
                    self._body(stmt, frame, after | head)

            known = type(steps.start) is type(steps.stop) is int
            count = len(range(steps.start, steps.stop, steps.step)) if known else 0
            ran = self._has_run(steps) if runs is None else None
            inside = stores(*stmt.body)
            tuples = CarriedTuples(frame, inside & (head | after), self.scope)
            later, inside = tuples.parts(after), tuples.parts(inside)
            with self.scope.loop(var, *dims.loop_range(*bounds)):
                iteration, loop = self.trace_body(
                    inside, tuples.parts(head), tuples.around(body), frame, later, runs, count, ran
                )
        if iteration.block:
            self.memory.emit(Loop(var, bounds, tuple(iteration.block), loc=loc))
        ends = None if last is None else {var: last}
        self.leave(iteration, loop, inside | bound, later, ends)
        tuples.gather()
        self.memory.forget(var)

    def _while(self, stmt: ast.While, frame: Frame, after: Names) -> None:
        state = self.begun()
        first = self.condition(stmt.test, frame)
        asked = stmt is self.outermost and self.request.asked
        if asked:
            self.check_effects(state, "a condition that the program has computed")
        if first is False:
            return
        if not ends_by_itself(stmt):
            raise self.scope.fail("the end of a loop depends on nothing that it changes")
        line, test = self.scope.line, reads_first(stmt.test)
        head = live_in_loop(stmt.body, after | test)

        def body() -> Value:
            broken = self._one_iteration(stmt, frame, after | test | head)
            self.scope.line = line
            if broken is True:
                return False
            if isinstance(broken, Data):  # after a break Python does not evaluate the test
                unbroken = self.math.negation(broken)
                assert isinstance(unbroken, Data)
                return self.conditional(unbroken, True, stmt.test, frame, True)
            again = self.condition(stmt.test, frame)
            if again is True:
                raise self.scope.fail("a loop does not end")
            return again

        runs = True if first is True or asked else None
        self._while_true(first, stores(*stmt.body, stmt.test), head, body, frame, after, runs)

    def _runtime_range(self, stmt: ast.For, span: RuntimeRange, frame: Frame, after: Names) -> None:
        """Trace a loop over a range whose ends are known at run time only."""
        counter = f"{stmt.lineno}:{stmt.col_offset}"  # no name of the program
        up = type(span.step) is not int or span.step > 0
        bound = stores(*stmt.body, stmt.target) | {counter}
        head = (live_in_loop(stmt.body, after) - stores(stmt.target)) | {counter}

        def stop() -> Value:
            return self.math.length(span.stop) if isinstance(span.stop, Stack) else span.stop

        ends = [*self.math.limits(span.start), *self.math.limits(stop())]
        limits = (ends[0], ends[3] - 1) if up else (ends[2] + 1, ends[1])

        def more() -> Value:
            return self.math.truth(self.math.binary("<" if up else ">", frame.names[counter], stop()))

        def body() -> Value:
            at = frame.names[counter]
            position = self.memory.value(at.expr, scalar=True, weak=int, limits=limits)
            self.assign_target(stmt.target, span.item(position), frame)
            broken = self._one_iteration(stmt, frame, after | head)
            frame.names[counter] = self._stored(self.math.binary("+", position, span.step), counter)
            if broken is True:
                return False
            again = more()
            return self._and(again, self.math.negation(broken))

        frame.names[counter] = span.start
        first = more()
        if first is not False:
            self._while_true(first, bound, head, body, frame, after, True if first is True else None)
        frame.names.pop(counter, None)

    def _while_true(
        self, first: Value, bound: Names, head: Names, body: Callable[[], Value], frame: Frame, after: Names,
        runs: bool | None,
    ) -> None:  # fmt: skip
        """Emit a loop that runs as long as its body returns true; ``first`` is the condition before it."""
        loc = self.memory.loc
        ran = first if runs is None and isinstance(first, Data) else None
        if ran is not None:
            self.memory.store(ran)
        going = self.memory.new((), _BOOL, "going")
        self.memory.write(going, self.math.expr(first, _BOOL))

        tuples = CarriedTuples(frame, bound & (head | after), self.scope)
        bound, head, after = [tuples.parts(names) for names in (bound, head, after)]
        body = tuples.around(body)

        def iterate() -> None:
            again = body()
            if self.memory.checks_passed is not None:
                sound = Load(self.memory.checks_passed, _BOOL)
                again = self._and(again, self.memory.value(sound, scalar=True, weak=bool))
            self.memory.write(
                going, self.math.expr(again, _BOOL), *[again] if isinstance(again, Data) else []
            )

        try:
            iteration, loop = self.trace_body(bound, head, iterate, frame, after, runs, ran=ran)
        except PermutedNames as error:
            raise error.reason from None
        self.memory.emit(While(Load(going, _BOOL), tuple(iteration.block), loc=loc))
        self.leave(iteration, loop, bound, after, {})
        tuples.gather()


def _names_of_axes(stmt: ast.For, count: int, single: bool) -> list[str]:
    """Return the targets of a loop over the indices of an array's ``count`` axes, as ``i`` and ``j`` in ``for
    i, j in np.ndindex(n, m)``; none if the loop has other targets, or assigns to them in its body."""
    if single == isinstance(stmt.target, ast.Tuple | ast.List):
        return []
    parts = [stmt.target] if single else getattr(stmt.target, "elts", [])
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    whole = len(parts) == len(names) == len(set(names)) == count
    return names if whole and stores(*stmt.body).isdisjoint(names) else []
