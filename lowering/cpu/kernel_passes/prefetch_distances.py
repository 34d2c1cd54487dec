"""Software prefetch in loops that read several rows at a time.

A hardware prefetcher follows a few streams, up to the end of a page, and fetches nothing while a loop reads
rows that are in a cache already.  So each of several loops over the same rows prefetches its share of the
next rows.  A loop that alone reads its rows, or the first of strip-fused loops, prefetches along its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dcarray.lowering.kernel.nodes import Affine, Elem, Expr, For, Stmt, Term, affine
from dcarray.lowering.kernel.walk import map_children, map_values, values, walk
from dcarray.lowering.nest.access import unit_step

__all__ = ["with_prefetches"]

NEAR, FAR = 256, 2048  # prefetch distances in bytes: into the first and into the second cache

Row = tuple[Term, ...]  # the terms of an offset: equal for elements near one another in a row
Wants = dict[tuple[str, Row], tuple[Affine, ...]]


def with_prefetches(body: tuple[Stmt, ...], var: str, ways: int) -> tuple[Stmt, ...]:
    """Return ``ways`` jammed iterations of the loop over ``var`` with prefetch distances at their loads.

    Loads that move with ``var``, and with unit stride in an inner loop, are assumed to come from memory.
    """
    loops = list(_loops(body))
    rows = [_rows(loop, var) for loop, _ in loops]
    wants: list[Wants] = []
    for k, own in enumerate(rows):
        found: Wants = {}
        for buffer, several in own.items():
            sharing = [j for j, others in enumerate(rows) if buffer in others]
            pieces = {id(loops[j][1]) for j in sharing}
            fuse_strips = len(sharing) == 1 or (len(pieces) == 1 and loops[k][1] is not None)
            for r, row in enumerate(several):
                if fuse_strips:
                    size = several[row]
                    if not any(row in rows[j][buffer] for j in sharing if j < k):  # else it is in the cache
                        found[buffer, row] = (affine(NEAR // size), affine(FAR // size))
                elif r * len(sharing) // len(several) == sharing.index(k):
                    found[buffer, row] = (_next(row, var, ways),)
        wants.append(found)
    order = iter(wants)
    return tuple(_with(stmt, order) for stmt in body)


def _loops(body: tuple[Stmt, ...], around: For | None = None) -> Iterator[tuple[For, For | None]]:
    """Return the vector loops in a body, in their order, each with its enclosing loop."""
    for stmt in body:
        if isinstance(stmt, For):
            if stmt.kind == "vector":
                yield stmt, around
            else:
                yield from _loops(stmt.body, stmt)


def _rows(loop: For, var: str) -> dict[str, dict[Row, int]]:
    """Return the rows of each buffer that a loop reads with unit stride, and the bytes of their elements."""
    found: dict[str, dict[Row, int]] = {}
    for stmt in loop.body:
        for node in (node for value in values(stmt) for node in walk(value)):
            if isinstance(node, Elem) and not node.more and _along(node, loop.var, var):
                found.setdefault(node.buffer, {})[node.at.terms] = node.dtype.itemsize
    return found


def _along(node: Elem, inner: str, outer: str) -> bool:
    """Whether a load moves with unit stride in the inner loop, and in the outer loop, too."""
    return unit_step(node.at, inner) == 1 and any(term.var == outer for term in node.at.terms)


def _next(row: Row, var: str, ways: int) -> Affine:
    """Return the distance in elements to the same column ``ways`` iterations of ``var`` later."""
    return affine(0, *(Term(term.coef * ways, term.arg) for term in row if term.var == var))


def _with(stmt: Stmt, wants: Iterator[Wants]) -> Stmt:
    if not isinstance(stmt, For):
        return stmt
    if stmt.kind != "vector":
        return replace(stmt, body=tuple(_with(inner, wants) for inner in stmt.body))
    left = dict(next(wants))  # once for each row

    def asking(expr: Expr) -> Expr:
        made = map_children(expr, asking)
        if isinstance(made, Elem) and not made.more:
            prefetch = left.pop((made.buffer, made.at.terms), ())
            return replace(made, prefetch=prefetch) if prefetch else made
        return made

    return replace(stmt, body=tuple(map_values(inner, asking) for inner in stmt.body))
