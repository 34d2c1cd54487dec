"""Strip-wise fusion of loops along the same rows, so that data one loop loads is in the first-level cache for
the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dcarray.lowering.kernel.nodes import Affine, For
from dcarray.lowering.nest.loop_nest import Block, variable

__all__ = ["fuse_strips"]

STRIP = "b1"  # the loop over strips of a row, whose sums are carried from one strip to the next


def fuse_strips(parts: Sequence[Block], whole: Sequence[bool], apart: Callable[[int, int], bool]) -> Block:
    """Return the parts of a row loop's body joined, with loops along a whole row fused strip by strip into a
    part that is strip-mined already, where possible.  The other parts stay in order.

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
    """Return a part fused into each strip of another, at its beginning or end; None if loops differ."""
    *before, loop = part
    places = [k for k, stmt in enumerate(host) if isinstance(stmt, For)]
    if not isinstance(loop, For) or loop.kind != "vector" or len(places) != 1:
        return None
    strips = host[places[0]]
    assert isinstance(strips, For)
    inner = [stmt for stmt in strips.body if isinstance(stmt, For)]
    start = variable(STRIP)
    if strips.var != STRIP or strips.kind != "serial" or [stmt.lower for stmt in inner] != [start]:
        return None
    (along,) = inner
    alike = (loop.var, loop.lower, loop.upper, loop.step, loop.floors)
    if alike != (along.var, Affine(), strips.upper, along.step, ()) or strips.lower != Affine():
        return None
    piece = replace(loop, lower=start, upper=along.upper)
    body = (piece, *strips.body) if first else (*strips.body, piece)
    made = replace(strips, body=body)
    return (*host[: places[0]], *before, made, *host[places[0] + 1 :])
