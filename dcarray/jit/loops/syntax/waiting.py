"""Loops that wait: their end depends on values that they do not change, so that others have to change them.

Compiled code reads such values once.  In one thread, such a loop ends at once or never.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from .syntax_facts import walk

__all__ = ["ends_by_itself", "may_be_ended"]

_EXITS = (ast.Break, ast.Return, ast.Raise)
_OF_VALUES = frozenset(
    {"abs", "bool", "float", "int", "len", "max", "min", "range", "round"}
)  # read no memory


def ends_by_itself(loop: ast.While) -> bool:
    """Whether a condition that may end a loop depends on what its iterations change."""
    return any(map(_Values(loop).may_change, _conditions(loop)))


def may_be_ended(loop: ast.For | ast.While) -> bool:
    """Whether a condition that may end a loop, or one in it, depends on names, elements or attributes alone
    that the loop does not write: another thread, or a handler of a signal, may do so."""
    values = _Values(loop)
    inner = [node for stmt in loop.body for node in walk(stmt) if isinstance(node, ast.While)]
    return any(map(values.is_polled, [*_conditions(loop), *[node.test for node in inner]]))


def _conditions(loop: ast.For | ast.While) -> Iterator[ast.expr]:
    exits: tuple[type[ast.stmt], ...] = _EXITS
    if isinstance(loop, ast.While):
        yield loop.test
        exits += (ast.Continue,)
    for node in [node for stmt in loop.body for node in walk(stmt)]:
        if isinstance(node, ast.If) and any(isinstance(one, exits) for one in walk(node)):
            yield node.test


class _Values:
    """What is known of the names that a loop reads."""

    def __init__(self, loop: ast.For | ast.While) -> None:
        nodes = [node for stmt in loop.body for node in walk(stmt)]
        nodes += walk(loop.test if isinstance(loop, ast.While) else loop.target)
        self._written = {
            root
            for node in nodes
            if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)
            for root in _roots(node)
        }
        given = [one for node in nodes if isinstance(node, ast.Call) for one in _given(node)]
        self._touched = self._written.union(*map(_roots, given))
        stored = [n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]
        self._same = {name: value for name, value in _bindings(loop.body) if stored.count(name) == 1}
        self._changed = set(stored)
        while fixed := {k for k in self._changed & {*self._same} if not self.may_change(self._same[k])}:
            self._changed -= fixed

    def may_change(self, value: ast.expr) -> bool:
        """Whether an expression may have another value in another iteration."""
        for node in walk(value):
            if isinstance(node, ast.Name) and node.id in self._changed | self._touched:
                return True
            if isinstance(node, ast.Call) and not _is_of_values(node):
                return True
        return False

    def is_polled(self, test: ast.expr) -> bool:
        """Whether a condition, or a part of it, depends on what the loop does not write alone."""
        match test:
            case ast.BoolOp(_, values):
                return any(map(self.is_polled, values))
            case ast.UnaryOp(ast.Not(), value):
                return self.is_polled(value)
        names = {node.id for node in walk(test) if isinstance(node, ast.Name)}
        has_parts = any(isinstance(node, ast.Attribute | ast.Subscript | ast.Call) for node in walk(test))
        written = self._written if has_parts else self._touched
        return bool(names) and names.isdisjoint(self._changed | written)


def _bindings(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """Yield names that each iteration binds, with the values of which theirs are made."""
    for stmt in body:
        match stmt:
            case ast.Assign([ast.Name(name)], value):
                yield name, value
            case ast.For(ast.Name(name), items, inner):
                yield name, items
                yield from _bindings(inner)


def _roots(value: ast.expr) -> Sequence[str]:
    """Return the name of which an expression takes a part, if there is one."""
    while isinstance(value, ast.Attribute | ast.Subscript | ast.Starred):
        value = value.value
    return [value.id] if isinstance(value, ast.Name) else []


def _given(call: ast.Call) -> list[ast.expr]:
    """Return what a call gets, and may write to."""
    owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    return [] if _is_of_values(call) else [*owner, *call.args, *[one.value for one in call.keywords]]


def _is_of_values(call: ast.Call) -> bool:
    """Whether a call is of a function that computes with numbers, and has no state."""
    if isinstance(call.func, ast.Attribute):
        return isinstance(call.func.value, ast.Name) and call.func.value.id in ("math", "cmath")
    return isinstance(call.func, ast.Name) and call.func.id in _OF_VALUES
