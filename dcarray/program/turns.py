"""Loops of the program: what is traced once stands for all turns.

A name whose value passes from one turn to the next has a *home*: memory that holds its value where a turn
begins.  What kind of value that is, is guessed from the value before the loop, and where a turn leaves
another kind, the body is traced again with that.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from math import lcm
from typing import Any

import numpy as np

from dcarray.ir import dims
from dcarray.ir.effects import writes
from dcarray.ir.nodes import Dim, Load, Loop, While

from .carried import COPIED, KEPT, TURNED, Carrying, Guess, Home, Permuted, Turn
from .expressions import Frame
from .known import DType, Untraceable
from .memory import Mark
from .names import Names, assigned, in_turns, read
from .statements import GOING, Statements, alike
from .substitute import with_constants
from .values import (  # fmt: skip
    PYTHON,
    Data,
    Missing,
    Steps,
    Value,
    is_array,
    is_number,
    kind_of,
    lies_in,
    settle,
    weak_dtype,
)

_UNROLLED = 64
_ROUNDS = 6
_FEW, _ATTEMPTS = 8, 16  # turns that may be traced one by one, and how often that is tried
_COUNT, _STEP = 1 << 52, 16  # a counter of Python's ints takes days to get there
_BOOL = np.dtype(np.bool_)


class Turns(Statements):
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
        if turns is None or (not period and (len(turns) > _FEW or self._attempts >= _ATTEMPTS)):
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
                turn, loop = self._carried(assigned(stmt.body), head, body, frame, after, runs, count)
        if turn.block:
            self.memory.emit(Loop(var, bounds, tuple(turn.block), loc=loc))
        ends = None if last is None else {var: last}
        self._leave(turn, loop, assigned(stmt.body) | bound, after, ends)

    def _while(self, stmt: ast.While, frame: Frame, after: Names) -> None:
        loc, line = self.memory.loc, self.scope.line
        first = self.condition(stmt.test, frame)
        if first is False:
            return
        runs = True if first is True or stmt is self.outermost else None
        going = self.memory.new((), _BOOL, "going")
        self.memory.write(going, self.math.expr(first, _BOOL))
        del first
        test = read(stmt.test)
        head = in_turns(stmt.body, after | test)

        def body() -> None:
            self._body(stmt, frame, after | test | head)
            self.scope.line = line
            again = self.condition(stmt.test, frame)
            if again is True:
                raise self.scope.fail("a loop does not end")
            self.memory.write(
                going, self.math.expr(again, _BOOL), *[again] if isinstance(again, Data) else []
            )

        try:
            turn, loop = self._carried(assigned(stmt.body), head, body, frame, after, runs)
        except Permuted as found:
            raise found.reason from None
        self.memory.emit(While(Load(going, _BOOL), tuple(turn.block), loc=loc))
        self._leave(turn, loop, assigned(stmt.body), after, {})

    # ---- names --------------------------------------------------------------------------------------
    def _carried(
        self,
        bound: Names,
        head: Names,
        body: Callable[[], None],
        frame: Frame,
        after: Names,
        runs: bool | None,
        count: int = 0,
    ) -> tuple[Turn, Carrying]:
        """Trace a body so that it stands for every turn.

        Parameters
        ----------
        bound, head : set of str
            The names that the body binds, and those that are read in a turn before it binds them.
        """
        if runs is not True:
            head |= bound & after
        self.memory.settle()
        before = dict(frame.names)
        carried = sorted(n for n in bound & head if n in before)
        loop = Carrying(body, frame, before, carried, head | after, after, runs, count)
        guesses = {n: self._first_guess(before[n]) for n in loop.carried}
        mark = self.memory.mark()
        for _ in range(_ROUNDS):
            turn = self._trace(loop, guesses)
            self._permuted(loop, guesses, turn)
            better = {n: self._better(n, guesses[n], loop, turn) for n in loop.carried}
            if better == guesses:
                self._check_first(loop, guesses, turn, mark)
                self._go_home(turn)
                return turn, loop
            guesses = better
            self.memory.back(mark)
        raise self.scope.fail("the types of names change from turn to turn")

    def _permuted(self, loop: Carrying, guesses: dict[str, Any], turn: Turn) -> None:
        """Find out whether a turn leaves arrays under one another's names.

        Raises
        ------
        Permuted
            With the number of turns after which all names are back.
        """
        kept = [n for n in loop.carried if guesses[n] is KEPT and is_array(loop.before[n])]
        to: dict[str, str] = {}
        for name in kept:
            end = turn.names.get(name)
            found = [n for n in kept if alike(loop.before[n], end)]
            to[name] = name if name in found or not found else found[0]
        if set(to) != set(to.values()):
            return
        period = 1
        for name in kept:
            length, at = 1, to[name]
            while at != name:
                length, at = length + 1, to[at]
            period = lcm(period, length)
        if 1 < period <= _FEW:
            raise Permuted(period, self.scope.fail("arrays change their names from turn to turn"))

    def _first_guess(self, value: Value) -> Any:
        return kind_of(value) if is_number(value) and not is_array(value) else KEPT

    def _trace(self, loop: Carrying, guesses: dict[str, Any], first: bool = False) -> Turn:
        """Trace a body once; ``first`` says that it is the first turn, with the values before the loop."""
        homes: dict[str, Home] = {}
        names = loop.frame.names = dict(loop.before)
        for name in loop.carried:
            guess, value = guesses[name], loop.before[name]
            if guess is KEPT:
                continue
            homes[name] = home = self._home(name, guess, value)
            if not first or isinstance(guess, Guess) or guess == kind_of(value):
                names[name] = self._at_home(home)
            elif isinstance(value, Data):
                names[name] = self._at_home(Home(home.window, home.dtype, value.kind))
        outer = frozenset(self.memory.arrays)
        with self.memory.inner() as block:
            loop.body()
        return Turn(block, loop.frame.names, homes, outer)

    def _home(self, name: str, kind: Any, value: Value) -> Home:
        if isinstance(kind, Guess):
            window = self.memory.new(value.shape, value.dtype, name)
            self.memory.write(window, value.expr)
            self.memory.frozen.add(window.array)
            if kind is TURNED:
                self.memory.turned.add(window.array)
            return Home(window, value.dtype, kind)
        dtype = _dtype(kind)
        if kind is int and kind_of(value) is int and max(map(abs, self.limits(value))) > _COUNT:
            raise self.scope.fail(f"{name} is large from the start")
        window = self.memory.new((), dtype, name)
        self.memory.write(window, self.math.expr(value, dtype))
        return Home(window, dtype, kind)

    def _at_home(self, home: Home) -> Data:
        if isinstance(home.kind, Guess):
            return self.memory.view(home.window, home.dtype)
        weak = home.kind if home.kind in PYTHON else None
        limits = (-_COUNT, _COUNT - 1) if home.kind is int else None
        return self.memory.value(Load(home.window, home.dtype), scalar=True, weak=weak, limits=limits)

    def _better(self, name: str, guess: Any, loop: Carrying, turn: Turn) -> Any:
        """The guess, or another one where a turn does not leave what it began with."""
        value = loop.before[name]
        end = turn.names.get(name, Missing(f"{name} may not be bound"))
        if isinstance(end, Missing):
            raise self.scope.fail(end.reason)
        if guess is KEPT and alike(value, end):
            return guess
        changed = self.scope.fail(f"{name} changes from turn to turn")
        if isinstance(guess, Guess):
            if (
                not (is_array(value) and is_array(end))
                or value.dtype != end.dtype
                or value.shape != end.shape
            ):
                raise changed
            if guess is not KEPT:
                self._apart(name, value, end, loop, turn)
            ends = (end,) if len(end.shape) == 1 else (value, end)  # those of one axis come in order again
            return COPIED if guess is not TURNED and all(map(self.memory.contiguous, ends)) else TURNED
        if not is_number(end) or is_array(end):
            raise changed
        kind = kind_of(end)
        if kind is int and max(map(abs, self.limits(end))) > _COUNT + _STEP:
            raise self.scope.fail(f"{name} may become too large")
        if kind != guess and kind in PYTHON and (guess, kind) != (int, float):
            raise changed
        return kind

    def _apart(self, name: str, value: Data, end: Data, loop: Carrying, turn: Turn) -> None:
        """Check that a copy of an array serves for the array from one turn to the next."""
        # what the turns before have made is nobody else's, unless it is from before the first turn
        fresh: set[str] = set()
        for _ in range(min(loop.count, len(turn.homes) + 1) - 1):  # names may pass it on, turn by turn
            theirs = turn.outer - fresh
            fresh = {h.window.array for n, h in turn.homes.items() if not lies_in(turn.names.get(n), theirs)}
        if name in loop.after and lies_in(end, turn.outer - fresh):
            raise self.scope.fail(f"{name} is a view of an array that is older than the turn")
        written = {w.array for stmt in turn.block for w in writes(stmt)}
        names = [n for n in turn.names if n != name and n in loop.later]
        others = {v.window.array for n in names if is_array(v := turn.names[n]) and v.window}
        for x, old in ((value, True), (end, False)):
            root = x.window.array if x.window is not None else ""
            if root in written and (old or root in turn.outer):
                raise self.scope.fail(f"{name} is another name of an array that changes")
            if not old and root in others:
                raise self.scope.fail(f"{name} is one of two names of an array")

    def _check_first(self, loop: Carrying, guesses: dict[str, Any], turn: Turn, mark: Mark) -> None:
        """Check that the first turn, which begins with values of other kinds, does the same."""
        kinds = {n: kind_of(loop.before[n]) for n in loop.carried if not isinstance(guesses[n], Guess)}
        others = [n for n, kind in kinds.items() if kind != guesses[n]]
        if not others:
            return
        different = self.scope.fail(f"the first turn of the loop may differ: {others[0]} has another type")
        values = {}
        for name in others:
            value, home = loop.before[name], turn.homes[name]
            if not isinstance(value, Data):
                values[home.window.array] = self.math.expr(value, home.dtype)
            elif value.dtype != home.dtype:
                raise different
        after = self.memory.mark()
        self.memory.back(mark)
        first = self._trace(loop, guesses, first=True)
        same = all(self._better(n, guesses[n], loop, first) == guesses[n] for n in loop.carried)
        if not same or first.block != [with_constants(stmt, values) for stmt in turn.block]:
            raise different
        self.memory.back(after)

    def _go_home(self, turn: Turn) -> None:
        """Write what a turn leaves to where the next one begins."""
        ends = {
            name: self.memory.value(self.math.expr(turn.names[name], home.dtype), home.window.shape)
            for name, home in turn.homes.items()
        }
        with self.memory.inner() as block:
            for name, home in turn.homes.items():
                value = ends.pop(name)
                if value.expr is not Load(home.window, home.dtype):
                    self.memory.write(home.window, value.expr, value)
        turn.block += block

    def _leave(
        self, turn: Turn, loop: Carrying, bound: Names, after: Names, last: dict[str, Dim] | None
    ) -> None:
        """Bind names as the loop leaves them."""
        names = loop.frame.names = dict(loop.before)
        for name in bound:
            if name not in after:
                names.pop(name, None)
                continue
            home = turn.homes.get(name)
            if home is not None:
                surely = loop.runs is True or home.kind == self._first_guess(loop.before[name])
                names[name] = self._at_home(home) if surely else Missing(f"the loop may not run for {name}")
            elif name not in loop.carried:
                names[name] = Missing(f"{name} may not be bound")
                if lies_in(turn.names.get(name), {home.window.array for home in turn.homes.values()}):
                    names[name] = Missing(f"{name} is what another name was in the turn before")
                elif loop.runs is True and last is not None:
                    names[name] = settle(turn.names.get(name, names[name]), last)


def _dtype(kind: Any) -> DType:
    return weak_dtype(kind) if isinstance(kind, type) else np.dtype(kind)
