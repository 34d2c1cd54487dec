"""What is asked of memory before it is loaded, where several rows at a time are gone along.

A processor fetches ahead along a few rows on its own, up to the end of a page, and nothing while a loop goes
over rows that are in a cache already.  So each of several loops over the same rows asks for its share of the
rows that come next, and a loop that is the only one for what is a little further on; so does the first of
those that go along the rows piece by piece together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dcarray.lowering.kernel.nodes import Affine, Elem, Expr, For, Stmt, Term, affine
from dcarray.lowering.kernel.walk import map_children, map_values, values, walk

__all__ = ["OUT_OF_CACHE", "with_prefetches"]

OUT_OF_CACHE = 1 << 19  # elements that no near cache holds
NEAR, FAR = 256, 2048  # bytes ahead of what is loaded: for the first and for the second cache

Row = tuple[Term, ...]  # of the offset: the same for all elements near one another in a row
Wants = dict[tuple[str, Row], tuple[Affine, ...]]


def with_prefetches(body: tuple[Stmt, ...], var: str, ways: int) -> tuple[Stmt, ...]:
    """The body of a loop with loads that ask for what comes later, too.

    Parameters
    ----------
    body : tuple of Stmt
        Several turns of the loop at once.
    var : str
        The loop's variable: what moves with it, and element by element in an inner loop, comes from memory.
    ways : int
        How many turns.

    Returns
    -------
    tuple of Stmt
        What it computes is the same.
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
                    if not any(row in rows[j][buffer] for j in sharing if j < k):  # else it is there by then
                        found[buffer, row] = (affine(NEAR // size), affine(FAR // size))
                elif r * len(sharing) // len(several) == sharing.index(k):
                    found[buffer, row] = (_next(row, var, ways),)
        wants.append(found)
    order = iter(wants)
    return tuple(_with(stmt, order) for stmt in body)


def _loops(body: tuple[Stmt, ...], around: For | None = None) -> Iterator[tuple[For, For | None]]:
    """The vector loops in a body, in their order, each with the loop that it is in."""
    for stmt in body:
        if isinstance(stmt, For):
            if stmt.kind == "vector":
                yield stmt, around
            else:
                yield from _loops(stmt.body, stmt)


def _rows(loop: For, var: str) -> dict[str, dict[Row, int]]:
    """The rows of each buffer that a loop goes along, and the bytes of their elements."""
    found: dict[str, dict[Row, int]] = {}
    for stmt in loop.body:
        for node in (node for value in values(stmt) for node in walk(value)):
            if isinstance(node, Elem) and not node.more and _along(node, loop.var, var):
                found.setdefault(node.buffer, {})[node.at.terms] = node.dtype.itemsize
    return found


def _along(node: Elem, inner: str, outer: str) -> bool:
    """Does it move element by element with one loop, and with the other, too?"""
    steps = [term for term in node.at.terms if term.var == inner]
    return steps == [Term(1, None, inner)] and any(term.var == outer for term in node.at.terms)


def _next(row: Row, var: str, ways: int) -> Affine:
    """The elements to the same place in the row so many turns later."""
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
