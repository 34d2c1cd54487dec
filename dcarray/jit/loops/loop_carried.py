"""Names whose values pass from one turn of a loop to the next.

Each has a *home*: memory that holds its value where a turn begins.  What kind of value that is, is guessed
from the value before the loop, and where a turn leaves another kind, the body is traced again with that.
"""

from __future__ import annotations

from collections.abc import Callable
from math import lcm
from typing import Any

import numpy as np

from dcarray.ir.analysis.effects import writes
from dcarray.ir.nodes import Apply, Dim, Load
from dcarray.ir.ops import const

from .bindings import Names
from .carried import COPIED, KEPT, TURNED, Carrying, Guess, Home, Permuted, Turn
from .entry_values import DType
from .expressions import Frame
from .memory import Mark
from .numbers import COUNT
from .statements import Statements, alike
from .substitute import with_constants
from .values import (
    PYTHON,
    Data,
    Either,
    Missing,
    Value,
    cast,
    is_array,
    is_number,
    kind_of,
    lies_in,
    settle,
    weak_dtype,
)

_U8, _BOOL = np.dtype(np.uint64), np.dtype(np.bool_)
FEW = 8  # turns that may be traced one by one
_ROUNDS = 8
_STEP = 16  # by which a counter may go on


class Homes(Statements):
    """Traces the bodies of loops; `Turns` adds the loops."""

    def carry(
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
        ints = [n for n in loop.carried if guesses[n] is int]
        loop.natural = frozenset(n for n in ints if self.math.limits(before[n])[0] >= 0)
        mark = self.memory.mark()
        for _ in range(_ROUNDS):
            turn = self._trace(loop, guesses)
            self._permuted(loop, guesses, turn)
            better = {n: self._better(n, guesses[n], loop, turn) for n in loop.carried}
            below = {n for n in loop.natural if better[n] is int and self.math.limits(turn.names[n])[0] < 0}
            loop.natural -= below
            if better == guesses and not below:
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
        if 1 < period <= FEW:
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
            home.natural = guess is int and name in loop.natural
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
        if kind is int and kind_of(value) is int and max(map(abs, self.math.limits(value))) > COUNT:
            raise self.scope.fail(f"{name} is large from the start")
        window = self.memory.new((), dtype, name)
        self.memory.write(window, self.math.expr(value, dtype))
        return Home(window, dtype, kind)

    def _at_home(self, home: Home) -> Data:
        if isinstance(home.kind, Guess):
            return self.memory.view(home.window, home.dtype)
        weak = home.kind if home.kind in PYTHON else None
        limits = (0 if home.natural else -COUNT, COUNT - 1) if home.kind is int else None
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
        with self.memory.inner() as block:
            ends = {
                name: self.memory.value(self.math.expr(self._end(turn, name), home.dtype), home.window.shape)
                for name, home in turn.homes.items()
            }
            for name, home in turn.homes.items():
                value = ends.pop(name)
                if value.expr is not Load(home.window, home.dtype):
                    self.memory.write(home.window, value.expr, value)
        turn.block += block

    def _end(self, turn: Turn, name: str) -> Value:
        """What a turn leaves of a name, which the run checks where it may become too large."""
        value, home = turn.names[name], turn.homes[name]
        if home.kind is not int or max(map(abs, self.math.limits(value))) <= COUNT + _STEP:
            return value
        made = self.math.counted(value)
        if home.natural:  # places that it tells are not checked for being below 0, so that it must not wrap
            fits = Apply("less", (cast(value.expr, _U8), const(COUNT, _U8)), _BOOL)
            made.expr = Apply("where", (fits, made.expr, const(0, made.dtype)), made.dtype)
        return made

    def leave(
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
                names[name] = self._left(name, home, loop)
            elif name not in loop.carried:
                names[name] = Missing(f"{name} may not be bound")
                if lies_in(turn.names.get(name), {home.window.array for home in turn.homes.values()}):
                    names[name] = Missing(f"{name} is what another name was in the turn before")
                elif loop.runs is True and last is not None:
                    names[name] = settle(turn.names.get(name, names[name]), last)

    def _left(self, name: str, home: Home, loop: Carrying) -> Value:
        """The value of a name that passes from turn to turn, after the loop."""
        value, before = self._at_home(home), self._first_guess(loop.before[name])
        if loop.runs is True or home.kind == before:
            return value
        if (before, home.kind) not in ((int, "l"), (int, "d"), (float, "d")):
            return Missing(f"the loop may not run for {name}")
        expr, limits = cast(value.expr, weak_dtype(before)), (-COUNT, COUNT - 1) if before is int else None
        return Either(self.memory.value(expr, scalar=True, weak=before, limits=limits), value)


def _dtype(kind: Any) -> DType:
    return weak_dtype(kind) if isinstance(kind, type) else np.dtype(kind)
