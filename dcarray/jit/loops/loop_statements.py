"""Loops of the program: what is traced once stands for all turns; `homes` has what passes between these."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import numpy as np

from dcarray.core.errors import Untraceable
from dcarray.ir import dims
from dcarray.ir.nodes import Dim, Load, Loop, While

from .bindings import Names, assigned, breaks, in_turns, read
from .carried import Permuted
from .expressions import Frame
from .loop_carried import FEW, Homes
from .statements import GOING
from .values import Data, Missing, Span, Steps, Value

_UNROLLED = 64
_ATTEMPTS = 16  # how often it is tried to trace turns one by one
_BOOL = np.dtype(np.bool_)


class Turns(Homes):
    """Executes loops."""

    outermost: ast.stmt | None = None  # who asks has seen that it runs
    _attempts = 0

    def loop(self, stmt: ast.For | ast.While, frame: Frame, after: Names) -> None:
        if stmt.orelse:
            raise self.scope.fail("a loop has an else")
        if isinstance(stmt, ast.While):
            self._while(stmt, frame, after)
            return
        items = self.evaluate(stmt.iter, frame)
        if isinstance(items, Span):
            self._counting(stmt, items, frame, after)
            return
        if breaks(stmt):
            self._counting(stmt, self.calls.series.counted(items), frame, after)
            return
        if isinstance(items, tuple | list):
            if len(items) > _UNROLLED:
                raise self.scope.fail("a loop over many objects")
            self._unrolled(stmt, list(items), frame, after)
            return
        steps = self.calls.series.of(items)
        start, stop, step = steps.start, steps.stop, steps.step
        runs = self.scope.lt(start, stop) if step > 0 else self.scope.lt(stop, start)
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

    def _unrolled(
        self, stmt: ast.For, items: list[Value], frame: Frame, after: Names,
        item: Callable[[Value], Value] = lambda value: value,
    ) -> None:  # fmt: skip
        again = after | in_turns(stmt.body, after)
        for k, value in enumerate(items):
            self.put(stmt.target, item(value), frame)
            self._body(stmt, frame, again if k < len(items) - 1 else after)

    def _body(self, stmt: ast.For | ast.While, frame: Frame, after: Names) -> None:
        if self.block(stmt.body, frame, after) is not GOING:
            raise self.scope.fail("a return inside of a loop")

    def _one_turn(self, stmt: ast.For | ast.While, frame: Frame, after: Names) -> bool | Data:
        """Execute the body of a loop; has a break ended it?"""
        flag, outer = f"{stmt.lineno}:{stmt.col_offset} broken", frame.broken  # a name that programs have not
        frame.names[flag], frame.broken = False, flag
        self._body(stmt, frame, after | {flag})
        frame.broken = outer
        broken = frame.names.pop(flag)
        if isinstance(broken, Missing):
            raise self.scope.fail(broken.reason)
        return self.math.truth(broken)

    # ---- for and while ------------------------------------------------------------------------------
    def _for(
        self, stmt: ast.For, steps: Steps, last: Dim | None, runs: bool | None, frame: Frame, after: Names
    ) -> None:
        """A loop whose turns are all alike, or take turns in being so, or are few."""
        turns = None
        if type(steps.start) is type(steps.stop) is int:
            turns = range(steps.start, steps.stop, steps.step)
        mark, before, line = self.memory.mark(), dict(frame.names), self.scope.line
        try:
            self._symbolic(stmt, steps, last, runs, frame, after)
            return
        except Permuted as found:
            period, reason = found.period, found.reason
        except Untraceable as found:
            period, reason = 0, found
        if turns is None or (not period and (len(turns) > FEW or self._attempts >= _ATTEMPTS)):
            raise reason
        self.memory.back(mark)
        frame.names, self.scope.line, self.memory.file = before, line, frame.file
        whole = len(turns) // period if period else 0
        if whole:
            count = whole * period
            part = Steps(turns[0], turns[0] + count * steps.step, steps.step * period, steps.item)
            later = after | in_turns(stmt.body, after)
            end = turns[(whole - 1) * period]
            self._symbolic(stmt, part, end, True, frame, later, [steps.step * k for k in range(period)])
            turns = turns[count:]
        self._attempts += not period
        try:
            self._unrolled(stmt, list(turns), frame, after, steps.item)
        except Untraceable:
            raise reason from None

    def _symbolic(
        self, stmt: ast.For, steps: Steps, last: Dim | None, runs: bool | None, frame: Frame, after: Names,
        offsets: Sequence[int] = (0,),
    ) -> None:  # fmt: skip
        """A loop over a range, with one turn of the program's for each of the offsets."""
        target, loc = stmt.target, self.memory.loc
        bound = assigned([target])
        head = in_turns(stmt.body, after) - bound
        bounds = (steps.start, steps.stop, steps.step)
        with self.memory.variable(target.id if isinstance(target, ast.Name) else "turn") as var:
            symbol = dims.symbol(var, None)

            def body() -> None:
                for offset in offsets:
                    self.put(target, steps.item(symbol + offset), frame)
                    self._body(stmt, frame, after | head)

            known = type(steps.start) is type(steps.stop) is int
            count = len(range(steps.start, steps.stop, steps.step)) if known else 0
            with self.scope.loop(var, *dims.loop_range(*bounds)):
                turn, loop = self.carry(assigned(stmt.body), head, body, frame, after, runs, count)
        if turn.block:
            self.memory.emit(Loop(var, bounds, tuple(turn.block), loc=loc))
        ends = None if last is None else {var: last}
        self.leave(turn, loop, assigned(stmt.body) | bound, after, ends)

    def _while(self, stmt: ast.While, frame: Frame, after: Names) -> None:
        first = self.condition(stmt.test, frame)
        if first is False:
            return
        line, test = self.scope.line, read(stmt.test)
        head = in_turns(stmt.body, after | test)

        def body() -> Value:
            broken = self._one_turn(stmt, frame, after | test | head)
            self.scope.line = line
            if broken is True:
                return False
            if isinstance(broken, Data):  # Python asks no more
                unbroken = self.math.negation(broken)
                assert isinstance(unbroken, Data)
                return self.asked(unbroken, True, stmt.test, frame, True)
            again = self.condition(stmt.test, frame)
            if again is True:
                raise self.scope.fail("a loop does not end")
            return again

        runs = True if first is True or stmt is self.outermost else None
        self._going(first, assigned(stmt.body), head, body, frame, after, runs)

    def _counting(self, stmt: ast.For, span: Span, frame: Frame, after: Names) -> None:
        """A loop over a range of which only a run can tell the ends."""
        counter = f"{stmt.lineno}:{stmt.col_offset}"  # a name that the program has not
        stop, up = span.stop, span.step > 0
        bound = assigned([*stmt.body, stmt.target]) | {counter}
        head = (in_turns(stmt.body, after) - assigned([stmt.target])) | {counter}
        ends = [*self.math.limits(span.start), *self.math.limits(stop)]
        limits = (ends[0], ends[3] - 1) if up else (ends[2] + 1, ends[1])

        def more() -> Value:
            return self.math.truth(self.math.binary("<" if up else ">", frame.names[counter], stop))

        def body() -> Value:
            at = frame.names[counter]
            here = self.memory.value(at.expr, scalar=True, weak=int, limits=limits)
            self.put(stmt.target, span.item(here), frame)
            broken = self._one_turn(stmt, frame, after | head)
            frame.names[counter] = self._named(self.math.binary("+", here, span.step), counter)
            if broken is True:
                return False
            again = more()
            return self._and(again, self.math.negation(broken))

        frame.names[counter] = span.start
        first = more()
        if first is not False:
            self._going(first, bound, head, body, frame, after, True if first is True else None)
        frame.names.pop(counter, None)

    def _going(
        self, first: Value, bound: Names, head: Names, body: Callable[[], Value], frame: Frame, after: Names,
        runs: bool | None,
    ) -> None:  # fmt: skip
        """A loop that goes on as long as its body says so; ``first`` is whether it begins."""
        loc = self.memory.loc
        going = self.memory.new((), _BOOL, "going")
        self.memory.write(going, self.math.expr(first, _BOOL))

        def turn_() -> None:
            again = body()
            if self.memory.sound is not None:
                sound = Load(self.memory.sound, _BOOL)
                again = self._and(again, self.memory.value(sound, scalar=True, weak=bool))
            self.memory.write(
                going, self.math.expr(again, _BOOL), *[again] if isinstance(again, Data) else []
            )

        try:
            turn, loop = self.carry(bound, head, turn_, frame, after, runs)
        except Permuted as found:
            raise found.reason from None
        self.memory.emit(While(Load(going, _BOOL), tuple(turn.block), loc=loc))
        self.leave(turn, loop, bound, after, {})
