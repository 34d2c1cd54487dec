"""Unroll-and-jam: several iterations of a loop at a time, with their inner loops fused.

Memory is read along several rows at once, which is faster than along one, and operands that the rows share
are loaded once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dcarray.ir import dims
from dcarray.lowering.kernel.nodes import (
    Affine,
    Assign,
    Declare,
    Elem,
    Expr,
    For,
    If,
    Index,
    Let,
    Local,
    Stmt,
    Store,
    Term,
    Update,
    affine,
)
from dcarray.lowering.kernel.walk import map_children, values, walk, walk_statements
from dcarray.lowering.nest.loop_nest import LoopNest

WAYS = 4  # rows at a time: more are too many memory streams, fewer too few
SHARED = 0.9  # the largest ratio of the loads of two jammed rows to those of two single rows that pays


def jam_rows(
    nest: LoopNest, body: tuple[Stmt, ...], start: Affine, stop: Affine, ways: int
) -> tuple[Stmt, ...]:
    """Return the outermost loop of a nest, from ``start`` (a multiple of ``ways``) to ``stop``, unrolled and
    jammed by ``ways``, and the loop over the remaining iterations."""
    extent = nest.arguments.extent(0)
    if ways == 1:
        return (For("i0", start, (stop, extent), 1, "serial", body),)
    whole = nest.arguments.integer(dims.simplify(nest.loops.extents[0] // ways * ways), "whole", "i0")
    several = unroll_and_jam(body, "i0", ways)
    return (
        For("i0", start, (stop, whole), ways, "serial", several),
        For("i0", start, (stop, extent), 1, "serial", body, 0, (whole,)),
    )


def jam_pairs(nest: LoopNest, body: tuple[Stmt, ...], loop: int) -> tuple[Stmt, ...]:
    """Return a nest's loops with the loop ``loop``, whose iterations are independent, jammed by two if two of
    its iterations share enough loads; else the same body."""
    *before, last = body
    if not isinstance(last, For):
        return body
    if last.var != f"i{loop}":
        return (*before, replace(last, body=jam_pairs(nest, last.body, loop)))
    if not all(isinstance(stmt, For) for stmt in last.body):
        return body  # accumulators there are kept in registers, which do not suffice for two
    both = unroll_and_jam(last.body, last.var, 2)
    if len(_loads(both)) > SHARED * 2 * len(_loads(last.body)):
        return body
    whole = nest.arguments.integer(dims.simplify(nest.loops.extents[loop] // 2 * 2), "whole", last.var)
    return (*before, replace(last, upper=(whole,), step=2, body=both), replace(last, lower=whole))


def _loads(body: Iterable[Stmt]) -> set[Expr]:
    """Return the loads of a body, each element once."""
    found: set[Expr] = set()
    for stmt in body:
        if isinstance(stmt, For):
            found |= _loads(stmt.body)
        nodes = (node for value in values(stmt) for node in walk(value))
        found |= {node for node in nodes if isinstance(node, Elem)}
    return found


def unroll_and_jam(body: tuple[Stmt, ...], var: str, ways: int) -> tuple[Stmt, ...]:
    """Return the body of a loop over ``var``, unrolled and jammed ``ways`` times.

    The body must have no calls, rows and stacks. Iterations must be independent, except for reductions into
    one location, which stay in order.
    """
    return _fuse_copies([_Copy(var, k, _names(body)).block(body) for k in range(ways)])


def _names(body: tuple[Stmt, ...]) -> frozenset[str]:
    """Return the locals that a body defines."""
    return frozenset(stmt.name for stmt in walk_statements(body) if isinstance(stmt, Let | Declare))


def _fuse_copies(copies: list[tuple[Stmt, ...]]) -> tuple[Stmt, ...]:
    """Return several copies of a block merged into one, in which loops with equal headers are fused."""
    made: list[Stmt] = []
    waiting: list[list[Stmt]] = [[] for _ in copies]

    def flush() -> None:
        for some in waiting:
            made.extend(some)
            some.clear()

    for stmts in zip(*copies, strict=True):
        loops = [stmt for stmt in stmts if isinstance(stmt, For)]
        if len({replace(loop, body=()) for loop in loops}) == 1:
            flush()
            made.append(replace(loops[0], body=_fuse_copies([loop.body for loop in loops])))
            continue
        for some, stmt in zip(waiting, stmts, strict=True):
            some.append(stmt)
    flush()
    return tuple(made)


class _Copy:
    """A rewriter that makes the copy of a loop's body for a later iteration, with renamed locals."""

    def __init__(self, var: str, offset: int, locals: frozenset[str]) -> None:
        self.var, self.offset, self.locals = var, offset, locals

    def block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(map(self.statement, body))

    def name(self, name: str) -> str:
        return f"{name}_{self.offset}" if name in self.locals else name

    def at(self, value: Affine) -> Affine:
        """Return an offset in terms of the first iteration's variable."""
        steps = [Term(t.coef * self.offset, t.arg) for t in value.terms if t.var == self.var]
        return affine(0, value, *steps)

    def value(self, expr: Expr) -> Expr:
        match expr:
            case Local(name, dtype):
                return Local(self.name(name), dtype)
            case Index(at):
                return Index(self.at(at))
            case Elem(at=at, more=more):
                return replace(expr, at=self.at(at), more=tuple((self.value(i), step) for i, step in more))
        return map_children(expr, self.value)

    def statement(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Let(name, value):
                return Let(self.name(name), self.value(value))
            case Declare(name, init, reassoc):
                return Declare(self.name(name), self.value(init), reassoc)
            case Update(name, op, value):
                return Update(self.name(name), op, self.value(value))
            case Assign(name, value):
                return Assign(self.name(name), self.value(value))
            case Store(buffer, at, value):
                return Store(buffer, self.at(at), self.value(value))
            case If(cond, then, orelse):
                return If(self.value(cond), self.block(then), self.block(orelse))
            case For():
                return replace(
                    stmt,
                    lower=self.at(stmt.lower),
                    upper=tuple(map(self.at, stmt.upper)),
                    floors=tuple(map(self.at, stmt.floors)),
                    body=self.block(stmt.body),
                )
        raise TypeError(f"not in a loop of which several iterations are taken at a time: {stmt!r}")
