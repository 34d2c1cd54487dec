"""Loop-carried variables: names whose values pass from one iteration of a traced loop to the next.

Each has memory in the region that holds its value at the start of an iteration.  The type of that value is
assumed from the value before the loop; where an iteration ends with another type, the body is traced again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import lcm
from typing import Any

import numpy as np

from dcarray.core.errors import Untraceable
from dcarray.ir.analysis.effects import writes
from dcarray.ir.nodes import Apply, Dim, Load, Stmt, Window
from dcarray.ir.ops import const

from ..entry.entry_values import DType
from ..operations.descriptions import change_of
from ..operations.either_type import either_in, either_kind, int_or_float, kinds_of, value_and_type
from ..operations.memory import Checkpoint
from ..operations.numbers import MAX_COUNTER
from ..operations.values import (
    NONE,
    PYTHON,
    Data,
    Either,
    PythonOrNumpy,
    Unbound,
    Value,
    cast,
    identical,
    is_array,
    is_number,
    is_view_of_any,
    kind_of,
    with_last_values,
)
from ..syntax.loop_exits import is_kept
from ..syntax.syntax_facts import Names
from .expressions import Frame
from .same_statements import are_same_with
from .stacks import Stacks

_U8, _BOOL = np.dtype(np.uint64), np.dtype(np.bool_)
MAX_UNROLLED = 8  # iterations of a loop that is unrolled
_MAX_RETRACES = 8
_WIDER = {(int, float), (int, complex), (float, complex)}  # types that a name may have, one after the other
_MAX_STEP = 16  # of a counter that needs no check of its range


class PermutedNames(Exception):
    """Raised when a loop body exchanges the names of arrays, with the number of iterations until they are
    back."""

    def __init__(self, period: int, reason: Untraceable) -> None:
        self.period, self.reason = period, reason


class Assumption:
    """What is assumed of a name's array at the start of an iteration; for a scalar it is its `kind_of`."""


INVARIANT = Assumption()  # the object that it was before the loop
COPY = Assumption()  # a copy of the array that the last iteration left
REORDERED_COPY = Assumption()  # the same, where NumPy's array may have another memory order than the copy


class FirstDiffers(Untraceable):
    """Raised when a loop's first iteration has other types than the rest, and is to be traced by itself."""


@dataclass
class CarriedVariable:
    """The memory that holds the value of a loop-carried name at the start of an iteration."""

    window: Window
    dtype: DType
    kind: Any  # a `kind_of`, or an `Assumption`
    natural: bool = False  # an int that is never below 0
    is_numpy: Window | None = None  # of a scalar of one of two types: whether it is of NumPy's


@dataclass
class Iteration:
    """A traced loop body: its statements, and the values of names at its end."""

    block: list[Stmt]
    names: dict[str, Value]
    carried: dict[str, CarriedVariable]
    outer: frozenset[str]  # arrays that exist before the iteration


@dataclass
class LoopBody:
    """A loop that is being traced."""

    body: Callable[[], None]
    frame: Frame
    before: dict[str, Value]
    names: list[str]  # loop-carried
    later: Names  # read in the next iteration, or after the loop
    after: Names  # read after the loop
    runs: bool | None
    count: int  # of iterations, or 0 where it is not known
    ran: Data | None  # at run time: whether it has run at least once
    natural: frozenset[str] = frozenset()  # ints that begin at 0 or above, and may stay there


class LoopBodies(Stacks):
    """Tracing of the bodies of loops; the subclass `LoopStatements` adds the loops themselves."""

    def trace_body(
        self, bound: Names, head: Names, body: Callable[[], None], frame: Frame, after: Names,
        runs: bool | None, count: int = 0, ran: Data | None = None,
    ) -> tuple[Iteration, LoopBody]:  # fmt: skip
        """Trace a loop body once, so that its statements hold for every iteration.

        Parameters
        ----------
        bound, head : set of str
            The names that the body binds, and those that an iteration reads before it binds them.
        """
        if runs is not True:
            head |= bound & after
        self.memory.materialise()
        before = dict(frame.names)
        carried = sorted(n for n in bound & head if n in before)
        loop = LoopBody(body, frame, before, carried, head | after, after, runs, count, ran)
        assumed = {n: self._first_assumption(before[n]) for n in loop.names}
        ints = [n for n in loop.names if assumed[n] is int]
        loop.natural = frozenset(n for n in ints if self.math.limits(before[n])[0] >= 0)
        checkpoint = self.memory.checkpoint()
        for _ in range(_MAX_RETRACES):
            iteration = self._trace(loop, assumed)
            self._check_permuted(loop, assumed, iteration)
            refined = {n: self._refine(n, assumed[n], loop, iteration) for n in loop.names}
            below = {
                n for n in loop.natural if refined[n] is int and self.math.limits(iteration.names[n])[0] < 0
            }
            loop.natural -= below
            if refined == assumed and not below:
                self._check_first_iteration(loop, assumed, iteration, checkpoint)
                self._write_back(iteration)
                return iteration, loop
            assumed = refined
            self.memory.restore(checkpoint)
        raise self.scope.fail(
            "the types of names change from one iteration to the next: begin with 0.0, not 0"
        )

    def _check_permuted(self, loop: LoopBody, assumed: dict[str, Any], iteration: Iteration) -> None:
        """Check that an iteration does not exchange the names of arrays, as in ``a, b = b, a``.

        Raises
        ------
        PermutedNames
            If it does, with the period after which all names are back.
        """
        kept = [n for n in loop.names if assumed[n] is INVARIANT and is_array(loop.before[n])]
        to: dict[str, str] = {}
        for name in kept:
            end = iteration.names.get(name)
            same = [n for n in kept if identical(loop.before[n], end)]
            to[name] = name if name in same or not same else same[0]
        if set(to) != set(to.values()):
            return
        period = 1
        for name in kept:
            length, at = 1, to[name]
            while at != name:
                length, at = length + 1, to[at]
            period = lcm(period, length)
        if 1 < period <= MAX_UNROLLED:
            raise PermutedNames(
                period,
                self.scope.fail(
                    "arrays change their names from one iteration to the next: copy, as in a[:] = b"
                ),
            )

    def _first_assumption(self, value: Value) -> Any:
        if isinstance(value, PythonOrNumpy) and value.is_numpy is not None:
            return kind_of(value)
        return kind_of(value) if is_number(value) and not is_array(value) else INVARIANT

    def _trace(self, loop: LoopBody, assumed: dict[str, Any], first: bool = False) -> Iteration:
        """Trace a body under assumptions; with ``first`` names have their types from before the loop."""
        carried: dict[str, CarriedVariable] = {}
        names = loop.frame.names = dict(loop.before)
        for name in loop.names:
            assumption, value = assumed[name], loop.before[name]
            if assumption is INVARIANT:
                continue
            carried[name] = variable = self._allocate(name, assumption, value)
            variable.natural = assumption is int and name in loop.natural
            same = isinstance(assumption, Assumption | Either) or assumption == kind_of(value)
            if not first or same:
                names[name] = self._value_of(variable)
            elif isinstance(value, Data):
                names[name] = self._value_of(CarriedVariable(variable.window, variable.dtype, value.kind))
            elif type(value) in (int, float):  # not as the constant, from which other statements follow
                kind, limits = type(value), (value, value) if type(value) is int else None
                expr = self.math.expr(value, np.dtype(kind))
                names[name] = self.memory.value(expr, scalar=True, weak=kind, limits=limits)
        outer = frozenset(self.memory.arrays)
        with self.memory.nested_block() as block:
            loop.body()
        return Iteration(block, loop.frame.names, carried, outer)

    def _allocate(self, name: str, kind: Any, value: Value) -> CarriedVariable:
        if isinstance(kind, Assumption):
            window = self.memory.new(value.shape, value.dtype, name)
            self.memory.write(window, value.expr)
            self.memory.unwriteable.add(window.array)
            if kind is REORDERED_COPY:
                self.memory.reordered.add(window.array)
            return CarriedVariable(window, value.dtype, kind)
        if isinstance(kind, Either):
            dtype = np.dtype(kind.numpy)
            windows = self.memory.new((), dtype, name), self.memory.new((), _BOOL, name)
            for window, expr in zip(windows, value_and_type(self.math, value, kind), strict=True):
                self.memory.write(window, expr)
            return CarriedVariable(windows[0], dtype, kind, is_numpy=windows[1])
        dtype = np.dtype(kind)
        if kind is int and kind_of(value) is int and max(map(abs, self.math.limits(value))) > MAX_COUNTER:
            value = self.math.as_counter(value)
        window = self.memory.new((), dtype, name)
        self.memory.write(window, self.math.expr(value, dtype))
        return CarriedVariable(window, dtype, kind)

    def _value_of(self, variable: CarriedVariable) -> Value:
        if isinstance(variable.kind, Assumption):
            return self.memory.view(variable.window, variable.dtype)
        if variable.is_numpy is not None:
            return either_in(self.memory, (variable.window, variable.is_numpy), variable.kind)
        weak = variable.kind if variable.kind in PYTHON else None
        limits = (0 if variable.natural else -MAX_COUNTER, MAX_COUNTER - 1) if variable.kind is int else None
        return self.memory.value(Load(variable.window, variable.dtype), scalar=True, weak=weak, limits=limits)

    def _refine(self, name: str, assumption: Any, loop: LoopBody, iteration: Iteration) -> Any:
        """Return the assumption about a name; a new one if the value at the iteration's end contradicts
        it."""
        value = loop.before[name]
        end = iteration.names.get(name, Unbound(f"{name} may not be bound"))
        if isinstance(end, Unbound):
            raise self.scope.fail(end.reason)
        if assumption is INVARIANT and identical(value, end):
            return assumption
        changed = self.scope.fail(change_of(name, value, end))
        if isinstance(assumption, Either) or isinstance(end, PythonOrNumpy) or value is None or end is None:
            either = either_kind(value, end)
            of_none = either is not None and either.python is NONE and (INVARIANT, either.numpy)
            if either is None or assumption not in (either, either.python, *(of_none or ())):
                raise changed
            return either
        if isinstance(assumption, Assumption):
            arrays = is_array(value) and is_array(end)
            if not arrays or value.dtype != end.dtype or value.shape != end.shape:
                raise changed
            if assumption is not INVARIANT:
                self._check_unaliased(name, value, end, loop, iteration)
            ends = (end,) if len(end.shape) == 1 else (value, end)  # a copy of one axis is contiguous
            ordered = assumption is not REORDERED_COPY and all(map(self.memory.contiguous, ends))
            return COPY if ordered else REORDERED_COPY
        if not is_number(end) or is_array(end):
            raise changed
        kind = kind_of(end)
        if kind != assumption and kind in PYTHON and (assumption, kind) not in _WIDER:
            raise changed
        return kind

    def _check_unaliased(
        self, name: str, value: Data, end: Data, loop: LoopBody, iteration: Iteration
    ) -> None:
        """Check that no alias tells a copy of a loop-carried array from the array itself."""
        # arrays made by earlier iterations have no other names, unless they are from before the first one
        fresh: set[str] = set()
        # names may pass it on, one per iteration
        for _ in range(min(loop.count, len(iteration.carried) + 1) - 1):
            older = iteration.outer - fresh
            fresh = {
                h.window.array
                for n, h in iteration.carried.items()
                if not is_view_of_any(iteration.names.get(n), self.memory.with_joined(older))
            }
        older = iteration.outer - fresh
        if name in loop.after and is_view_of_any(end, self.memory.with_joined(older)):
            raise self.scope.fail(
                f"{name} is a view of an array that is older than the iteration: take a copy, {name}.copy()"
            )
        written = {w.array for stmt in iteration.block for w in writes(stmt)}
        names = [n for n in iteration.names if n != name and n in loop.later]
        others = {v.window.array for n in names if is_array(v := iteration.names[n]) and v.window}
        for x, old in ((value, True), (end, False)):
            root = x.window.array if x.window is not None else ""
            if root in written and (old or root in iteration.outer):
                raise self.scope.fail(
                    f"{name} is another name of an array that changes: take a copy, {name}.copy()"
                )
            if not old and {root, *self.memory.joined.get(root, ())} & others:
                raise self.scope.fail(f"{name} is one of two names of an array")

    def _check_first_iteration(
        self, loop: LoopBody, assumed: dict[str, Any], iteration: Iteration, checkpoint: Checkpoint
    ) -> None:
        """Check that the first iteration, where values have other types, has the same statements."""
        kinds = {n: kind_of(loop.before[n]) for n in loop.names if not isinstance(assumed[n], Assumption)}
        others = [n for n, kind in kinds.items() if kind != assumed[n] and not isinstance(assumed[n], Either)]
        if not others:
            return
        different = FirstDiffers(
            f"the first iteration of the loop may differ: {others[0]} has another type", self.scope.line
        )
        values = {}
        for name in others:
            value, variable = loop.before[name], iteration.carried[name]
            if not isinstance(value, Data):
                values[variable.window.array] = self.math.expr(value, variable.dtype)
            elif value.dtype != variable.dtype:
                raise different
        after = self.memory.checkpoint()
        self.memory.restore(checkpoint)
        first = self._trace(loop, assumed, first=True)
        same = all(self._refine(n, assumed[n], loop, first) == assumed[n] for n in loop.names)
        if loop.count < 2:  # the first iteration may be the last one, too
            ends = [
                [one.names.get(n) for n in sorted(loop.after - {*loop.names})] for one in (first, iteration)
            ]
            same &= kinds_of(ends[0]) == kinds_of(ends[1])
        if not same or not are_same_with(values, first.block, iteration.block):
            raise different
        self.memory.restore(after)

    def _write_back(self, iteration: Iteration) -> None:
        """Append to the iteration the stores of its final values into the loop-carried variables."""
        with self.memory.nested_block() as block:
            ends = {
                name: self.memory.value(
                    self.math.expr(self._end_value(iteration, name), variable.dtype), variable.window.shape
                )
                for name, variable in iteration.carried.items()
            }
            types = {
                name: self.memory.value(value_and_type(self.math, iteration.names[name], variable.kind)[1])
                for name, variable in iteration.carried.items()
                if variable.is_numpy is not None
            }
            for name, variable in iteration.carried.items():
                value = ends.pop(name)
                if value.expr is not Load(variable.window, variable.dtype):
                    self.memory.write(variable.window, value.expr, value)
                if variable.is_numpy is not None:
                    self.memory.write(variable.is_numpy, types[name].expr, types.pop(name))
        iteration.block += block

    def _end_value(self, iteration: Iteration, name: str) -> Value:
        """Return the value of a name at the iteration's end; an int that may overflow has a check."""
        value, variable = iteration.names[name], iteration.carried[name]
        if isinstance(value, PythonOrNumpy):
            return value.numpy
        if value is None:
            return 0
        if variable.kind is not int or max(map(abs, self.math.limits(value))) <= MAX_COUNTER + _MAX_STEP:
            return value
        counter = self.math.as_counter(value)
        if variable.natural:  # indices made from it have no check for being negative, so it must not wrap
            fits = Apply("less", (cast(value.expr, _U8), const(MAX_COUNTER, _U8)), _BOOL)
            counter.expr = Apply("where", (fits, counter.expr, const(0, counter.dtype)), counter.dtype)
        return counter

    def leave(
        self, iteration: Iteration, loop: LoopBody, bound: Names, after: Names, last: dict[str, Dim] | None
    ) -> None:
        """Bind names to their values after the loop."""
        names = loop.frame.names = dict(loop.before)
        for name in bound:
            if name not in after:
                names.pop(name, None)
                continue
            variable = iteration.carried.get(name)
            if variable is not None:
                names[name] = self._value_after(name, variable, loop)
            elif name not in loop.names:
                names[name] = Unbound(f"{name} may not be bound")
                held = self.memory.with_joined(v.window.array for v in iteration.carried.values())
                if is_view_of_any(iteration.names.get(name), held):
                    names[name] = Unbound(f"{name} is what another name was in the iteration before")
                elif (loop.runs is True or is_kept(name)) and last is not None:
                    names[name] = with_last_values(iteration.names.get(name, names[name]), last)

    def _value_after(self, name: str, variable: CarriedVariable, loop: LoopBody) -> Value:
        """Return the value of a loop-carried variable after the loop."""
        value, before = self._value_of(variable), self._first_assumption(loop.before[name])
        if loop.runs is True or variable.kind == before or not isinstance(value, Data):
            return value
        if (before, variable.kind) not in ((int, "l"), (int, "d"), (float, "d"), (int, float)):
            return Unbound(f"the loop may not run for {name}")
        if loop.ran is not None and not isinstance(loop.ran.expr, Load):
            self.memory.store(loop.ran)
        if value.weak:
            return int_or_float(self.memory, value.expr, None if loop.ran is None else loop.ran.expr)
        expr = cast(value.expr, np.dtype(before))
        limits = (-MAX_COUNTER, MAX_COUNTER - 1) if before is int else None
        python = self.memory.value(expr, scalar=True, weak=before, limits=limits)
        return PythonOrNumpy(python, value, loop.ran)
