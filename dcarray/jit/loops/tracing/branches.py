"""Tracing of conditions that are known at run time: both sides are traced, and the values of names joined."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dcarray.ir.conditions import implied_inequalities
from dcarray.ir.nodes import Branch, Load, Stmt
from dcarray.ir.ops import const

from ..entry.entry_values import LoopDescription
from ..operations.either_type import either_in, either_kind, value_and_type
from ..operations.flag_checks import with_flag_check
from ..operations.values import (
    PYTHON,
    Data,
    PythonOrNumpy,
    Unbound,
    Value,
    identical,
    is_array,
    is_number,
    kind_of,
)
from ..syntax.loop_exits import is_kept
from ..syntax.syntax_facts import Names, stores
from .expressions import Expressions, Frame

FALLS_THROUGH: Any = object()
"""The result of a block of statements that does not return."""
_BOOL = np.dtype(np.bool_)


class Branches(Expressions):
    """Tracing of conditions; the subclass `Statements` adds statements."""

    request: LoopDescription

    def choice(self, test: Data, body: ast.expr, orelse: ast.expr, frame: Frame) -> Value:
        """Trace ``body if test else orelse`` with a run-time test."""
        sides = [partial(self.evaluate, side, frame) for side in (body, orelse)]
        return self.branch(test, frame, stores(body, orelse), *sides)

    def conditional(self, test: Data, holds: bool, node: ast.expr, frame: Frame, loose: bool) -> Data:
        """Trace ``test and node`` (``holds``) or ``test or node`` with a run-time test: the expression is
        evaluated only if the test leaves it open.  Unless ``loose``, the result has the bool type (Python's
        or NumPy's) of the operand that decides."""
        kinds: list[Any] = []

        def evaluate() -> Data:
            value = self.condition(node, frame) if loose else self.evaluate(node, frame)
            truth = self.math.truth(value)
            if not isinstance(value, bool) and kind_of(value) not in (bool, "?"):
                raise self.scope.fail("`and` or `or` of values that are not bools")
            kinds.append(value.weak if isinstance(value, Data) else bool)
            return self.memory.value(self.math.expr(truth, _BOOL), scalar=True, weak=bool)

        def decided() -> Data:
            return self.memory.value(self.math.expr(not holds, _BOOL), scalar=True, weak=bool)

        sides = (evaluate, decided) if holds else (decided, evaluate)
        decision = self.branch(test, frame, stores(node), *sides)
        assert isinstance(decision, Data)
        return replace(decision, weak=kinds[0])

    def branch(
        self, test: Data, frame: Frame, after: Names, then: Callable[[], Value], orelse: Callable[[], Value]
    ) -> Value:
        """Trace both sides of a run-time condition, and join the values of names after it."""
        loc, line = self.memory.loc, self.scope.line
        cond = test.expr
        self.memory.materialise(test)
        before = dict(frame.names)
        facts = (implied_inequalities(cond, True), implied_inequalities(cond, False))
        blocks: list[list[Stmt]] = []
        ends: list[dict[str, Value]] = []
        results: list[Value] = []
        for side, holds in zip((then, orelse), facts, strict=True):
            frame.names = dict(before)
            with self.memory.nested_block() as block, self.scope.given(holds):
                results.append(side())
                ends.append(frame.names)
                self.memory.materialise()
            blocks.append(block)
        self.scope.line = line
        frame.names = before
        if (results[0] is FALLS_THROUGH) != (results[1] is FALLS_THROUGH):
            results = [None if r is FALLS_THROUGH else r for r in results]
        result = self._join(results[0], results[1], blocks, "what is returned")
        for name in sorted(ends[0].keys() | ends[1].keys()):
            if name in after:
                unbound = self._zero_of(ends[name not in ends[0]][name]) if is_kept(name) else None
                unbound = Unbound(f"{name} may not be bound") if unbound is None else unbound
                a, b = [end.get(name, unbound) for end in ends]
                before[name] = self._join(a, b, blocks, name)
            elif not (name in ends[0] and name in ends[1] and ends[0][name] is ends[1][name]):
                before.pop(name, None)
        if blocks[0] or blocks[1]:
            self.memory.emit(Branch(cond, tuple(blocks[0]), tuple(blocks[1]), loc=loc))
        else:
            self.discard(test)
        if isinstance(result, Unbound):
            raise self.scope.fail(result.reason)
        return result

    def _zero_of(self, value: Value) -> Value:
        """Return a zero of the type of a number; None if the value is no number."""
        if not is_number(value) or is_array(value):
            return None
        kind = kind_of(value)
        if kind in PYTHON:
            return kind(0)
        return self.memory.value(const(0, np.dtype(kind)), scalar=True)

    def _join(self, a: Value, b: Value, blocks: list[list[Stmt]], name: str) -> Value:
        """Return the value that is ``a`` after the first block and ``b`` after the second: a phi node."""
        if identical(a, b):
            return a
        for x in (a, b):
            if isinstance(x, Unbound):
                return x
        if isinstance(a, tuple | list) and type(a) is type(b) and len(a) == len(b):
            return type(a)(self._join(x, y, blocks, name) for x, y in zip(a, b, strict=True))
        of_none = (a is None or b is None) and either_kind(a, b) is not None
        if of_none or isinstance(a, PythonOrNumpy) or isinstance(b, PythonOrNumpy):
            return self._either(a, b, blocks, name)
        if not (is_number(a) and is_number(b)) or is_array(a) != is_array(b):
            return Unbound(f"{name} depends on a condition")
        if is_array(a):
            if a.dtype != b.dtype or a.shape != b.shape or a.readonly or b.readonly:
                return Unbound(f"{name} depends on a condition")
            phi = self.memory.note_order(self.arrays.empty(a.shape, a.dtype), a, b)
            for x in (a, b):
                self.memory.pin_sources(x)
            sources = [x.window for x in (a, b) if x.window is not None]
            if sources and phi.window is not None:
                self.memory.join(phi.window, *sources)
        else:
            if kind_of(a) != kind_of(b):
                return self._either(a, b, blocks, name)
            dtype = np.dtype(kind_of(a))
            phi = self.arrays.empty((), dtype)
        window = phi.window
        assert window is not None
        for x, block in zip((a, b), blocks, strict=True):
            with self.memory.nested_block() as more:
                self.memory.write(window, self.math.expr(x, phi.dtype))
            block += more
        if is_array(a):
            return phi
        self.memory.immutable.add(window.array)
        kind, limits = kind_of(a), None
        if kind is int:
            ends = [self.math.limits(x) for x in (a, b)]
            limits = (min(e[0] for e in ends), max(e[1] for e in ends))
        weak = kind if kind in PYTHON else None
        return self.memory.value(phi.expr, scalar=True, weak=weak, limits=limits)

    def _either(self, a: Value, b: Value, blocks: list[list[Stmt]], name: str) -> Value:
        """Return the scalar that is ``a`` after the first block and ``b`` after the second, of two types."""
        kind = either_kind(a, b)
        if kind is None:
            return Unbound(
                f"the type of {name} depends on a condition: give it one type on both ways", differs=True
            )
        windows = [self.memory.new((), np.dtype(kind.numpy), name), self.memory.new((), _BOOL, name)]
        for x, block in zip((a, b), blocks, strict=True):
            with self.memory.nested_block() as more:
                for window, expr in zip(windows, value_and_type(self.math, x, kind), strict=True):
                    self.memory.write(window, expr)
            block += more
        self.memory.immutable.update(window.array for window in windows)
        return either_in(self.memory, windows, kind)

    def discard(self, value: Value) -> None:
        """Compute a value that is not used, since its floating-point flags count."""
        for part in value if isinstance(value, tuple | list) else ():
            self.discard(part)
        if isinstance(value, Data) and value.window is None:
            value.expr = with_flag_check(value.expr, self.request.watched)
            if not isinstance(value.expr, Load):
                self.memory.store(value)
