"""Fusion of loops along a row with the sum of that row, leaf by leaf, so that data one loop loads is in the
first-level cache for the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dcarray.lowering.kernel.nodes import Affine, Assign, Declare, For, Index, Let, Local, Stmt
from dcarray.lowering.nest.loop_nest import Block, variable

__all__ = ["fuse_strips"]

PARTS, LEAVES = "b5", "b6"  # the loops over the parts of a row that is summed, and over their leaves


def fuse_strips(parts: Sequence[Block], whole: Sequence[bool], apart: Callable[[int, int], bool]) -> Block:
    """Return the parts of a row loop's body joined, with loops along a whole row fused leaf by leaf into a
    sum of the row, where possible.  The other parts stay in order.

    ``whole`` says of each part whether it may be fused so, ``apart(j, k)`` whether two parts are independent.
    The operations on each element stay in order.
    """
    left: list[Block | None] = list(parts)
    for k, part in enumerate(parts):
        for other in range(len(parts)) if whole[k] else ():
            host = left[other]
            between = range(min(k, other), max(k, other) + 1)
            if host is None or other == k or not all(j == k or apart(j, k) for j in between):
                continue
            if (both := _together(part, host, k < other)) is not None:
                left[k], left[other] = None, both
                break
    return tuple(stmt for block in left for stmt in block or ())


def _together(part: Block, host: Block, first: bool) -> Block | None:
    """Return a part fused into each leaf of a row's sum, at its beginning or end; None if loops differ."""
    *before, loop = part
    if not isinstance(loop, For) or loop.kind != "vector" or (loop.step, loop.floors) != (1, ()):
        return None
    at = next((k for k, stmt in enumerate(host) if isinstance(stmt, For) and stmt.var == PARTS), None)
    begin = [s.init for s in host[:at] if isinstance(s, Declare) and isinstance(s.init, Index)]
    size = next((s.value for s in host[:at] if isinstance(s, Let) and isinstance(s.value, Index)), None)
    if (
        at is None
        or loop.lower != Affine()
        or begin != [Index(Affine())]
        or (size,) != (*map(Index, loop.upper),)
    ):
        return None

    def fused(stmt: Stmt) -> Stmt:
        """Return the loop over parts with the piece in the loop over the leaves of each."""
        if not isinstance(stmt, For) or stmt.var not in (PARTS, LEAVES):
            return stmt
        if stmt.var == PARTS:
            return replace(stmt, body=tuple(map(fused, stmt.body)))
        move = next(s for s in stmt.body if isinstance(s, Assign))
        assert isinstance(move.value, Local)
        old = Local(move.name, move.value.dtype)
        low = next(s.name for s in stmt.body if isinstance(s, Let) and s.value == old)
        piece = replace(loop, lower=variable(low), upper=(variable(move.value.name),))
        place = stmt.body.index(move) + 1 if first else len(stmt.body)
        return replace(stmt, body=(*stmt.body[:place], piece, *stmt.body[place:]))

    return (*host[:at], *before, fused(host[at]), *host[at + 1 :])
