"""Visitors of the statements and expressions of kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from .nodes import (
    Assign,
    Declare,
    Draw,
    Elem,
    Expr,
    For,
    If,
    Invoke,
    Let,
    NumpyCall,
    NumpyOp,
    Op,
    Repeat,
    Stack,
    Stmt,
    Store,
    Threads,
    Update,
)


def map_children(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Return the expression with ``change`` applied to its direct operands."""
    match expr:
        case Elem(more=more) if more:
            return replace(expr, more=tuple((change(index), stride) for index, stride in more))
        case Op(args=args) | NumpyOp(args=args):
            return replace(expr, args=tuple(map(change, args)))
    return expr


def map_values(stmt: Stmt, change: Callable[[Expr], Expr]) -> Stmt:
    """Return a statement without a body, with ``change`` applied to the expressions in it."""
    match stmt:
        case Let(value=value) | Update(value=value) | Assign(value=value) | Store(value=value):
            return replace(stmt, value=change(value))
        case Declare(init=init):
            return replace(stmt, init=change(init))
        case Draw(generator=generator, args=args):
            return replace(stmt, generator=change(generator), args=tuple(map(change, args)))
        case Invoke(args=args):
            return replace(stmt, args=tuple(map(change, args)))
    return stmt


def values(stmt: Stmt) -> tuple[Expr, ...]:
    """Return the expressions in a statement without a body; none for other statements."""
    match stmt:
        case Let(value=value) | Update(value=value) | Assign(value=value) | Store(value=value):
            return (value,)
        case Declare(init=init):
            return (init,)
        case Draw(generator=generator, args=args):
            return (generator, *args)
        case Invoke(args=args):
            return args
    return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield an expression and all its subexpressions."""
    yield expr
    match expr:
        case Elem(more=more):
            for index, _ in more:
                yield from walk(index)
        case Op(args=args) | NumpyOp(args=args):
            for arg in args:
                yield from walk(arg)


def operations(body: Iterable[Stmt]) -> Iterator[Op]:
    """Yield the operations in the expressions of statements, without those nested in them."""
    for stmt in body:
        for value in values(stmt):
            yield from (node for node in walk(value) if isinstance(node, Op))


def walk_statements(body: Iterable[Stmt], into: tuple[type, ...] = (For, Threads)) -> Iterator[Stmt]:
    """Yield statements and all statements nested in them; those of `For` and `Threads` if these are in
    ``into``."""
    for stmt in body:
        yield stmt
        inner: tuple[Stmt, ...] = ()
        match stmt:
            case For(body=inner) | Threads(body=inner):
                inner = inner if isinstance(stmt, into) else ()
            case Repeat(head, _, rest):
                inner = (*head, *rest)
            case If(_, then, orelse):
                inner = (*then, *orelse)
        yield from walk_statements(inner, into)


def shared_stacks(body: Iterable[Stmt]) -> list[Stack]:
    """Return the stack buffers that the threads of a block share."""
    found = (stmt for stmt in walk_statements(body, into=(For,)) if isinstance(stmt, Stack))
    return [stack for stack in found if not stack.per_thread]


def is_contiguous(body: tuple[Stmt, ...], var: str) -> bool:
    """Whether all accesses in statements that depend on ``var`` have unit stride in it."""
    moving = [stmt.at for stmt in body if isinstance(stmt, Store)]
    for root in (root for stmt in body for root in values(stmt)):
        for node in walk(root):
            if isinstance(node, Elem):
                moving.append(node.at)
                if node.more:
                    return False
    plain = all(isinstance(stmt, Let | Update | Assign | Store | Declare) for stmt in body)
    terms = [term for at in moving for term in at.terms if term.var == var]
    return plain and bool(terms) and all(term.arg is None and term.coef in (1, -1) for term in terms)


def updates(body: Iterable[Stmt]) -> Iterator[Update]:
    """Yield the updates of variables in statements, including nested ones."""
    return (stmt for stmt in walk_statements(body) if isinstance(stmt, Update))


def buffers(stmt: Stmt) -> set[str]:
    """Return the names of the buffers that a statement accesses."""
    if isinstance(stmt, For | Threads):
        return {name for inner in stmt.body for name in buffers(inner)}
    if isinstance(stmt, NumpyCall):
        return {row.buffer for row in (*stmt.reads, stmt.write)}
    found = {node.buffer for root in values(stmt) for node in walk(root) if isinstance(node, Elem)}
    return found | ({stmt.buffer} if isinstance(stmt, Store) else set())
