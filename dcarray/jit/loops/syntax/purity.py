"""Conditions without side effects, which a loop site may evaluate once more; names that expressions read."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .syntax_facts import COMPREHENSIONS, NONE, Names, facts, walk

__all__ = ["binds", "binds_if_true", "is_pure", "reads_first"]

# functions and methods without side effects
_CALLS = frozenset({"abs", "bool", "float", "int", "len", "max", "min", "round", "sum"})
_METHODS = frozenset({"all", "any", "item", "max", "mean", "min", "sum"})
_PURE = (
    ast.Name, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Attribute, ast.Subscript,
    ast.Slice, ast.NamedExpr, ast.Tuple, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop,
)  # fmt: skip


def is_pure(test: ast.expr) -> bool:
    """Whether a condition has no side effects.  It may bind names (``:=``) that it does not read."""
    facts_of = facts(test)
    if not facts_of.binds.isdisjoint(facts_of.reads):
        return False
    for node in walk(test):
        if isinstance(node, ast.Call):
            name = node.func
            plain = isinstance(name, ast.Name) and name.id in _CALLS
            method = isinstance(name, ast.Attribute) and name.attr in _METHODS
            if node.keywords or not (plain or method):
                return False
        elif not isinstance(node, _PURE):
            return False
    return True


def reads_first(*nodes: ast.expr | None) -> Names:
    """Return the names that expressions, evaluated one after the other, may read before they bind them."""
    return _flow([node for node in nodes if node is not None], NONE)[0]


def binds(*nodes: ast.expr | None) -> Names:
    """Return the names that expressions certainly bind, by ``:=``."""
    return _flow([node for node in nodes if node is not None], NONE)[1]


def binds_if_true(test: ast.expr) -> Names:
    """Return the names that a condition has certainly bound, by ``:=``, if it is true."""
    match test:
        case ast.BoolOp(ast.And(), values):
            return NONE.union(*map(binds_if_true, values))
        case ast.Compare(left, _, others):
            return binds(left, *others)
    return binds(test)


def _flow(nodes: Sequence[ast.expr], bound: Names) -> tuple[Names, Names]:
    """Return the names that expressions read before binding them, and those that are bound after them."""
    read: Names = NONE
    for node in nodes:
        own = facts(node)
        if ast.NamedExpr not in own.kinds or type(node) in COMPREHENSIONS or isinstance(node, ast.Lambda):
            read |= own.reads - bound
            continue
        certain, others = _parts(node)
        inner, then = _flow(certain, bound)
        read |= inner.union(*[_flow(chain, then)[0] for chain in others])
        bound = then | {node.target.id} if isinstance(node, ast.NamedExpr) else then
    return read, bound


def _parts(node: ast.expr) -> tuple[list[ast.expr], list[list[ast.expr]]]:
    """Return the parts of an expression that are always evaluated, and chains of parts that are evaluated one
    by one up to some part, as in ``a and b``."""
    match node:
        case ast.IfExp(test, body, orelse):
            return [test], [[body], [orelse]]
        case ast.BoolOp(_, values):
            return values[:1], [values[1:]]
        case ast.Compare(left, _, others):
            return [left, others[0]], [others[1:]]
        case ast.NamedExpr(_, value):
            return [value], []
        case ast.Dict(keys, values):
            return [part for pair in zip(keys, values, strict=True) for part in pair if part is not None], []
    parts: list[ast.expr] = []
    for child in ast.iter_child_nodes(node):
        part = child.value if isinstance(child, ast.keyword) else child
        parts += [part] if isinstance(part, ast.expr) else []
    return parts, []
