"""Statements that leave their block: ``break``, ``continue``, ``return`` and ``raise``."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from typing import Any


def _in_this_loop(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a loop body, without the bodies of inner loops."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, ast.If):
            yield from _in_this_loop([*stmt.body, *stmt.orelse])
        elif isinstance(stmt, ast.For | ast.While):
            yield from _in_this_loop(stmt.orelse)


def has_break(loop: ast.For | ast.While) -> bool:
    """Whether a ``break`` may end the loop."""
    return any(isinstance(stmt, ast.Break) for stmt in _in_this_loop(loop.body))


def raises(body: Sequence[ast.stmt]) -> bool:
    """Whether a block ends with ``raise``."""
    return bool(body) and isinstance(body[-1], ast.Raise)


def may_exit(stmts: Sequence[ast.stmt]) -> bool:
    """Whether statements may leave their block by ``return``, ``continue`` or ``break``."""
    for stmt in stmts:
        match stmt:
            case ast.Return() | ast.Continue() | ast.Break():
                return True
            case ast.If(_, body, orelse):
                if may_exit(body) or may_exit(orelse):
                    return True
            case ast.For() | ast.While():
                if any(isinstance(node, ast.Return) for node in ast.walk(stmt)):
                    return True
    return False


def blocks_of(stmt: ast.stmt) -> list[list[ast.stmt]]:
    """Return the blocks of a statement, without those of functions and classes."""
    if isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return []
    blocks = [getattr(stmt, name, []) for name in ("body", "orelse", "finalbody")]
    blocks += [handler.body for handler in getattr(stmt, "handlers", [])]
    blocks += [case.body for case in getattr(stmt, "cases", [])]
    return blocks


def copied_block(block: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return a copy of a block with nested blocks; its statements may be changed, not their expressions."""
    return [_copied(stmt) for stmt in block]


def _copied(node: Any) -> Any:
    new = copy.copy(node)
    for name in ("body", "orelse", "finalbody"):
        if block := getattr(node, name, None):
            setattr(new, name, copied_block(block))
    for name in ("handlers", "cases"):
        if parts := getattr(node, name, None):
            setattr(new, name, [_copied(part) for part in parts])
    return new
