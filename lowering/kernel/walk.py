"""Visitors of the statements and expressions of kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from . import nodes as k


def map_children(expr: k.Expr, change: Callable[[k.Expr], k.Expr]) -> k.Expr:
    """Return the expression with ``change`` applied to its direct operands."""
    match expr:
        case k.Elem(more=more) if more:
            return replace(expr, more=tuple((change(index), stride) for index, stride in more))
        case k.Op(args=args) | k.NumpyOp(args=args):
            return replace(expr, args=tuple(map(change, args)))
    return expr


def map_values(stmt: k.Stmt, change: Callable[[k.Expr], k.Expr]) -> k.Stmt:
    """Return a statement without a body, with ``change`` applied to the expressions in it."""
    match stmt:
        case k.Let(value=value) | k.Update(value=value) | k.Assign(value=value) | k.Store(value=value):
            return replace(stmt, value=change(value))
        case k.Declare(init=init):
            return replace(stmt, init=change(init))
        case k.Draw(generator=generator, args=args):
            return replace(stmt, generator=change(generator), args=tuple(map(change, args)))
        case k.Invoke(args=args):
            return replace(stmt, args=tuple(map(change, args)))
    return stmt


def values(stmt: k.Stmt) -> tuple[k.Expr, ...]:
    """Return the expressions in a statement without a body; none for other statements."""
    match stmt:
        case k.Let(value=value) | k.Update(value=value) | k.Assign(value=value) | k.Store(value=value):
            return (value,)
        case k.Declare(init=init):
            return (init,)
        case k.Draw(generator=generator, args=args):
            return (generator, *args)
        case k.Invoke(args=args):
            return args
    return ()


def walk(expr: k.Expr) -> Iterator[k.Expr]:
    """Yield an expression and all its subexpressions."""
    yield expr
    match expr:
        case k.Elem(more=more):
            for index, _ in more:
                yield from walk(index)
        case k.Op(args=args) | k.NumpyOp(args=args):
            for arg in args:
                yield from walk(arg)


def operations(body: Iterable[k.Stmt]) -> Iterator[k.Op]:
    """Yield the operations in the expressions of statements, without those nested in them."""
    for stmt in body:
        for value in values(stmt):
            yield from (node for node in walk(value) if isinstance(node, k.Op))


def walk_statements(body: Iterable[k.Stmt], into: tuple[type, ...] = (k.For, k.Threads)) -> Iterator[k.Stmt]:
    """Yield statements and all statements nested in them; those of `For` and `Threads` if these are in
    ``into``."""
    for stmt in body:
        yield stmt
        inner: tuple[k.Stmt, ...] = ()
        match stmt:
            case k.For(body=inner) | k.Threads(body=inner):
                inner = inner if isinstance(stmt, into) else ()
            case k.Repeat(head, _, rest):
                inner = (*head, *rest)
            case k.If(_, then, orelse):
                inner = (*then, *orelse)
        yield from walk_statements(inner, into)


def shared_stacks(body: Iterable[k.Stmt]) -> list[k.Stack]:
    """Return the stack buffers that the threads of a block share."""
    stacks = (stmt for stmt in walk_statements(body, into=(k.For,)) if isinstance(stmt, k.Stack))
    return [stack for stack in stacks if not stack.per_thread]


def is_contiguous(body: tuple[k.Stmt, ...], var: str) -> bool:
    """Whether all accesses in statements that depend on ``var`` have unit stride in it."""
    moving = [stmt.at for stmt in body if isinstance(stmt, k.Store)]
    for root in (root for stmt in body for root in values(stmt)):
        for node in walk(root):
            if isinstance(node, k.Elem):
                moving.append(node.at)
                if node.more:
                    return False
    plain = all(isinstance(stmt, k.Let | k.Update | k.Assign | k.Store | k.Declare) for stmt in body)
    terms = [term for at in moving for term in at.terms if term.var == var]
    return plain and bool(terms) and all(term.arg is None and term.coef in (1, -1) for term in terms)


def updates(body: Iterable[k.Stmt]) -> Iterator[k.Update]:
    """Yield the updates of variables in statements, including nested ones."""
    return (stmt for stmt in walk_statements(body) if isinstance(stmt, k.Update))


def buffers(stmt: k.Stmt) -> set[str]:
    """Return the names of the buffers that a statement accesses."""
    if isinstance(stmt, k.For | k.Threads):
        return {name for inner in stmt.body for name in buffers(inner)}
    if isinstance(stmt, k.NumpyCall):
        return {row.buffer for row in (*stmt.reads, stmt.write)}
    names = {node.buffer for root in values(stmt) for node in walk(root) if isinstance(node, k.Elem)}
    return names | ({stmt.buffer} if isinstance(stmt, k.Store) else set())
