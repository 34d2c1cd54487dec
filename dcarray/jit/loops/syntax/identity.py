"""Identity of objects: code that compares it, and statements that hand on objects instead of making new ones.

The results of compiled code are new objects.  Where Python would give one that exists already, only a
comparison by ``is`` or `id` shows the difference.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from .syntax_facts import Names, target_names, walk

__all__ = ["compares_identity", "handed_on", "text_compares_identity"]

_NEW = (ast.BinOp, ast.Compare, ast.Constant, ast.JoinedStr)
_COUNTING = frozenset({"len", "range", "sum"})  # of built-in functions: their numbers are new ones


def compares_identity(nodes: Iterable[ast.AST]) -> bool:
    """Whether code compares objects by identity, other than with ``None`` and the like, or with types."""
    for node in nodes:
        match node:
            case ast.Compare(left, ops, others):
                if any(map(_is_between_objects, ops, [left, *others], others)):
                    return True
            case ast.Call(ast.Name("id")):
                return True
    return False


@lru_cache(maxsize=8)
def text_compares_identity(text: str) -> bool:
    """Whether a module's text compares objects by identity; it is parsed only if it may."""
    if not re.search(r"\bis\b(?! (not )?None\b)|\bid *\(", text):
        return False
    try:
        return compares_identity(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return True


def _is_between_objects(op: ast.cmpop, left: ast.expr, right: ast.expr) -> bool:
    """Whether an operator compares objects by identity, none of which is ``None``, say, or a type."""
    for value in (left, right):
        match value:
            case ast.Constant() | ast.Call(ast.Name("type")):
                return False
    return isinstance(op, ast.Is | ast.IsNot)


def handed_on(stmts: Sequence[ast.stmt], live: Names, returned: str) -> Iterator[str]:
    """Yield the names in ``live`` to which statements may bind an object that existed before, and the name
    ``returned`` if they may return one."""
    for node in [node for stmt in stmts for node in walk(stmt)]:
        match node:
            case ast.Assign(targets, value):
                bound = target_names(*targets)
            case ast.AnnAssign(target, _, value) | ast.NamedExpr(target, value) | ast.For(target, value):
                bound = target_names(target)
            case ast.Return(value):
                bound = frozenset({returned})
            case _:
                continue
        if value is not None and not _is_new(value):
            yield from bound & {returned, *live}


def _is_new(value: ast.expr) -> bool:
    """Whether an expression makes a new number, or a tuple of such."""
    match value:
        case ast.Tuple(items):
            return all(map(_is_new, items))
        case ast.UnaryOp(op, operand):
            return not isinstance(op, ast.UAdd) or _is_new(operand)
        case ast.IfExp(_, body, orelse):
            return _is_new(body) and _is_new(orelse)
        case ast.Call(ast.Name(name)):
            return name in _COUNTING
        case ast.Call(ast.Attribute(ast.Name(module))):
            return module in ("np", "numpy", "math", "cmath")
    return isinstance(value, _NEW)
