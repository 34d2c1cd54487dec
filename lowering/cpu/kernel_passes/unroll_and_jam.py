"""Unroll-and-jam: several iterations of a loop at a time, with their inner loops fused.

Memory is read along several rows at once, which is faster than along one, and operands that the rows share
are loaded once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dcarray.ir import dims
from dcarray.lowering.kernel import nodes as k
from dcarray.lowering.kernel.walk import map_children, values, walk, walk_statements
from dcarray.lowering.nest.loop_nest import LoopNest

WAYS = 4  # rows at a time: more are too many memory streams, fewer too few
COMMON = "z"  # the first letter of locals that are the same for all rows
SHARED = 0.9  # the largest ratio of the loads of two jammed rows to those of two single rows that pays


def jam_rows(
    nest: LoopNest, body: tuple[k.Stmt, ...], start: k.Affine, stop: k.Affine, ways: int
) -> tuple[k.Stmt, ...]:
    """Return the outermost loop of a nest, from ``start`` (a multiple of ``ways``) to ``stop``, unrolled and
    jammed by ``ways``, and the loop over the remaining iterations."""
    extent = nest.arguments.extent(0)
    if ways == 1:
        return (k.For("i0", start, (stop, extent), 1, "serial", body),)
    whole = nest.arguments.integer(dims.simplify(nest.loops.extents[0] // ways * ways), "whole", "i0")
    several = unroll_and_jam(body, "i0", ways)
    return (
        k.For("i0", start, (stop, whole), ways, "serial", several),
        k.For("i0", start, (stop, extent), 1, "serial", body, 0, (whole,)),
    )


def jam_pairs(nest: LoopNest, body: tuple[k.Stmt, ...], loop: int) -> tuple[k.Stmt, ...]:
    """Return a nest's loops with the loop ``loop``, whose iterations are independent, jammed by two if two of
    its iterations share enough loads; else the same body."""
    *before, last = body
    if not isinstance(last, k.For):
        return body
    if last.var != f"i{loop}":
        return (*before, replace(last, body=jam_pairs(nest, last.body, loop)))
    if not all(isinstance(stmt, k.For) for stmt in last.body):
        return body  # accumulators there are kept in registers, which do not suffice for two
    both = unroll_and_jam(last.body, last.var, 2)
    if len(_loads(both)) > SHARED * 2 * len(_loads(last.body)):
        return body
    whole = nest.arguments.integer(dims.simplify(nest.loops.extents[loop] // 2 * 2), "whole", last.var)
    return (*before, replace(last, upper=(whole,), step=2, body=both), replace(last, lower=whole))


def _loads(body: Iterable[k.Stmt]) -> set[k.Expr]:
    """Return the loads of a body, each element once."""
    loads: set[k.Expr] = set()
    for stmt in body:
        if isinstance(stmt, k.For):
            loads |= _loads(stmt.body)
        nodes = (node for value in values(stmt) for node in walk(value))
        loads |= {node for node in nodes if isinstance(node, k.Elem)}
    return loads


def unroll_and_jam(body: tuple[k.Stmt, ...], var: str, ways: int) -> tuple[k.Stmt, ...]:
    """Return the body of a loop over ``var``, unrolled and jammed ``ways`` times.

    The body must have no calls, rows and stacks. Iterations must be independent, except for reductions into
    one location, which stay in order.
    """
    return _fuse_copies([_Copy(var, k, _names(body)).block(body) for k in range(ways)])


def _names(body: tuple[k.Stmt, ...]) -> frozenset[str]:
    """Return the locals and the stacks that a body defines."""
    return frozenset(s.name for s in walk_statements(body) if isinstance(s, k.Let | k.Declare | k.Stack))


def _fuse_copies(copies: list[tuple[k.Stmt, ...]]) -> tuple[k.Stmt, ...]:
    """Return several copies of a block merged into one, in which loops with equal headers are fused."""
    fused: list[k.Stmt] = []
    waiting: list[list[k.Stmt]] = [[] for _ in copies]

    def flush() -> None:
        for some in waiting:
            fused.extend(some)
            some.clear()

    for stmts in zip(*copies, strict=True):
        first = stmts[0]
        if isinstance(first, k.Let | k.Declare | k.Assign) and first.name.startswith(COMMON):
            flush()
            fused.append(first)
            continue
        if isinstance(first, k.If) and len({stmt.cond for stmt in stmts if isinstance(stmt, k.If)}) == 1:
            flush()
            then, orelse = ([getattr(stmt, side) for stmt in stmts] for side in ("then", "orelse"))
            fused.append(k.If(first.cond, _fuse_copies(then), _fuse_copies(orelse)))
            continue
        loops = [stmt for stmt in stmts if isinstance(stmt, k.For)]
        if len({replace(loop, body=()) for loop in loops}) == 1:
            flush()
            fused.append(replace(loops[0], body=_fuse_copies([loop.body for loop in loops])))
            continue
        for some, stmt in zip(waiting, stmts, strict=True):
            some.append(stmt)
    flush()
    return tuple(fused)


class _Copy:
    """A rewriter that makes the copy of a loop's body for a later iteration, with renamed locals."""

    def __init__(self, var: str, offset: int, locals: frozenset[str]) -> None:
        self.var, self.offset, self.locals = var, offset, locals

    def block(self, body: tuple[k.Stmt, ...]) -> tuple[k.Stmt, ...]:
        return tuple(map(self.statement, body))

    def name(self, name: str) -> str:
        own = 0 if name.startswith(COMMON) else self.offset
        return f"{name}_{own}" if name in self.locals else name

    def at(self, value: k.Affine) -> k.Affine:
        """Return an offset in terms of the first iteration's variable."""
        steps = [k.Term(t.coef * self.offset, t.arg) for t in value.terms if t.var == self.var]
        return k.affine(
            value.const, *(k.Term(t.coef, t.arg, t.var and self.name(t.var)) for t in value.terms), *steps
        )

    def value(self, expr: k.Expr) -> k.Expr:
        match expr:
            case k.Local(name, dtype):
                return k.Local(self.name(name), dtype)
            case k.Index(at):
                return k.Index(self.at(at))
            case k.Elem(at=at, more=more):
                indices = tuple((self.value(i), step) for i, step in more)
                return replace(expr, buffer=self.name(expr.buffer), at=self.at(at), more=indices)
        return map_children(expr, self.value)

    def statement(self, stmt: k.Stmt) -> k.Stmt:
        match stmt:
            case k.Let(name, value):
                return k.Let(self.name(name), self.value(value))
            case k.Declare(name, init, reassoc):
                return k.Declare(self.name(name), self.value(init), reassoc)
            case k.Update(name, op, value):
                return k.Update(self.name(name), op, self.value(value))
            case k.Assign(name, value):
                return k.Assign(self.name(name), self.value(value))
            case k.Store(buffer, at, value):
                return k.Store(self.name(buffer), self.at(at), self.value(value))
            case k.Stack(name):
                return replace(stmt, name=self.name(name))
            case k.If(cond, then, orelse):
                return k.If(self.value(cond), self.block(then), self.block(orelse))
            case k.For():
                return replace(
                    stmt,
                    lower=self.at(stmt.lower),
                    upper=tuple(map(self.at, stmt.upper)),
                    floors=tuple(map(self.at, stmt.floors)),
                    body=self.block(stmt.body),
                )
        raise TypeError(f"not in a loop of which several iterations are taken at a time: {stmt!r}")
