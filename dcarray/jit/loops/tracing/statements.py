"""Tracing of statements but loops: assignments, conditions, and calls of the program's functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dcarray.ir.nodes import Load

from ..entry.entry_values import Function, Recursion, calls_itself
from ..operations.either_type import as_key
from ..operations.flag_checks import with_flag_check
from ..operations.indexing import only_integers
from ..operations.values import (
    Data,
    ItemRange,
    Masked,
    NumberList,
    PythonOrNumpy,
    RangeProduct,
    Row,
    Stack,
    Unbound,
    Value,
    is_array,
    shape_of,
)
from ..syntax.appends import growing_names
from ..syntax.exits import may_exit, raises
from ..syntax.liveness import live_before
from ..syntax.syntax_facts import Names, loads, stores, walk
from ..syntax.waiting import may_be_ended
from .branches import FALLS_THROUGH, Branches
from .dead_values import check, parsed_function
from .expressions import Frame

_MAX_DEPTH = 24  # of calls
_MAX_TAIL_COPIES = 8  # how often statements after a condition are traced for each of its sides
_BOOL = np.dtype(np.bool_)


class Statements(Branches):
    """Tracing of statements; the subclasses add these methods."""

    judged: set[ast.AST]  # the nodes of loops of which it is known whether others may end them
    loop: Callable[[ast.For | ast.While, Frame, Names], None]
    constant: Callable[[Any], Value]
    recursive: Callable[[Function, dict[str, Value], Frame], Value]
    perhaps_stack: Callable[[Value, ast.expr, Frame], Value]

    _dead_targets: frozenset[ast.expr] = frozenset()
    _tail_copies = 0

    def block(self, stmts: Sequence[ast.stmt], frame: Frame, after: Names) -> Value:
        """Trace statements; ``after`` are the names read afterwards.  Returns the program's return value, or
        `FALLS_THROUGH`."""
        for k, stmt in enumerate(stmts):
            following = stmts[k + 1 :]
            self.scope.line = frame.line + stmt.lineno
            match stmt:
                case ast.If(test, body, orelse) if raises(body) or raises(orelse):
                    self._require(test, raises(orelse), frame)
                    return self.block([*(body if raises(orelse) else orelse), *following], frame, after)
                case ast.Assert(test):
                    self._require(test, True, frame)
                case ast.If(test, body, orelse):
                    decided = self.condition(test, frame)
                    if isinstance(decided, bool):
                        chosen = body if decided else orelse
                        if may_exit(chosen):
                            return self.block([*chosen, *following], frame, after)
                        self.block(chosen, frame, live_before(following, after))
                    elif may_exit([stmt]) or not self._joined(stmt, decided, following, frame, after):
                        sides = [[*body, *following], [*orelse, *following]]
                        doing = [partial(self.block, side, frame, after) for side in sides]
                        return self.branch(decided, frame, after, *doing)
                case ast.Continue():
                    return FALLS_THROUGH
                case ast.Break():
                    frame.names[frame.break_flag] = True
                    return FALLS_THROUGH
                case ast.Return(value):
                    return None if value is None else self.evaluate(value, frame)
                case ast.For() | ast.While():
                    if stmt not in self.judged:
                        self.judged.update(walk(stmt))
                        self.memory.polls |= may_be_ended(stmt)
                    self.loop(stmt, frame, live_before(following, after))
                case _:
                    self.statement(stmt, frame)
        return FALLS_THROUGH

    def _joined(
        self, stmt: ast.If, test: Data, following: Sequence[ast.stmt], frame: Frame, after: Names
    ) -> bool:
        """Trace a run-time condition, and join the values of names after it.  False, with nothing done, if
        the statements after it had better be traced twice: the type of a name that they read differs."""
        needed = live_before(following, after)
        checkpoint, names, line = self.memory.checkpoint(), dict(frame.names), self.scope.line
        doing = [partial(self.block, side, frame, needed) for side in (stmt.body, stmt.orelse)]
        self.branch(test, frame, needed, *doing)
        read = (needed & stores(stmt)) - (after - loads(*following))
        values = [frame.names.get(name) for name in read]
        differ = any(isinstance(x, PythonOrNumpy) or (isinstance(x, Unbound) and x.differs) for x in values)
        if not differ or self._tail_copies >= _MAX_TAIL_COPIES or may_exit(following):
            return True
        self._tail_copies += 1
        self.memory.restore(checkpoint)
        frame.names, self.scope.line = names, line
        return False

    def _require(self, test: ast.expr, holds: bool, frame: Frame) -> None:
        """Trace a condition that must hold; otherwise Python runs the loop and raises an exception."""
        decided = self.condition(test, frame)
        if isinstance(decided, bool):
            if decided is not holds:
                raise self.scope.fail("it raises an exception")
            return
        fits = self.math.expr(decided if holds else self.math.negation(decided), _BOOL)
        self.memory.store(self.memory.value(check(fits), scalar=True, weak=float))

    def statement(self, stmt: ast.stmt, frame: Frame) -> None:
        """Trace a statement that neither branches, repeats others nor returns."""
        match stmt:
            case ast.Assign(targets, value):
                self._assign(targets, value, frame)
            case ast.AnnAssign(target, _, value) if value is not None:
                self._assign([target], value, frame)
            case ast.AugAssign(target, sign, value):
                self._augmented(target, sign, value, frame)
            case ast.Expr(value):
                if not isinstance(value, ast.Constant):
                    self.discard(self.evaluate(value, frame))
            case ast.Pass():
                pass
            case _:
                raise self.scope.fail(f"{type(stmt).__name__} is not understood")

    # ---- assignments --------------------------------------------------------------------------------
    def _assign(self, targets: list[ast.expr], node: ast.expr, frame: Frame) -> None:
        value = self.evaluate(node, frame)
        spent = len(targets) == 1 and not isinstance(node, ast.Name | ast.Tuple | ast.List)
        if isinstance(targets[0], ast.Name) and targets[0].id in frame.growing and _is_new_list(node):
            value = self.perhaps_stack(value, node, frame)
        if len(targets) > 1 and is_array(value):
            value = self.memory.array(value)
        for target in targets:
            self.assign_target(target, value, frame, spent)

    def assign_target(self, target: ast.expr, value: Value, frame: Frame, spent: bool = False) -> None:
        match target:
            case ast.Name(name):
                frame.names[name] = self._stored(self._checked_if_dead(target, value), name)
            case ast.Tuple(parts) | ast.List(parts):
                if is_array(value) and value.shape and self.scope.eq(value.shape[0], len(parts)) is True:
                    row = self.memory.array(value)
                    value = tuple([self.arrays.getitem(row, k) for k in range(len(parts))])
                if not isinstance(value, tuple | list) or len(value) != len(parts):
                    raise self.scope.fail("an assignment to several targets of one value")
                for part, one in zip(parts, value, strict=True):
                    self.assign_target(part, one, frame)
            case ast.Subscript(owner, key):
                array = self.evaluate(owner, frame)
                self.setitem(
                    array, as_key(self.evaluate(key, frame)), self._checked_if_dead(target, value), spent
                )
            case _:
                raise self.scope.fail("a target that is not understood")

    def _checked_if_dead(self, target: ast.expr, value: Value) -> Value:
        """Return the value; if its target may be dead, with a check that no floating-point flag is raised."""
        if target in self._dead_targets and isinstance(value, PythonOrNumpy):
            self.discard((value.python, value.numpy, value.is_numpy))
        elif target in self._dead_targets and isinstance(value, Data) and value.window is None:
            value.expr = with_flag_check(value.expr, self.request.watched)
        return value

    def stored_number(self, value: Value) -> Value:
        """Return a number, stored before memory changes that it reads."""
        parts = (value.python, value.numpy, value.is_numpy) if isinstance(value, PythonOrNumpy) else (value,)
        for part in parts:
            if isinstance(part, Data) and not isinstance(part.expr, Load):
                self.memory.store(part)
        return value

    def _stored(self, value: Value, name: str) -> Value:
        """Return the value of a name: stored, so that it is computed once."""
        if isinstance(value, tuple | list):
            return type(value)(self._stored(v, name) for v in value)
        if isinstance(value, ItemRange | RangeProduct) and value.iterator:
            raise self.scope.fail("an iterator has a name, by which it may be advanced")
        if not isinstance(value, Data):
            return value
        if not value.scalar:
            return self.memory.array(value, name)
        if not isinstance(value.expr, Load):
            self.memory.store(value, name)
        return value

    def setitem(self, array: Value, key: Value, value: Value, spent: bool) -> None:
        """Trace ``array[key] = value``."""
        if isinstance(array, Row | Stack):
            array, key = array.items, self.place_of(array, key)
        if isinstance(array, NumberList):
            value = self.lists.assigned(array, key, value)
            array = array.array
        if not is_array(array):
            raise self.scope.fail("an assignment to elements of something that is not an array")
        if isinstance(value, tuple | list):
            value = self.calls.array_of_sequence(value, array.dtype)
        if self.arrays.masks.is_mask(array, key):
            self.arrays.writeable(array)
            self.arrays.masks.assign(array, key, value)
            return
        key = self.arrays.gathers.with_run_time_ints(array, key)
        if self.arrays.gathers.is_data_dependent(key):
            if self.arrays.scatters.is_scatter(key):
                self.arrays.scatters.write(array, key, value)
                return
            settled = self.arrays.gathers.normalised_key(array, key)
            with self.arrays.gathers.write_at(array, settled, *[value] * spent) as inside:
                self.setitem(array, inside, value, spent)
            return
        if key == slice(None) or key is Ellipsis:
            target = array
        else:
            if only_integers(key, len(array.shape)) and shape_of(value):  # NumPy raises or warns
                raise self.scope.fail("an array is assigned to an element")
            target = self.arrays.element(array, key)
        self.arrays.assign(target, value, spent, strict=True)

    def _augmented(self, target: ast.expr, sign: ast.operator, node: ast.expr, frame: Frame) -> None:
        if isinstance(target, ast.Name):
            old = self._name(target.id, frame)
            value = self.evaluate(node, frame)
            if is_array(old):
                self.arrays.update(self.sign(sign), old, value)
            elif isinstance(old, list):
                raise self.scope.fail("a list changes")
            else:
                new_value = self._checked_if_dead(target, self.binary(sign, old, value))
                frame.names[target.id] = self._stored(new_value, target.id)
        elif isinstance(target, ast.Subscript):
            array = self.evaluate(target.value, frame)
            key = as_key(self.evaluate(target.slice, frame))
            if is_array(array):
                key = self.arrays.gathers.with_run_time_ints(array, key)
            placed = is_array(array) and self.arrays.gathers.is_data_dependent(key)
            if placed:
                key = self.arrays.gathers.normalised_key(array, key)
            old = self.subscript(array, key)
            value = self.evaluate(node, frame)
            if is_array(old) and placed and self.arrays.scatters.is_scatter(key):
                expr, _ = self.arrays.updated(self.sign(sign), old, value)
                self.arrays.scatters.write(array, key, self.memory.value(expr, old.shape))
            elif is_array(old) and placed:
                del old
                with self.arrays.gathers.write_at(array, key, value) as inside:
                    self.arrays.update(self.sign(sign), self.subscript(array, inside), value)
            elif is_array(old):
                self.arrays.update(self.sign(sign), old, value)
            else:
                value = self.binary(sign, old, value)
                if isinstance(old, Masked):
                    if not np.can_cast(value.dtype, old.dtype, "same_kind"):
                        raise self.scope.fail("an in-place operation does not keep its dtype")
                    value = self.arrays.astype_masked(value, old.dtype)
                del old
                self.setitem(array, key, self._checked_if_dead(target, value), True)
        else:
            raise self.scope.fail("a target that is not understood")

    # ---- functions ----------------------------------------------------------------------------------
    def run(self, function: Function, args: list[Value], named: dict[str, Value], frame: Frame) -> Value:
        """Trace a call of a function of the program, and return what it returns.  Its statements are traced
        where the call stands, with the positional arguments ``args`` and the keyword arguments ``named`` as
        the values of its parameters; one that calls itself is traced apart.  ``frame`` has the caller's
        names."""
        if len(frame.called) > _MAX_DEPTH:
            raise self.scope.fail(f"{function.name} is called from too many functions")
        tree, _ = parsed_function(function.source)
        spec = tree.args
        if spec.vararg or spec.kwarg or tree.decorator_list:
            raise self.scope.fail(f"{function.name} takes arguments in a way that is not understood")
        plain = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        positional_only = {a.arg for a in spec.posonlyargs}
        every = [*plain, *(a.arg for a in spec.kwonlyargs)]
        given = dict(zip(plain, args, strict=False))
        if len(args) > len(plain) or not named.keys() <= set(every) - given.keys() - positional_only:
            raise self.scope.fail(f"arguments of {function.name} that are not understood")
        given.update(named)
        defaults = {name: self.constant(value) for name, value in function.defaults}
        missing = [name for name in every if name not in given]
        if any(name not in defaults for name in missing):
            raise self.scope.fail(f"{function.name} lacks an argument")
        names = {name: self._stored(given.get(name, defaults.get(name)), name) for name in every}
        if calls_itself(function):
            return self.recursive(function, names, frame)
        line = self.scope.line
        result = self.body_of(function, names, frame.called)
        self.scope.line, self.memory.file = line, frame.file
        return None if result is FALLS_THROUGH else result

    def body_of(self, function: Function, names: dict[str, Value], called: tuple[Function, ...]) -> Value:
        """Trace the statements of a function; returns what `block` returns."""
        tree, doubtful = parsed_function(function.source)
        self._dead_targets |= doubtful
        called = (*called, function)
        around = {}
        for name, value in function.names:
            known = [one for one in called if isinstance(value, Recursion) and value.names(one)]
            around[name] = known[-1] if known else self.constant(value)
        self.memory.file = function.file
        inner = Frame(names, around, function.file, function.line - 1, called)
        inner.growing = growing_names(tree.body)
        parts, self.parts = self.parts, None
        try:
            return self.block(tree.body, inner, frozenset())
        finally:
            self.parts = parts


def _is_new_list(node: ast.expr) -> bool:
    """Whether an expression makes a new list, to which no other name can refer."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "list"
    return isinstance(node, ast.List | ast.ListComp | ast.BinOp)
