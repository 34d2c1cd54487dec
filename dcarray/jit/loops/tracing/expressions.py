"""Tracing of expressions: their evaluation on traced values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dcarray.core.errors import Untraceable
from dcarray.ir.analysis.effects import writes
from dcarray.ir.nodes import Call, While
from dcarray.ir.statements import all_statements

from ..entry.entry_values import Function, PublicObject
from ..entry.lists import is_small
from ..operations.arithmetic import Operations
from ..operations.calls import Calls
from ..operations.either_type import as_key, present
from ..operations.flag_checks import may_fail
from ..operations.texts import Character, Text, contained
from ..operations.values import (
    Data,
    Method,
    NumberList,
    PythonOrNumpy,
    RaggedList,
    Row,
    Stack,
    Unbound,
    Value,
    is_number,
)
from ..syntax.comprehension_loops import TAKE_ALL, Comprehension
from ..syntax.syntax_facts import stores

_SIGNS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.USub: "-", ast.UAdd: "+", ast.Invert: "~",
}  # fmt: skip

MOST_UNROLLED = 64
"""Items of a loop or a comprehension over objects that is unrolled."""


@dataclass
class Frame:
    """The names of a traced function (the loop's or one that it calls), and its source position."""

    names: dict[str, Value]
    globals: dict[str, Value]
    file: str
    line: int
    called: tuple[Function, ...] = ()
    break_flag: str = ""  # the name of the bool that a ``break`` of the innermost loop sets
    growing: frozenset[str] = frozenset()  # the names of lists that it lets grow or shrink

    def lookup(self, name: str) -> Value:
        if name in self.names:
            return self.names[name]
        return self.globals.get(name, Unbound(f"{name} is not known"))


_COMPUTES = dict.fromkeys(
    (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Call, ast.Subscript), True
)
_KNOWN = (bool, int, float, complex, str, type(None), np.dtype)


class Expressions(Operations):
    """Tracing of expressions; the subclass `Statements` adds statements, and these methods."""

    run: Callable[[Function, list[Value], dict[str, Value], Frame], Value]
    choice: Callable[[Data, ast.expr, ast.expr, Frame], Value]
    conditional: Callable[[Data, bool, ast.expr, Frame, bool], Data]
    assign_target: Callable[[ast.expr, Value, Frame], None]
    list_of: Callable[[ast.ListComp, Frame], Value]
    discard: Callable[[Value], None]
    reduced: Callable[[list[Value], ast.expr, Frame], Value]
    append: Callable[[Stack, Value], None]
    pop: Callable[[Stack], Value]
    place_of: Callable[[Stack | Row, Value], Data]
    reduction: Callable[[str, list[ast.expr], list[ast.keyword], Frame], Value]

    def __init__(self, calls: Calls) -> None:
        super().__init__(calls.math)
        self.calls, self.reductions, self.arrays = calls, calls.reductions, calls.arrays
        self.lists = calls.iterables.lists
        self.parts: list[Data] | None = None  # of the expression that is traced, but of no statement: `_used`

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        """Return the value of an expression."""
        return self._used(lambda: self._value(node, frame), _COMPUTES.get(type(node), False))

    def _used(self, trace: Callable[[], Value], computes: bool = False) -> Value:
        """Return the value of an expression.  Where it is known and its parts are not, as that of ``1.0 / x >
        2.0 and False``, they are computed nevertheless if they may raise an exception."""
        outer, within = self.parts, list[Data]()
        self.parts = within
        try:
            value = trace()
        finally:
            self.parts = outer
        used: list[Data] = []
        if isinstance(value, Data):
            used = [value] if computes and value.window is None and may_fail(value.expr) else []
        else:
            parts = value if type(value) in (tuple, list) else (value,)
            if all(type(part) in _KNOWN or isinstance(part, Data) for part in parts):
                used = [one for one in within if any(one is part for part in parts)]
                self.discard([one for one in within if not any(one is part for part in parts)])
        if outer is not None:
            outer += used
        return value

    def _value(self, node: ast.expr, frame: Frame) -> Value:
        self.scope.count_expression()
        match node:
            case ast.Constant(value):
                return value
            case ast.Name(name):
                return self._name(name, frame)
            case ast.BinOp(left, sign, right):
                a, b = self.evaluate(left, frame), self.evaluate(right, frame)
                return self.binary(sign, a, b)
            case ast.UnaryOp(ast.Not(), operand):
                return self.math.negation(self.condition(operand, frame))
            case ast.UnaryOp(sign, operand):
                return self.math.unary(_SIGNS[type(sign)], self.evaluate(operand, frame))
            case ast.Compare():
                return self._comparison(node, frame)
            case ast.BoolOp(sign, values):
                return self._bool_op(sign, values, frame)
            case ast.IfExp(test, body, orelse):
                decided = self.condition(test, frame)
                if isinstance(decided, bool):
                    return self.evaluate(body if decided else orelse, frame)
                return self.choice(decided, body, orelse, frame)
            case ast.Subscript(owner, key):
                return self.subscript(self.evaluate(owner, frame), as_key(self.evaluate(key, frame)))
            case ast.Slice(lower, upper, step):
                return slice(*[None if p is None else self.evaluate(p, frame) for p in (lower, upper, step)])
            case ast.Tuple(parts) | ast.List(parts):
                items = [self.evaluate(p, frame) for p in parts]
                if not is_small(items):
                    raise self.scope.fail("a tuple or list of many others")
                return tuple(items) if isinstance(node, ast.Tuple) else items
            case ast.Attribute(owner, name):
                return self.calls.attribute(self.evaluate(owner, frame), name)
            case ast.Call(callee, args, keywords):
                return self._call(callee, args, keywords, frame)
            case ast.NamedExpr(target, value):
                self.assign_target(target, self.evaluate(value, frame), frame)
                return frame.names[target.id]
            case ast.ListComp():
                return self.list_of(node, frame)
        raise self.scope.fail(f"{type(node).__name__} is not understood")

    def binary(self, sign: ast.operator, a: Value, b: Value) -> Value:
        if isinstance(sign, ast.MatMult):
            return self.reductions.matmul(a, b)
        return self.math.binary(_SIGNS[type(sign)], a, b)

    def sign(self, sign: ast.operator) -> str:
        if isinstance(sign, ast.MatMult):
            raise self.scope.fail("a product of matrices in place")
        return _SIGNS[type(sign)]

    def _name(self, name: str, frame: Frame, may_be_none: bool = False) -> Value:
        value = frame.lookup(name)
        if isinstance(value, Unbound):
            raise self.scope.fail(value.reason)
        return value if may_be_none else present(self.memory, value)

    def condition(self, node: ast.expr, frame: Frame) -> bool | Data:
        """Return the truth of an expression, as a Python bool if it is known."""

        def trace() -> bool | Data:
            if isinstance(node, ast.BoolOp):
                return self.math.truth(self._bool_op(node.op, node.values, frame, True))
            if isinstance(node, ast.Compare):
                return self.math.truth(self._comparison(node, frame, True))
            return self.math.truth(self.evaluate(node, frame))

        truth: bool | Data = self._used(trace, True)
        return truth

    def _typed_bool(self, truth: bool | Data, kinds: set[Any], loose: bool) -> bool | Data:
        """Return a bool whose type may be that of any of ``kinds``: bool for Python's, None for NumPy's."""
        if loose or kinds <= {bool}:
            return truth
        if kinds != {None} or not isinstance(truth, Data):
            raise self.scope.fail("a bool whose type may be bool or np.bool")
        return replace(truth, weak=None)

    def _comparison(self, node: ast.Compare, frame: Frame, loose: bool = False) -> Value:
        if isinstance(node.left, ast.Name) and isinstance(node.ops[0], ast.Is | ast.IsNot):
            left = self._name(node.left.id, frame, may_be_none=True)
        else:
            left = self.evaluate(node.left, frame)
        truth: bool | Data = True
        kinds: set[Any] = set()
        for sign, right_node in zip(node.ops, node.comparators, strict=True):
            right = self._speculative(right_node, frame, truth)
            if isinstance(sign, ast.Is | ast.IsNot):
                either = isinstance(left, PythonOrNumpy)
                if right is not None or not (left is None or is_number(left) or either):
                    raise self.scope.fail("`is` between values that compiled code does not know")
                absent = self.math.negation(left.is_numpy) if either and left.python is None else left is None
                answer: Value = absent if isinstance(sign, ast.Is) else self.math.negation(absent)
            elif isinstance(sign, ast.In | ast.NotIn) and (
                type(right) is dict or isinstance(left, Character)
            ):
                if type(right) is dict:
                    inside = self.calls.tables.contains(right, left)
                else:
                    inside = contained(self.memory, self.scope, left, right)
                answer = inside if isinstance(sign, ast.In) else self.math.negation(inside)
            elif type(sign) not in _SIGNS:
                raise self.scope.fail("a comparison that is not understood")
            else:
                answer = self.math.binary(_SIGNS[type(sign)], left, right)
            if len(node.ops) == 1:
                return answer
            kinds.add(answer.weak if isinstance(answer, Data) else bool)
            truth = self._and(truth, self.math.truth(answer))
            if truth is False:
                break
            left = right
        return self._typed_bool(truth, kinds, loose)

    def _speculative(self, node: ast.expr, frame: Frame, surely: Value) -> Value:
        """Return the value of an operand that Python may skip, unless ``surely`` is True.  Compiled code
        always computes it, so it must have no side effects."""
        state = self.begun()
        value = self.evaluate(node, frame)
        if surely is not True:
            self.check_effects(state, "a condition")
            if stores(node):
                raise self.scope.fail("a condition that may be skipped binds a name")
        return value

    def begun(self) -> tuple[int, frozenset[str]]:
        """Return the current state, with which `check_effects` compares later."""
        return len(self.memory.block), frozenset(self.memory.arrays)

    def check_effects(self, begun: tuple[int, frozenset[str]], what: str) -> None:
        """Raise `Untraceable` if statements traced since ``begun``, which Python may skip, have effects."""
        for stmt in self.memory.block[begun[0] :]:
            if isinstance(stmt, While) or any(w.array in begun[1] for w in writes(stmt)):
                raise self.scope.fail(f"{what} may be skipped, and changes arrays")
            if any(isinstance(one, Call) and one.op == "random.draw" for one in all_statements((stmt,))):
                raise self.scope.fail(f"{what} may be skipped, and draws random numbers")

    def _and(self, a: bool | Data, b: bool | Data) -> bool | Data:
        if isinstance(a, bool):
            return b if a else False
        if isinstance(b, bool):
            return a if b else False
        return self.math.both("logical_and", a, b)

    def _bool_op(self, sign: ast.boolop, nodes: list[ast.expr], frame: Frame, loose: bool = False) -> Value:
        """Trace ``and`` and ``or``: operands that record no statement always run, others by need."""
        is_and = isinstance(sign, ast.And)
        open_: Value = None
        kinds: set[Any] = set()
        for k, node in enumerate(nodes):
            checkpoint, names = self.memory.checkpoint(), dict(frame.names)
            try:
                value = self.condition(node, frame) if loose else self.evaluate(node, frame)
                free = len(self.memory.block) == len(checkpoint.block) and not stores(node)
            except Untraceable:  # tried again under the condition of the others
                if open_ is None:
                    raise
                free = False
            if open_ is not None and not free:
                self.memory.restore(checkpoint)
                frame.names = names
                remaining = nodes[k] if k == len(nodes) - 1 else ast.BoolOp(sign, nodes[k:])
                value = self.conditional(open_, is_and, remaining, frame, loose)
                kinds.add(value.weak)
                return self._typed_bool(value, kinds, loose)
            truth = self.math.truth(value)
            if isinstance(truth, bool):
                if truth != is_and:  # decided
                    if open_ is not None:
                        return self._typed_bool(truth, kinds | {type(value)}, loose)
                    return value
                if k == len(nodes) - 1:
                    if open_ is None:
                        return value
                    kinds.add(type(value))
                continue
            if not isinstance(value, Data) or value.dtype.kind != "b":
                raise self.scope.fail("`and` or `or` of values that are not bools")
            kinds.add(value.weak if isinstance(value, Data) else bool)
            name = "logical_and" if is_and else "logical_or"
            open_ = truth if open_ is None else self.math.both(name, open_, truth)
        return self._typed_bool(open_, kinds, loose)

    def subscript(self, owner: Value, key: Value) -> Value:
        if isinstance(owner, Data):
            return self.arrays.getitem(owner, key)
        if isinstance(owner, tuple | list | str):
            plain = type(key) is int or (
                isinstance(key, slice)
                and all(v is None or type(v) is int for v in (key.start, key.stop, key.step))
            )
            if plain:
                try:
                    item = owner[key]
                except IndexError as error:
                    raise self.scope.fail(str(error)) from error
                if type(key) is int:
                    self.discard(tuple([part for part in owner if part is not item]))
                return item
            if is_number(key) and not isinstance(owner, str) and 0 < len(owner) <= MOST_UNROLLED:
                return self.lists.chosen(owner, key)
        if isinstance(owner, RaggedList):
            return self.lists.row(owner, key)
        if isinstance(owner, Row | Stack):
            return self.lists.getitem(owner.items, self.place_of(owner, key))
        if isinstance(owner, NumberList):
            return self.lists.getitem(owner, key)
        if isinstance(owner, Text):
            return self.lists.character(owner, key)
        if isinstance(owner, dict):
            return self.calls.tables.getitem(owner, key)
        if owner == PublicObject("dcarray.map"):
            return self.calls.range_product(key)
        raise self.scope.fail("an index of a value that is not understood")

    def _call(
        self, callee: ast.expr, args: list[ast.expr], keywords: list[ast.keyword], frame: Frame
    ) -> Value:
        function = self.evaluate(callee, frame)
        if function == PublicObject("functools.reduce") and not keywords:
            return self.reduced([self.evaluate(arg, frame) for arg in args], callee, frame)
        if args and isinstance(function, PublicObject):
            name = function.name.removeprefix("builtins.")
            if (
                name in TAKE_ALL
                and not isinstance(args[0], ast.Starred)
                and (isinstance(args[0], Comprehension) or len(args) == 1)
            ):
                return self.reduction(name, args, keywords, frame)
        given = [value for arg in args for value in self._given(arg, frame)]
        if any(k.arg is None for k in keywords):
            raise self.scope.fail("keyword arguments that are not known")
        named = {str(k.arg): self.evaluate(k.value, frame) for k in keywords}
        if isinstance(function, Method) and isinstance(function.of, Stack) and not named:
            if function.name == "append" and len(given) == 1:
                return self.append(function.of, given[0])
            if function.name == "pop" and not given:
                return self.pop(function.of)
        function, given = self.calls.inlined(function, given, named)
        if isinstance(function, Function):
            return self.run(function, given, named, frame)
        return self.calls.call(function, tuple(given), named)

    def _given(self, node: ast.expr, frame: Frame) -> Sequence[Value]:
        """Return the value of an argument; several values for a starred one."""
        if not isinstance(node, ast.Starred):
            return [self.evaluate(node, frame)]
        value = self.evaluate(node.value, frame)
        if not isinstance(value, tuple | list):
            raise self.scope.fail("the number of arguments is not known")
        return value
