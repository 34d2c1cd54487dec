"""Tracing of functions that call themselves: once for each kind of arguments, as functions of the region."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dcarray.core.errors import Untraceable
from dcarray.ir.analysis.effects import touched_arrays, writes
from dcarray.ir.functions import function_calls, is_own
from dcarray.ir.nodes import (
    Apply,
    Array,
    Branch,
    Call,
    Compute,
    Dim,
    Expr,
    Load,
    Region,
    Stmt,
    Symbol,
    Window,
)
from dcarray.ir.ops import const
from dcarray.ir.parse import RESERVED
from dcarray.ir.renaming import numbered

from ..entry.entry_values import Function, PublicObject
from ..operations.memory import Memory
from ..operations.numbers import MAX_COUNTER
from ..operations.scope import Scope
from ..operations.values import (
    PYTHON,
    Data,
    Either,
    NumberList,
    Unbound,
    Value,
    is_array,
    is_number,
    kind_of,
    whole_window,
)
from ..syntax.comprehension_loops import Comprehension
from ..syntax.definitions import function_of_text
from ..syntax.identity import hands_on_items
from ..syntax.syntax_facts import walk
from .branches import FALLS_THROUGH
from .comprehensions import Comprehensions
from .dead_values import check, parsed_function
from .expressions import Frame

MOST_CALLS = 500
"""Python's frames that calls inside of one another may stand for; what goes deeper is left to Python."""

_BOOL, _INT = np.dtype(np.bool_), np.dtype(np.int64)
_STEP = 16  # by which an int may grow from call to call without a check of its range, as in loops
_MOST_GUESSES = 8  # of the types of results
MOST_TRACES = 100
"""Traces of functions in all: each guess takes those of its calls, which may have new lengths of lists."""

_Key = tuple[Function, tuple[tuple[str, Any], ...]]


@dataclass(frozen=True)
class Given:
    """A description of an argument, other than a number, for which a function is traced.

    Attributes
    ----------
    value : object
        A constant; of an array None.
    dtype, shape
        The dtype and shape of an array with memory of its own.
    items : tuple
        For a list of numbers, the fields of its `NumberList` except the array.
    """

    value: Any = None
    dtype: Any = None
    shape: tuple[Dim, ...] = ()
    items: tuple[bool, bool, str] | None = None


@dataclass
class Signature:
    """A Python function that calls itself, traced for some types of its arguments: it is a function of the
    region, too.

    Attributes
    ----------
    name : str
        Its name in the region.
    parameters : tuple of (str, kind or Given)
        The arguments, with the `kind_of` those that are numbers.
    results : tuple of kinds
        The kinds of its results; a guess while the function is being traced.
    is_tuple : bool
        Whether it returns a tuple.
    written : frozenset of str
        The arguments that it may write: as long as it is being traced, those seen so far.
    region : Region or None
        The function's region; None while it is being traced.
    """

    name: str
    parameters: tuple[tuple[str, Any], ...]
    results: tuple[Any, ...]
    is_tuple: bool
    written: frozenset[str] = frozenset()
    region: Region | None = None

    @property
    def arrays(self) -> list[tuple[str, bool]]:
        """The arguments that are arrays, those that it may write first, and whether it may."""
        arrays = [(n, n in self.written) for n, kind in self.parameters if _is_array_kind(kind)]
        return sorted(arrays, key=lambda one: not one[1])


class Recursions(Comprehensions):
    """Tracing of functions that call themselves."""

    functions: dict[_Key, Signature]
    traces_left: Iterator[int]
    symbols: tuple[Symbol, ...] = ()
    sizes: dict[str, Dim]
    depth: Expr = const(0, _INT)  # how many of Python's frames such calls stand for so far
    outside = 0  # how many functions are being traced around the one that calls itself

    def body_of(self, function: Function, names: dict[str, Value], called: tuple[Function, ...]) -> Value:
        """Trace the statements of a function; where objects are compared by identity, it may only give lists
        items that are new in Python, too."""
        if self.request.by_identity and hands_on_items(function.source):
            raise self.scope.fail(f"{function.name} may move items of a list, and the file compares identity")
        return super().body_of(function, names, called)

    def recursive(self, function: Function, given: dict[str, Value], frame: Frame) -> Value:
        """Trace a call of a function that calls itself, with all its arguments."""
        kinds = {name: self._kind(function, name, value) for name, value in given.items()}
        key = function, tuple(kinds.items())
        signature = self.functions.get(key)
        if signature is None:
            signature = self._signature(key, frame)
        return self._call_of(signature, given, frame)

    def used_functions(self, body: Iterable[Stmt]) -> tuple[tuple[str, Region], ...]:
        """Return the names and regions of the functions that statements call, directly or through others."""
        regions = {one.name: one.region for one in self.functions.values() if one.region is not None}
        used: dict[str, Region] = {}
        calls = function_calls(body)
        while calls:
            name = dict(calls.pop().attrs)["name"]
            if name not in used:
                used[name] = regions[name]
                calls += function_calls(regions[name].body)
        return tuple(used.items())

    def _kind(self, function: Function, name: str, value: Value) -> Any:
        """Return the type of an argument that is a number, or a `Given` for any other argument."""
        if isinstance(value, Unbound):
            raise self.scope.fail(value.reason)
        if is_number(value) and not is_array(value) and not isinstance(kind_of(value), Either):
            return kind_of(value)
        if value is None or isinstance(value, str | Function | PublicObject):
            return Given(value)
        array = _array_of(value)
        if isinstance(array, Data) and array.window is not None:
            memory = self.memory.arrays[array.window.array]
            whole = array.window == whole_window(memory.name, memory.shape) and memory.strides is None
            fixed = all(map(self.scope.is_fixed, memory.shape)) and memory.base is None
            if whole and fixed and memory.shape and memory.name not in self.memory.joined:
                items = None if array is value else (value.of_numpy, value.mixed, value.origin)
                return Given(None, memory.dtype, memory.shape, items)
        raise self.scope.fail(f"{function.name} calls itself, and {name} is not a number or a whole array")

    # ---- functions ----------------------------------------------------------------------------------
    def _signature(self, key: _Key, frame: Frame) -> Signature:
        """Trace a function: with types of its results that are guessed, until it has them."""
        function, parameters = key
        count = _results_of(parsed_function(function.source)[0])
        likely = dict.fromkeys([int, float, bool, *[k for _, k in parameters if not isinstance(k, Given)]])
        guesses: list[tuple[Any, ...]] = [(kind,) * (count or 1) for kind in likely] if count != 0 else [()]
        before, reason = dict(self.functions), None
        taken = {*RESERVED, *[one.name for one in before.values()]}
        name = function.name if function.name.isidentifier() else "f"
        signature = Signature(numbered(name, taken) if name in taken else name, parameters, (), bool(count))
        for _ in zip(range(_MOST_GUESSES), self.traces_left, strict=False):
            signature.results = guesses[0]
            self.functions[key] = signature
            try:
                region, kinds, written = self._function(signature, function, frame)
            except Untraceable as error:
                reason = reason or error
                kinds, written = None, frozenset()
            if kinds == signature.results and written <= signature.written:
                signature.region = region
                return signature
            self.functions.clear()  # what it calls has been traced with the guess
            self.functions.update(before)
            signature.written |= written
            guesses = guesses[1:] if kinds is None else [kinds, *guesses[1:]]
            if not guesses:
                break
        raise reason or self.scope.fail(f"{function.name} calls itself, and returns several types of numbers")

    def _function(
        self, signature: Signature, function: Function, frame: Frame
    ) -> tuple[Region, tuple[Any, ...], frozenset[str]]:
        """Return the region of a function, the types of its results, and the arguments that it writes."""
        scope = Scope(function.line, self.scope.sizes)
        scope.loops_run = self.scope.loops_run
        inner = type(self)(self.request, Memory(scope, function.file, self.request.flagless))
        inner.functions, inner.traces_left = self.functions, self.traces_left
        inner.symbols, inner.sizes = self.symbols, self.sizes
        inner.lists.kinds, inner.lists.wanted = self.lists.kinds, self.lists.wanted
        memory = inner.memory
        memory.checks_passed = memory.declare(Array("sound", _BOOL, (), "inout"))
        depth = inner.parameter("depth", int)
        names = {name: inner.parameter(name, kind) for name, kind in signature.parameters}
        shared = {name: _array_of(names[name]).window.array for name, _ in signature.arrays}
        for name, written in signature.arrays:  # those that are written come first
            array = memory.arrays.pop(shared[name])
            memory.declare(replace(array, role="inout" if written else "in"))
        room = Apply("less", (depth.expr, const(MOST_CALLS, _INT)), _BOOL)
        memory.store(memory.value(check(room), scalar=True, weak=float))
        inner.depth, inner.outside = depth.expr, len(frame.called)
        with memory.nested_block() as block:
            result = inner.body_of(function, names, frame.called)
            values = result if type(result) is tuple else (result,)
            if result is FALLS_THROUGH or result is None:
                values = ()
            if not all(is_number(value) and not is_array(value) for value in values):
                raise self.scope.fail(f"{function.name} calls itself, and returns other things than numbers")
            kinds = tuple(map(kind_of, values))
            if any(isinstance(kind, Either) for kind in kinds):
                raise self.scope.fail(f"{function.name} calls itself, and returns several types of numbers")
            targets = [memory.new((), np.dtype(kind), "r", "out") for kind in kinds]
            for target, value in zip(targets, values, strict=True):
                memory.write(target, inner.math.expr(value, memory.arrays[target.array].dtype))
            memory.materialise()
        begin = [Compute(t, const(0, memory.arrays[t.array].dtype), loc=memory.loc) for t in targets]
        sound = Load(memory.checks_passed, _BOOL)
        body = (*memory.block, *begin, Branch(sound, tuple(block), (), loc=memory.loc))
        changed = {window.array for stmt in body for window in writes(stmt)}
        outputs = frozenset([name for name, array in shared.items() if array in changed])
        if memory.assumed_unwritten & changed or memory.inputs or memory.draws is not None:
            raise self.scope.fail("a function that calls itself does more than compute with its arguments")
        self.scope.guards += [guard for guard in scope.guards if guard not in self.scope.guards]
        return inner.function_region(body), kinds, outputs

    def parameter(self, name: str, kind: Any) -> Value:
        """Declare a parameter of the function that is traced; returns its value."""
        if isinstance(kind, Given) and not _is_array_kind(kind):
            return kind.value
        array = self.memory.name(name)
        if isinstance(kind, Given):
            window = self.memory.declare(Array(array, kind.dtype, kind.shape, "inout"))
            value = self.memory.view(window, kind.dtype, name)
            return value if kind.items is None else NumberList(value, *kind.items)
        self.memory.declare(Array(array, np.dtype(kind), (), "in"))
        self.memory.immutable.add(array)
        return self._number(Window(array, (), ()), kind, (-MAX_COUNTER, MAX_COUNTER - 1))

    def function_region(self, body: tuple[Stmt, ...]) -> Region:
        """Return the region of the function that has been traced."""
        used = frozenset[str]().union(*map(touched_arrays, body))
        arrays = tuple([a for a in self.memory.arrays.values() if a.role != "temp" or a.name in used])
        if any(a.role == "temp" and (not is_own(a) or a.base or a.strides) for a in arrays):
            raise self.scope.fail("a function that calls itself makes arrays")
        return Region(self.symbols, arrays, body)

    # ---- calls --------------------------------------------------------------------------------------
    def _call_of(self, signature: Signature, given: dict[str, Value], frame: Frame) -> Value:
        """Trace a call of a function of the region."""
        memory = self.memory
        if memory.checks_passed is None:
            memory.track_checks()
        assert memory.checks_passed is not None
        arrays = [(_array_of(given[name]), written) for name, written in signature.arrays]
        for array, written in arrays:
            if written:
                self.arrays.writeable(array)
        shared = [(array.window, written) for array, written in arrays]
        others = [window.array for window, written in shared]
        if any(written and others.count(window.array) > 1 for window, written in shared):
            raise self.scope.fail("a function gets an array twice, and writes it")
        # a comprehension has a frame, too, and a C function that takes it counts as one up to Python 3.11
        sources = [function_of_text(function.source) for function in frame.called[self.outside :]]
        deeper = [any(isinstance(one, Comprehension) for one in walk(source)) for source in sources]
        frames = len(deeper) + 2 * sum(deeper) or 1
        depth = Apply("add", (self.depth, const(frames, _INT)), _INT)
        numbers = [self._stored_number(depth, "depth")]
        for name, kind in signature.parameters:
            if isinstance(kind, Given):
                continue
            value = given[name]
            # calls inside of one another are few, and floats have twice as large ints exactly
            if kind is int and max(map(abs, self.math.limits(value))) > MAX_COUNTER + _STEP:
                if not isinstance(value, Data):
                    raise self.scope.fail("an integer may be too large")
                value = self.math.as_counter(value)
            numbers.append(self._stored_number(self.math.expr(value, np.dtype(kind)), name))
        results = [memory.new((), np.dtype(kind), signature.name) for kind in signature.results]
        both = [memory.checks_passed, *[window for window, written in shared if written]]
        only = [window for window, written in shared if not written]
        for window in both:
            memory.protect_values(window)
        call = Call(
            "function.call", (*both, *numbers, *only), (*both, *results),
            (("name", signature.name),), loc=memory.loc,
        )  # fmt: skip
        memory.emit(call)
        memory.immutable.update(window.array for window in results)
        memory.may_raise = True
        limits = int(np.iinfo(_INT).min), int(np.iinfo(_INT).max)
        values = [self._number(w, kind, limits) for w, kind in zip(results, signature.results, strict=True)]
        if not values:
            return None
        return tuple(values) if signature.is_tuple else values[0]

    def _stored_number(self, expr: Expr, name: str) -> Window:
        """Return an array without axes that no statement writes afterwards, with a number."""
        if isinstance(expr, Load) and expr.window.array in self.memory.immutable:
            return expr.window
        window = self.memory.new((), expr.dtype, name)
        self.memory.emit(Compute(window, expr, loc=self.memory.loc))
        self.memory.immutable.add(window.array)
        return window

    def _number(self, window: Window, kind: Any, limits: tuple[int, int] | None) -> Data:
        dtype, weak = np.dtype(kind), kind if kind in PYTHON else None
        bounds = limits if kind is int else None
        return self.memory.value(Load(window, dtype), scalar=True, weak=weak, limits=bounds)


def _is_array_kind(kind: Any) -> bool:
    return isinstance(kind, Given) and kind.dtype is not None


def _array_of(value: Value) -> Any:
    """Return an array as it is, the array of a list of numbers, and any other value as it is."""
    return value.array if isinstance(value, NumberList) else value


def _results_of(tree: ast.FunctionDef) -> int | None:
    """Return how many numbers a function returns as a tuple; 0 for no result, None for a single number."""
    values = [node.value for node in walk(tree) if isinstance(node, ast.Return) and node.value is not None]
    for value in values:
        if isinstance(value, ast.Tuple):
            return len(value.elts)
    return None if any(not isinstance(v, ast.Constant) or v.value is not None for v in values) else 0
