"""Traversal of nested statements: bodies of loops and branches, and statements in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeGuard, TypeVar

from .nodes import Branch, Compute, Group, Loop, Stmt, While

_Stmt = TypeVar("_Stmt", bound=Stmt)


def bodies(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """Return the bodies of a loop or branch; none of other statements."""
    if isinstance(stmt, (Loop, While)):
        return (stmt.body,)
    return (stmt.then, stmt.orelse) if isinstance(stmt, Branch) else ()


def with_bodies(stmt: _Stmt, new: Sequence[tuple[Stmt, ...]]) -> _Stmt:
    """Return a statement with its bodies replaced by ``new``; the same object if they are equal."""
    if all(a is b for a, b in zip(bodies(stmt), new, strict=True)):
        return stmt
    if isinstance(stmt, Branch):
        return replace(stmt, then=new[0], orelse=new[1])
    assert isinstance(stmt, Loop | While)
    return replace(stmt, body=new[0])


def all_statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """Yield the statements, and after each loop or branch the statements in it."""
    for stmt in body:
        yield stmt
        for part in bodies(stmt):
            yield from all_statements(part)


def loop_variables(body: Iterable[Stmt]) -> set[str]:
    """Return the variables of all loops in the statements, at any depth."""
    return {stmt.var for stmt in all_statements(body) if isinstance(stmt, Loop)}


def flatten(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """Yield the statements, with nests, rows and time tiles replaced by the statements in them, in order."""
    for stmt in body:
        if isinstance(stmt, Group):
            yield from flatten(stmt.body)
        else:
            yield stmt


def is_point(stmt: Stmt) -> TypeGuard[Compute]:
    """Whether a statement assigns one element."""
    return isinstance(stmt, Compute) and stmt.combine is None and stmt.scan is None and not stmt.target.shape


def count(body: Iterable[Stmt]) -> int:
    """Return the number of statements, with those in loops and branches."""
    return sum(1 for _ in all_statements(body))


def with_statement(body: tuple[Stmt, ...], position: int, new: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Return a body with the statement at ``position``, in the order of `all_statements`, replaced by
    ``new``."""
    stmts: list[Stmt] = []
    for stmt in body:
        if position == 0:
            stmts += new
        elif 0 < position < count((stmt,)):
            inner, parts = position - 1, []
            for part in bodies(stmt):
                parts.append(with_statement(part, inner, new))
                inner -= count(part)
            stmts.append(with_bodies(stmt, parts))
        else:
            stmts.append(stmt)
        position -= count((stmt,))
    return tuple(stmts)


def around(body: tuple[Stmt, ...], position: int) -> tuple[Loop, ...]:
    """Return the loops around the statement at ``position``, in the order of `all_statements`; outermost
    first."""
    for stmt in body:
        many = count((stmt,))
        if 0 < position < many:
            inner = position - 1
            own = (stmt,) if isinstance(stmt, Loop) else ()
            for part in bodies(stmt):
                if 0 <= inner < count(part):
                    return (*own, *around(part, inner))
                inner -= count(part)
        position -= many
    return ()
