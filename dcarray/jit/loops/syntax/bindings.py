"""Names that statements bind, and those that they may read first, as `loop_carried` needs them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from .syntax_facts import Names, loads, target_names


def needed(stmts: Sequence[ast.stmt], after: Names, end: Names | None = None) -> Names:
    """The names live before statements, given the names ``after`` that are live after them.  ``end`` are the
    names live after a ``continue`` or ``break`` (None: ``after``)."""
    end = after if end is None else end
    live = after
    for stmt in reversed(stmts):
        live = _needed(stmt, live, end)
    return live


def needed_in_loop(body: Sequence[ast.stmt], after: Names) -> Names:
    """As `needed`, for the body of a loop."""
    return needed(body, after, after | loads(*body))


def _needed(stmt: ast.stmt, after: Names, end: Names) -> Names:
    match stmt:
        case ast.Assign(targets, value):
            return (after - target_names(*targets)) | loads(value, *targets)
        case ast.AnnAssign(target, _, value):
            return (after - target_names(target)) | loads(value, target)
        case ast.AugAssign(target, _, value):
            return after | loads(value, target) | target_names(target)
        case ast.For(target, source, body, orelse):
            done = needed(orelse, after, end)
            return done | loads(source) | (needed_in_loop(body, done) - target_names(target))
        case ast.While(test, body, orelse):
            done = needed(orelse, after, end) | loads(test)
            return done | needed_in_loop(body, done)
        case ast.If(test, body, orelse):
            return loads(test) | needed(body, after, end) | needed(orelse, after, end)
        case ast.Return(value):
            return loads(value)
        case ast.Continue() | ast.Break():
            return end
        case _:
            return after | loads(stmt)


def own_statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a loop body, without the bodies of inner loops."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, ast.If):
            yield from own_statements(stmt.body)
            yield from own_statements(stmt.orelse)
        elif isinstance(stmt, ast.For | ast.While):
            yield from own_statements(stmt.orelse)


def has_break(loop: ast.For | ast.While) -> bool:
    """Whether a ``break`` may end the loop."""
    return any(isinstance(stmt, ast.Break) for stmt in own_statements(loop.body))


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
