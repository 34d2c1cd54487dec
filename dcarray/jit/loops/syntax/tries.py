"""Removal of ``try`` in compiled code: the guarded statements and the ``else`` take its place.

If one of them raises an exception, a check fails, and Python runs all statements again with the handlers,
from the values before.  So the handlers are not compiled.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from .syntax_facts import Names, facts, loads, walk

__all__ = ["caught_names", "guard_statements", "without_tries"]


def without_tries(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return statements in which the guarded ones replace each ``try``; the given statements are changed."""
    stmts: list[ast.stmt] = []
    for stmt in body:
        parts: Any = _Without().visit(stmt)
        stmts += parts if isinstance(parts, list) else [parts]
    return stmts


class _Without(ast.NodeTransformer):
    def visit_Try(self, node: ast.Try) -> Any:
        self.generic_visit(node)
        return node if node.finalbody else [*node.body, *node.orelse]


def guard_statements(root: ast.AST) -> bool:
    """Whether each ``try`` in a loop may be compiled: none has a ``finally`` or a ``return``."""
    tries = [node for node in walk(root) if isinstance(node, ast.Try)]
    return not any(node.finalbody or ast.Return in facts(node).kinds for node in tries)


def caught_names(*stmts: ast.stmt) -> Names:
    """Return the names of the exceptions that statements catch."""
    handlers = [node for stmt in stmts for node in walk(stmt) if isinstance(node, ast.ExceptHandler)]
    return loads(*[node.type for node in handlers if node.type is not None])
