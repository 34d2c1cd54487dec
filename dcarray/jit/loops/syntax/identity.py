"""Identity of objects: code that compares it, and statements that hand on objects instead of making new ones.

The results of compiled code are new objects.  Where Python would give one that exists already, only a
comparison by ``is`` or `id` shows the difference.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from dcarray.lowering.runtime.parsing import parse

from .liveness import live_before
from .syntax_facts import NONE, Names, stores, walk

__all__ = ["compares_identity", "handed_on", "hands_on_items", "text_compares_identity"]

_NEW = (ast.BinOp, ast.Compare, ast.Constant, ast.JoinedStr)
_COUNTING = frozenset({"len", "range", "sum"})  # of built-in functions: their numbers are new ones


def compares_identity(nodes: Iterable[ast.AST]) -> bool:
    """Whether code compares objects by identity, other than with ``None`` and the like, or with types."""
    for node in nodes:
        match node:
            case ast.Compare(left, ops, others):
                if any(map(_is_between_objects, ops, [left, *others], others)):
                    return True
            case ast.Call(ast.Name("id")) | ast.keyword("key", ast.Name("id")):
                return True
            case ast.Call(ast.Name("map"), [ast.Name("id"), *_]):
                return True
    return False


@lru_cache(maxsize=8)
def text_compares_identity(text: str) -> bool:
    """Whether a module's text compares objects by identity; it is parsed only if it may."""
    if not re.search(r"\bis\b(?! (not )?None\b)|\bid *[(,)]", text):
        return False
    try:
        return compares_identity(ast.walk(parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return True


def _is_between_objects(op: ast.cmpop, left: ast.expr, right: ast.expr) -> bool:
    """Whether an operator compares objects by identity, none of which is ``None``, say, or a type."""
    for value in (left, right):
        match value:
            case ast.Constant() | ast.Call(ast.Name("type")):
                return False
    return isinstance(op, ast.Is | ast.IsNot)


def handed_on(source: str, returned: str) -> Names:
    """Return the names that may have an object that existed before after the statements of a text, with
    those of lists that may get one as an item, and the name ``returned`` if they may return one."""
    stmts, unread = parse(source).body, _Unread().visit(parse(source)).body
    bindings = [pair for stmt in stmts for node in walk(stmt) for pair in _bindings(node, returned)]
    before = live_before(stmts, NONE) | (stores(*stmts) - NONE.union(*[names for names, _ in bindings]))
    is_loop = len(stmts) == 1 and isinstance(stmts[0], ast.For | ast.While)
    runs = unread[0].body if is_loop else unread  # a loop is known to run
    old = live_before(runs, stores(*runs))
    while more := NONE.union(*[names for names, v in bindings if not _is_new(v, before | old)]) - old:
        old |= more
    return old


@lru_cache(maxsize=64)
def hands_on_items(source: str) -> bool:
    """Whether a function may give a list an item that existed before."""
    nodes = [*ast.walk(parse(source))]
    names = frozenset([node.id for node in nodes if isinstance(node, ast.Name)])
    for node in nodes:
        targets = [*getattr(node, "targets", ()), getattr(node, "target", node)]
        parts = [part for one in targets for part in ast.walk(one) if isinstance(part, ast.Subscript)]
        is_item = isinstance(node, ast.Call) or any(isinstance(part.ctx, ast.Store) for part in parts)
        if is_item and not all(_is_new(value, names) for _, value in _bindings(node, "")):
            return True
    return False


class _Unread(ast.NodeTransformer):
    """Leaves out of statements what they read, so that only what they keep is live before them."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(0) if isinstance(node.ctx, ast.Load) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        return ast.Assign([node.target], ast.Constant(0))


def _bindings(node: ast.AST, returned: str) -> Iterator[tuple[Names, ast.expr]]:
    """Yield names that a part of a statement binds, or of lists that get an item, with the value."""
    match node:
        case ast.Assign(targets, value):
            yield _bound(ast.Tuple(targets)), value
        case ast.AnnAssign(target, _, value) | ast.NamedExpr(target, value) | ast.For(target, value):
            yield _bound(target), value or ast.Constant(0)
        case ast.AugAssign(target):
            yield _bound(target), ast.Constant(0)
        case ast.Return(value):
            yield frozenset({returned}), value or ast.Constant(None)
        case ast.Call(ast.Attribute(ast.Name(name), "append" | "insert"), [*_, value]):
            yield frozenset({name}), value


def _bound(target: ast.expr) -> Names:
    """Return the names that an assignment to a target binds, and those of lists of which it changes items."""
    match target:
        case ast.Name(name):
            return frozenset({name})
        case ast.Tuple(parts) | ast.List(parts):
            return NONE.union(*map(_bound, parts))
        case ast.Starred(part) | ast.Subscript(part):
            return _bound(part)
    return NONE


def _is_new(value: ast.expr, old: Names) -> bool:
    """Whether an expression makes a new number, or a tuple of such, if names but for the ``old`` ones have
    such values."""
    match value:
        case ast.Tuple(items):
            return all(_is_new(item, old) for item in items)
        case ast.Name(name):
            return name not in old
        case ast.UnaryOp(op, operand):
            return not isinstance(op, ast.UAdd) or _is_new(operand, old)
        case ast.IfExp(_, body, orelse):
            return _is_new(body, old) and _is_new(orelse, old)
        case ast.Call(ast.Name(name)):
            return name in _COUNTING
        case ast.Call(ast.Attribute(ast.Name(module))):
            return module in ("np", "numpy", "math", "cmath")
    return isinstance(value, _NEW)
