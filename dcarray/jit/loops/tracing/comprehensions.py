"""Tracing of comprehensions: the items one by one if they are few, else as a loop that reduces them, or puts
them into a list."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from dcarray.core.errors import Untraceable

from ..entry.entry_values import PublicObject
from ..operations.either_type import int_or_float
from ..operations.tables import listed
from ..operations.values import (
    INT_OR_FLOAT,
    Data,
    GrownList,
    ItemRange,
    NumberList,
    PythonOrNumpy,
    RuntimeRange,
    Shape,
    Value,
    is_array,
    is_int,
    is_number,
    kind_of,
)
from ..syntax.appends import appended_items
from ..syntax.comprehension_loops import (
    COMPENSATED,
    FLOATS,
    FUNCTIONS,
    LIST,
    Comprehension,
    ReductionLoop,
    compensation,
    is_known,
    leaves_out,
    reduction_loop,
)
from ..syntax.path_names import counted
from ..syntax.syntax_facts import facts, stores
from .expressions import MOST_UNROLLED, Frame
from .loop_statements import LoopStatements

_ITERABLES = Data | GrownList | ItemRange | NumberList | RuntimeRange
_FUNCTIONS = {text: PublicObject(one) for one, text in FUNCTIONS.items()}
_COMPENSATED = sys.version_info >= (3, 12)  # sums of Python's floats


class Comprehensions(LoopStatements):
    """Tracing of comprehensions."""

    _probed = ""  # the name whose first value is looked for
    _sought = ""  # the name of the list of which the first item is looked for
    _unfinished: tuple[NumberList, ...] = ()  # the lists whose items are being traced
    _loops: dict[tuple[str, Comprehension], ReductionLoop]

    _wholes: dict[ast.expr, ast.GeneratorExp]

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._loops, self._wholes = {}, {}

    def list_of(self, node: ast.ListComp, frame: Frame) -> Value:
        """Trace a comprehension that makes a list."""

        def by_items() -> Value:
            return [*self._items(node.elt, node.generators, frame)]

        def by_loop() -> Value:
            return self._list_by_loop(node, self.evaluate(node.generators[0].iter, frame), frame)

        known = all(is_known(one.iter) for one in node.generators)
        return self._first_of([by_items, by_loop] if known else [by_loop, by_items], frame)

    def reduction(self, name: str, args: list[ast.expr], keywords: list[ast.keyword], frame: Frame) -> Value:
        """Trace the call of one of `TAKE_ALL` with a comprehension, and perhaps where a sum begins, or with
        another iterable."""
        node, *others = args
        function = PublicObject(f"builtins.{name}")
        if not isinstance(node, Comprehension):
            items = self.evaluate(node, frame)
            if keywords or not isinstance(items, _ITERABLES) or (isinstance(items, Data) and not items.shape):
                named = {str(k.arg): self.evaluate(k.value, frame) for k in keywords}
                return self.calls.call(function, (items,), named)
            return self._by_loop(name, self._items_of(node), items, 0, frame)
        if name == "sum" and not others and len(keywords) == 1 and keywords[0].arg == "start":
            others = [keywords[0].value]
        elif keywords:
            raise self.scope.fail("keyword arguments that are not known")
        if len(others) > (name == "sum"):
            raise self.scope.fail("a reduction of a comprehension and of further arguments")

        def by_items() -> Value:
            begun = self.begun()
            items = [*self._items(node.elt, node.generators, frame)]
            if name in ("any", "all") and isinstance(node, ast.GeneratorExp):
                self.check_effects(begun, "an item")
            given = [items, *[self.evaluate(one, frame) for one in others]]
            return self.calls.call(function, tuple(given), {})

        def by_loop() -> Value:
            if any(not isinstance(one, ast.Constant | ast.Name) for one in others):
                raise self.scope.fail("a sum begins with something that is neither a name nor a constant")
            items = self.evaluate(node.generators[0].iter, frame)
            start = self.evaluate(others[0], frame) if others else 0
            ways = [partial(self._by_loop, name, node, items, start, frame)]
            if name == "sum":
                ways.append(partial(self._sum_of_floats, node, items, start, frame))
            return self._first_of(ways, frame)

        known = all(is_known(one.iter) for one in node.generators)
        return self._first_of([by_items, by_loop] if known else [by_loop, by_items], frame)

    def _items_of(self, node: ast.expr) -> ast.GeneratorExp:
        """Return the comprehension that gives the items of an iterable."""
        if node not in self._wholes:
            name = ast.Name("item", ast.Load()), ast.Name("item", ast.Store())
            whole = ast.GeneratorExp(name[0], [ast.comprehension(name[1], node, [], 0)])
            for part in (whole, *name):
                ast.copy_location(part, node)
            self._wholes[node] = whole
        return self._wholes[node]

    def _first_of(self, ways: Sequence[Callable[[], Value]], frame: Frame) -> Value:
        """Return the result of the first of several ways of tracing that is supported."""
        checkpoint, names, line = self.memory.checkpoint(), dict(frame.names), self.scope.line
        flag = frame.break_flag
        reason: Untraceable | None = None
        for way in ways:
            try:
                return way()
            except Untraceable as error:
                reason = reason or error
            self.memory.restore(checkpoint)
            frame.names, frame.break_flag = dict(names), flag
            self.scope.line, self.memory.file = line, frame.file
        assert reason is not None
        raise reason

    # ---- as a loop ----------------------------------------------------------------------------------
    def _by_loop(self, name: str, node: Comprehension, items: Value, start: Value, frame: Frame) -> Value:
        """Trace a reduction as a loop."""
        reduction = self._loop_of(name, node)
        line = self.scope.line
        frame.names[reduction.items] = items
        result: Value = {"any": False, "all": True}.get(name, start)
        if extremum := name in ("max", "min"):
            result = self._zero_of(self._item(reduction, frame))
            if result is None:
                raise self.scope.fail("an extremum of values that are not understood")
            frame.names[reduction.began] = False
        frame.names[reduction.result] = self._stored(result, reduction.result)
        self.loop(reduction.loop, frame, frozenset({reduction.result, reduction.began}))
        if extremum:  # else Python raises an exception
            self._require(ast.Name(reduction.began, ast.Load()), True, frame)
        value = self._name(reduction.result, frame)
        kinds = {kind_of(value)} | ({value.numpy.weak} if isinstance(value, PythonOrNumpy) else set())
        if _COMPENSATED and name == "sum" and kinds & {float, complex}:
            raise self.scope.fail(
                "a sum of Python floats, which this version of Python compensates: add them up in a loop"
            )
        return self._ended(reduction, value, line, frame)

    def _sum_of_floats(self, node: Comprehension, items: Value, start: Value, frame: Frame) -> Value:
        """Trace a sum of Python floats, which of nothing is an int."""
        reduction, line = self._loop_of(COMPENSATED if _COMPENSATED else FLOATS, node), self.scope.line
        frame.names.update({reduction.items: items, reduction.began: False, reduction.error: 0.0})
        if kind_of(self._item(reduction, frame)) is not float or type(start) not in (int, float):
            raise self.scope.fail("a sum of numbers of several types")
        if type(start) is int and start:
            raise self.scope.fail("a sum of floats that begins with an int: begin with a float")
        frame.names[reduction.result] = float(start)
        frame.names.update(_FUNCTIONS)
        self.loop(reduction.loop, frame, frozenset({reduction.result, reduction.error, reduction.began}))
        if _COMPENSATED:
            self.block([compensation(reduction)], frame, frozenset({reduction.result, reduction.began}))
        total, began = self._name(reduction.result, frame), self._name(reduction.began, frame)
        if type(start) is int and began is not True:
            total = int_or_float(self.memory, total.expr, began.expr if isinstance(began, Data) else None)
        return self._ended(reduction, total, line, frame)

    def _ended(self, reduction: ReductionLoop, value: Value, line: int, frame: Frame) -> Value:
        """Return a reduction's result, after the names of its loop have been removed."""
        for one in reduction.names:
            frame.names.pop(one, None)
        self.scope.line = line
        return value

    def _list_by_loop(self, node: Comprehension, items: Value, frame: Frame) -> Value:
        """Trace a comprehension that makes a list of numbers, or of such lists, as a loop."""
        if len(node.generators) > 1:
            raise self.scope.fail("a list of the items of several loops")
        steps = self.calls.iterables.enumerate(items)
        reduction, line = self._loop_of(LIST, node), self.scope.line
        frame.names[reduction.items] = items if leaves_out(node) else steps
        frame.names[reduction.item] = 0
        frame.names[reduction.result] = _SOUGHT
        item = self._item(reduction, frame)
        shape, kind = self._items_of_list(item, [node.elt])
        place = f"{node.lineno}:{node.col_offset}"
        numbers = self.lists.new((steps.stop, *shape), kind, place, type(item) is tuple)
        frame.names[reduction.result] = numbers
        outer, self._unfinished = self._unfinished, (*self._unfinished, numbers)
        self.loop(reduction.loop, frame, frozenset({reduction.item}))
        self._unfinished = outer
        count = frame.names.get(reduction.item)
        if not leaves_out(node):
            return self._ended(reduction, numbers, line, frame)
        if not isinstance(count, Data):
            raise self.scope.fail("a list of items that depend on a condition")
        return self._ended(reduction, GrownList(numbers, count), line, frame)

    def _items_of_list(self, item: Value, exprs: Sequence[ast.expr]) -> tuple[Shape, Any]:
        """Return the shape of the items of a list, and the `kind_of` their numbers, given the expressions
        that make them."""
        new = all(isinstance(one, ast.ListComp | ast.List) for one in exprs)  # a new one each time
        if isinstance(item, NumberList) and new and isinstance(exprs[0], ast.ListComp):
            return item.array.shape, item.kind
        if kind_of(item) == INT_OR_FLOAT or (is_number(item) and not is_array(item)):
            return (), kind_of(item)
        if (isinstance(item, list) and new) or type(item) is tuple:
            shapes, kinds = (
                zip(*[self._items_of_list(one, exprs) for one in item], strict=True) if item else ((), ())
            )
            if {*kinds} <= {int, float, INT_OR_FLOAT} and len({*kinds}) > 1:
                kinds = (INT_OR_FLOAT,)
            if {*shapes} == {()} and len({*kinds}) == 1:
                return (len(item),), kinds[0]
        raise self.scope.fail("a list of other things than numbers")

    def _loop_of(self, name: str, node: Comprehension) -> ReductionLoop:
        """Return the loop of a reduction."""
        if ast.NamedExpr in facts(node).kinds:
            raise self.scope.fail("a comprehension binds a name of the code around it")
        if (name, node) not in self._loops:
            self._loops[name, node] = reduction_loop(name, node)
        return self._loops[name, node]

    def _item(self, reduction: ReductionLoop, frame: Frame) -> Value:
        """Return an item of a comprehension, traced to find its type only."""
        probed = self._probed
        self._probed = "" if reduction.result in frame.names else reduction.item
        try:
            return self._traced_item(reduction.loop, frame)
        finally:
            self._probed = probed

    def _traced_item(self, loop: ast.For, frame: Frame) -> Value:
        """Return the item that a loop computes, found by tracing the loop up to it."""
        checkpoint, names, line = self.memory.checkpoint(), frame.names, self.scope.line
        flag = frame.break_flag
        frame.names = dict(names)
        try:
            self.loop(loop, frame, frozenset())
        except _Probed as probe:
            item = probe.item
        else:
            raise self.scope.fail("a comprehension over nothing")
        self.memory.restore(checkpoint)
        frame.names, frame.break_flag = names, flag
        self.scope.line, self.memory.file = line, frame.file
        return item

    def setitem(self, array: Value, key: Value, value: Value, spent: bool) -> None:
        if array is _SOUGHT or (isinstance(array, _Sought) and array.name == self._sought):
            raise _Probed(value)
        if isinstance(array, _Sought):
            return
        if not isinstance(array, NumberList) or not any(array is one for one in self._unfinished):
            super().setitem(array, key, value, spent)
        elif isinstance(value, NumberList):
            if value.kind != array.kind:
                raise self.scope.fail("a list of lists of several types")
            super().setitem(self.arrays.element(array.array, key), Ellipsis, value.array, spent)
        elif isinstance(value, list | tuple):
            if isinstance(value, tuple) != array.of_tuples or array.array.shape[1:] != (len(value),):
                raise self.scope.fail("a list of items other than lists or tuples of one length")
            for k, item in enumerate(value):
                super().setitem(array.array, (key, k), self.lists.number_for(array, item), spent)
        else:
            super().setitem(array, key, value, spent)

    def assign_target(self, target: ast.expr, value: Value, frame: Frame, spent: bool = False) -> None:
        if self._probed and isinstance(target, ast.Name) and target.id == self._probed:
            raise _Probed(value)
        super().assign_target(target, value, frame, spent)

    # ---- lists to which a loop appends ----------------------------------------------------------------
    def begin_growing(self, loop: ast.For, lists: Mapping[str, int], frame: Frame) -> None:
        """Bind names to lists that have room for all that a loop appends, which is counted from 0.

        Parameters
        ----------
        loop : ast.For
        lists : mapping of str to int
            How many items one iteration may append, by the names of the lists.
        frame : Frame
        """
        steps = self.calls.iterables.enumerate(self.evaluate(loop.iter, frame))
        if not is_int(steps.stop):
            raise self.scope.fail("it appends to a list, and its number of iterations is not known")
        for name in lists:
            frame.names[counted(name)], frame.names[name] = 0, _Sought(name)
        growing = {}
        for name, count in lists.items():
            item = self._appended(loop, name, frame)
            shape, kind = self._items_of_list(item, appended_items(loop, name))
            room = self.scope.room(steps.stop * count)
            growing[name] = self.lists.new((room, *shape), kind, name, type(item) is tuple)
        frame.names.update(growing)
        self._unfinished = tuple(growing.values())

    def end_growing(self, lists: Iterable[str], frame: Frame) -> None:
        """Bind the names of lists to which a loop has appended to their items."""
        self._unfinished = ()
        for name in lists:
            items, count = frame.names[name], frame.names[counted(name)]
            if isinstance(count, Data):
                frame.names[name] = GrownList(items, count)
            elif self.scope.eq(count, items.array.shape[0]) is not True:
                raise self.scope.fail("it appends to a list, and the number of items is not known")

    def _appended(self, loop: ast.For, name: str, frame: Frame) -> Value:
        """Return the first item that a loop appends to a list, traced to find its type only."""
        self._sought = name
        return self._traced_item(loop, frame)

    # ---- one by one ---------------------------------------------------------------------------------
    def _items(self, element: ast.expr, generators: list[ast.comprehension], frame: Frame) -> Iterator[Value]:
        """Yield the items of a comprehension, whose names are its own."""
        if not generators:
            yield self.evaluate(element, frame)
            return
        first, *others = generators
        items = self.evaluate(first.iter, frame)
        own = {name: frame.names.get(name) for name in stores(first.target)}
        for item in self._few(items):
            self.assign_target(first.target, item, frame)
            if all(self._is_taken(test, frame) for test in first.ifs):
                yield from self._items(element, others, frame)
        for name, value in own.items():
            if value is None:
                frame.names.pop(name, None)
            else:
                frame.names[name] = value

    def _is_taken(self, test: ast.expr, frame: Frame) -> bool:
        decided = self.condition(test, frame)
        if not isinstance(decided, bool):
            raise self.scope.fail("a comprehension takes items by their values")
        return decided

    def _few(self, items: Value) -> list[Value]:
        """Return the items of an iterable, if their number is known and small."""
        items = listed(items)
        if isinstance(items, tuple | list):
            values = [*items]
        else:
            steps = self.calls.iterables.items(items)
            if type(steps.start) is not int or type(steps.stop) is not int:
                raise self.scope.fail("a comprehension over items whose number is not known")
            values = [steps.item(k) for k in range(steps.start, steps.stop, steps.step)[: MOST_UNROLLED + 1]]
        if len(values) > MOST_UNROLLED:
            raise self.scope.fail("a comprehension over many items")
        return values


_SOUGHT = object()  # stands for a list until the type of an item is known


class _Sought(NamedTuple):
    """A name to look for in a loop that appends to a list."""

    name: str


class _Probed(Exception):
    """Raised when the name that is looked for gets a value, which ends the tracing."""

    def __init__(self, item: Value) -> None:
        self.item = item
