"""Which loops may be asked for: those that do nothing but compute, as far as their text tells.

What passes here may still turn out to be more than `trace` understands; what does not is never asked for.
"""

from __future__ import annotations

import ast

from .liveness import LoopNode
from .syntax_facts import facts

_OUT = frozenset((
    ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Try, ast.TryStar,
    ast.With, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp,
    ast.DictComp, ast.GeneratorExp, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Delete,
    ast.Starred, ast.NamedExpr, ast.Match, ast.JoinedStr,
))  # fmt: skip
# What may be evaluated once more than the program says: nothing that can change anything.
_CALLS = frozenset({"abs", "bool", "float", "int", "len", "max", "min", "round", "sum"})
_SERIES = frozenset({"enumerate", "reversed", "zip"})
_METHODS = frozenset({"all", "any", "item", "max", "mean", "min", "sum"})
_PURE = (
    ast.Name, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Attribute, ast.Subscript,
    ast.Slice, ast.Tuple, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop,
)  # fmt: skip


def eligible(loop: LoopNode) -> bool:
    """May this loop be asked for?"""
    if loop.orelse:
        return False
    if isinstance(loop, ast.For):
        if not (_series(loop.iter) and _names(loop.target)):
            return False
    elif not _pure(loop.test):
        return False
    return facts(loop).kinds.isdisjoint(_OUT)


def _series(items: ast.expr) -> bool:
    """May a loop go through this?  What it takes to compute it, a loop that is served leaves out."""
    if not isinstance(items, ast.Call):
        return isinstance(items, ast.Name | ast.Attribute | ast.Subscript) and _pure(items)
    name = items.func.id if isinstance(items.func, ast.Name) else ""
    if name == "range":
        return not items.keywords and 1 <= len(items.args) <= 3
    return (
        name in _SERIES
        and not items.keywords
        and all(map(_series, items.args[:1] if name == "enumerate" else items.args))
    )


def _names(target: ast.expr) -> bool:
    """Does a loop bind nothing but names?"""
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(_names, target.elts))
    return isinstance(target, ast.Name)


def _pure(test: ast.expr) -> bool:
    """Does it make no difference whether a condition is evaluated once or twice?"""
    for node in ast.walk(test):
        if isinstance(node, ast.Call):
            name = node.func
            plain = isinstance(name, ast.Name) and name.id in _CALLS
            method = isinstance(name, ast.Attribute) and name.attr in _METHODS
            if node.keywords or not (plain or method):
                return False
        elif not isinstance(node, _PURE):
            return False
    return True
