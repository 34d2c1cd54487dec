"""Eligible loops: a syntactic filter for loops that may be compiled and get a loop site.

An eligible loop may still contain what `trace` does not support.
"""

from __future__ import annotations

import ast

from .liveness import LoopNode
from .syntax_facts import facts

_EXCLUDED = frozenset((
    ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Try, ast.TryStar,
    ast.With, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp,
    ast.DictComp, ast.GeneratorExp, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Delete,
    ast.Starred, ast.NamedExpr, ast.Match, ast.JoinedStr,
))  # fmt: skip
# Functions and methods that the condition of a ``while`` may call: without side effects, since the loop site
# evaluates it once more.
_CALLS = frozenset({"abs", "bool", "float", "int", "len", "max", "min", "round", "sum"})
_ITERABLES = frozenset({"enumerate", "reversed", "zip"})
_METHODS = frozenset({"all", "any", "item", "max", "mean", "min", "sum"})
_PURE = (
    ast.Name, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Attribute, ast.Subscript,
    ast.Slice, ast.Tuple, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop,
)  # fmt: skip


def is_eligible(loop: LoopNode) -> bool:
    """Whether a loop gets a loop site."""
    if loop.orelse:
        return False
    if isinstance(loop, ast.For):
        if not (_is_iterable(loop.iter) and _only_names(loop.target)):
            return False
    elif not _is_pure(loop.test):
        return False
    return facts(loop).kinds.isdisjoint(_EXCLUDED)


def _is_iterable(items: ast.expr) -> bool:
    """Whether an iterable is supported; a compiled loop does not evaluate it."""
    if not isinstance(items, ast.Call):
        return isinstance(items, ast.Name | ast.Attribute | ast.Subscript) and _is_pure(items)
    name = items.func.id if isinstance(items.func, ast.Name) else ""
    if name == "range":
        return not items.keywords and 1 <= len(items.args) <= 3
    return (
        name in _ITERABLES
        and not items.keywords
        and all(map(_is_iterable, items.args[:1] if name == "enumerate" else items.args))
    )


def _only_names(target: ast.expr) -> bool:
    """Whether a loop's target consists of names."""
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(_only_names, target.elts))
    return isinstance(target, ast.Name)


def _is_pure(test: ast.expr) -> bool:
    """Whether a condition has no side effects."""
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
