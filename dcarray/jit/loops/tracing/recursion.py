"""Tracing of functions of numbers that call themselves: once for each kind of arguments, as functions of the
region."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcarray.core.errors import Untraceable
from dcarray.ir.analysis.effects import touched_arrays
from dcarray.ir.nodes import Apply, Array, Branch, Call, Compute, Expr, Load, Region, Stmt, Window
from dcarray.ir.ops import const
from dcarray.ir.statements import all_statements

from ..entry.entry_values import Function, PublicObject
from ..operations.memory import Memory
from ..operations.numbers import MAX_COUNTER
from ..operations.scope import Scope
from ..operations.values import PYTHON, Data, Unbound, Value, is_array, is_number, kind_of
from ..syntax.syntax_facts import walk
from .branches import FALLS_THROUGH
from .comprehensions import Comprehensions
from .dead_values import check, parsed_function
from .expressions import Frame

MOST_CALLS = 500
"""Calls of a function inside of one another; what goes deeper is left to Python, which has a limit, too."""

_BOOL, _INT = np.dtype(np.bool_), np.dtype(np.int64)
_MOST_GUESSES = 8  # of the types of results
_Key = tuple[Function, tuple[tuple[str, Any], ...]]


@dataclass
class Signature:
    """A function of the region.

    Attributes
    ----------
    name : str
        Its name there.
    parameters : tuple of (str, kind)
        The arguments that are numbers, with their `kind_of`.
    results : tuple of kinds
        What it returns: as long as it is being traced, a guess.
    is_tuple : bool
        Whether it returns a tuple.
    region : Region or None
        None as long as it is being traced.
    """

    name: str
    parameters: tuple[tuple[str, Any], ...]
    results: tuple[Any, ...]
    is_tuple: bool
    region: Region | None = None


class Recursions(Comprehensions):
    """Tracing of functions that call themselves."""

    functions: dict[_Key, Signature]
    depth: Expr = const(0, _INT)  # how many calls of such functions the statements are in

    def recursive(self, function: Function, given: dict[str, Value], frame: Frame) -> Value:
        """Trace a call of a function that calls itself, with all its arguments."""
        kinds = {name: self._kind(function, name, value) for name, value in given.items()}
        key = function, tuple(kinds.items())
        found = self.functions.get(key)
        if found is None:
            found = self._signature(key, frame)
        return self._call_of(found, given)

    def used_functions(self, body: Iterable[Stmt]) -> tuple[tuple[str, Region], ...]:
        """Return the functions that statements call, and those that these call."""
        regions = {one.name: one.region for one in self.functions.values() if one.region is not None}
        found: dict[str, Region] = {}
        calls = [*_called(body)]
        while calls:
            name = calls.pop()
            if name not in found:
                found[name] = regions[name]
                calls += _called(regions[name].body)
        return tuple(found.items())

    def _kind(self, function: Function, name: str, value: Value) -> Any:
        """Return the type of an argument that is a number, or what is constant, in a list of its own."""
        if isinstance(value, Unbound):
            raise self.scope.fail(value.reason)
        if is_number(value) and not is_array(value):
            return kind_of(value)
        if value is None or isinstance(value, str | Function | PublicObject):
            return ("=", value)
        raise self.scope.fail(f"{function.name} calls itself, and {name} is no number")

    # ---- functions ----------------------------------------------------------------------------------
    def _signature(self, key: _Key, frame: Frame) -> Signature:
        """Trace a function: with types of its results that are guessed, until it has them."""
        function, kinds = key
        parameters = tuple([(name, kind) for name, kind in kinds if not isinstance(kind, tuple)])
        count = _results_of(parsed_function(function.source)[0])
        likely = dict.fromkeys([int, float, bool, *[kind for _, kind in parameters]])
        guesses: list[tuple[Any, ...]] = [(kind,) * (count or 1) for kind in likely]
        before, reason = dict(self.functions), None
        name = f"{function.name}{len(before) or ''}"
        tried = 0
        while guesses and tried < _MOST_GUESSES:
            guess = guesses.pop(0)
            tried += 1
            made = self.functions[key] = Signature(name, parameters, guess, count is not None)
            try:
                region, found = self._function(key, frame)
            except Untraceable as error:
                reason = reason or error
                found = ()
            if found == guess:
                made.region = region
                return made
            self.functions.clear()  # what it calls has been traced with the guess
            self.functions.update(before)
            if found:
                guesses.insert(0, found)
        raise reason or self.scope.fail(f"{function.name} calls itself, and returns several types of numbers")

    def _function(self, key: _Key, frame: Frame) -> tuple[Region, tuple[Any, ...]]:
        """Return the region of a function, and the types of its results."""
        function, kinds = key
        inner = type(self)(self.request, Memory(Scope(function.line), function.file))
        inner.functions = self.functions
        memory = inner.memory
        memory.checks_passed = memory.declare(Array("sound", _BOOL, (), "inout"))
        depth = inner.parameter("depth", int)
        names = {
            name: kind[1] if isinstance(kind, tuple) else inner.parameter(name, kind) for name, kind in kinds
        }
        room = Apply("less", (depth.expr, const(MOST_CALLS, _INT)), _BOOL)
        memory.store(memory.value(check(room), scalar=True, weak=float))
        inner.depth = Apply("add", (depth.expr, const(1, _INT)), _INT)
        with memory.nested_block() as block:
            result = inner.body_of(function, names, frame.called)
            if result is FALLS_THROUGH or result is None:
                raise self.scope.fail(f"{function.name} calls itself, and returns no number")
            values = result if type(result) is tuple else (result,)
            if not all(is_number(value) and not is_array(value) for value in values):
                raise self.scope.fail(f"{function.name} calls itself, and returns what is no number")
            targets = [memory.new((), np.dtype(kind_of(value)), "r", "out") for value in values]
            for target, value in zip(targets, values, strict=True):
                memory.write(target, inner.math.expr(value, np.dtype(kind_of(value))))
            memory.materialise()
        begin = [Compute(t, const(0, memory.arrays[t.array].dtype), loc=memory.loc) for t in targets]
        sound = Load(memory.checks_passed, _BOOL)
        body = (*memory.block, *begin, Branch(sound, tuple(block), (), loc=memory.loc))
        self.memory.may_raise = True
        return inner.function_region(body), tuple(map(kind_of, values))

    def parameter(self, name: str, kind: Any) -> Data:
        """Declare a parameter of the function that is traced; returns its value."""
        dtype = np.dtype(kind)
        window = self.memory.declare(Array(self.memory.name(name), dtype, (), "in"))
        self.memory.immutable.add(window.array)
        limits = (-MAX_COUNTER, MAX_COUNTER - 1) if kind is int else None
        weak = kind if kind in PYTHON else None
        return self.memory.value(Load(window, dtype), scalar=True, weak=weak, limits=limits)

    def function_region(self, body: tuple[Stmt, ...]) -> Region:
        """Return the region of the function that has been traced."""
        used = frozenset[str]().union(*map(touched_arrays, body))
        arrays = tuple([a for a in self.memory.arrays.values() if a.role != "temp" or a.name in used])
        outside = self.memory.inputs or self.memory.draws is not None
        if outside or any(array.shape or array.base for array in arrays):
            raise self.scope.fail("a function that calls itself has arrays")
        return Region((), arrays, body)

    # ---- calls --------------------------------------------------------------------------------------
    def _call_of(self, signature: Signature, given: dict[str, Value]) -> Value:
        """Trace a call of a function of the region."""
        memory = self.memory
        if memory.checks_passed is None:
            memory.track_checks()
        assert memory.checks_passed is not None
        reads = [memory.checks_passed, self._stored_number(self.depth, "depth")]
        for name, kind in signature.parameters:
            value = given[name]
            if kind is int and max(map(abs, self.math.limits(value))) > MAX_COUNTER:
                if not isinstance(value, Data):
                    raise self.scope.fail("an integer may be too large")
                value = self.math.as_counter(value)
            reads.append(self._stored_number(self.math.expr(value, np.dtype(kind)), name))
        results = [memory.new((), np.dtype(kind), signature.name) for kind in signature.results]
        attrs = (("name", signature.name),)
        writes = (memory.checks_passed, *results)
        memory.emit(Call("function.call", tuple(reads), writes, attrs, loc=memory.loc))
        memory.immutable.update(window.array for window in results)
        memory.may_raise = True
        values = [self._number(w, kind) for w, kind in zip(results, signature.results, strict=True)]
        return tuple(values) if signature.is_tuple else values[0]

    def _stored_number(self, expr: Expr, name: str) -> Window:
        """Return an array without axes that no statement writes afterwards, with a number."""
        if isinstance(expr, Load) and expr.window.array in self.memory.immutable:
            return expr.window
        window = self.memory.new((), expr.dtype, name)
        self.memory.emit(Compute(window, expr, loc=self.memory.loc))
        self.memory.immutable.add(window.array)
        return window

    def _number(self, window: Window, kind: Any) -> Data:
        dtype = np.dtype(kind)
        limits = (int(np.iinfo(_INT).min), int(np.iinfo(_INT).max)) if kind is int else None
        weak = kind if kind in PYTHON else None
        return self.memory.value(Load(window, dtype), scalar=True, weak=weak, limits=limits)


def _called(body: Iterable[Stmt]) -> list[str]:
    """Return the functions that statements call."""
    return [
        dict(stmt.attrs)["name"]
        for stmt in all_statements(body)
        if isinstance(stmt, Call) and stmt.op == "function.call"
    ]


def _results_of(tree: ast.FunctionDef) -> int | None:
    """Return how many numbers a function returns as a tuple; None if it does not return one."""
    for node in walk(tree):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            return len(node.value.elts)
    return None
