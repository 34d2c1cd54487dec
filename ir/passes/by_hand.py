"""Rewrites of one statement that a user requests by name: tiling, loop interchange, unrolling.

Each has a legality check, ``can_...``, which returns the reason against the rewrite, or None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dcarray.ir import dims
from dcarray.ir.analysis.effects import Reason
from dcarray.ir.analysis.independence import iteration_conflict
from dcarray.ir.nodes import (
    Branch,
    Call,
    Compute,
    Dim,
    Index,
    Loop,
    Nest,
    Region,
    Rows,
    Stmt,
    TimeTiles,
    While,
)
from dcarray.ir.renaming import remap_points, stmt_at


# ---- blocks of a statement's domain -------------------------------------------------------------------
def can_tile(stmt: Stmt, sizes: Sequence[int | None]) -> Reason | None:
    """Return why a statement cannot run block by block, else None; ``sizes`` has the blocks' length along
    each axis of its domain, None for the whole axis.  Only reductions and scans have dependent points."""
    if not isinstance(stmt, Compute):
        return Reason(f"{kind_of(stmt)} has no domain of its own")
    count = len(stmt.target.shape)
    if len(sizes) != count:
        return Reason(f"the domain has {count} axes, and there are {len(sizes)} sizes")
    kept = {ix.axis for ix in stmt.target.index}
    for axis, size in enumerate(sizes):
        if size is None:
            continue
        if axis not in kept:
            return Reason(f"the values along axis {axis} are folded, which has its own order")
        if axis == stmt.scan:
            return Reason(f"the values along axis {axis} are accumulated from the first to the last")
    return None


def tile(stmt: Compute, sizes: Sequence[int | None], names: Sequence[str]) -> Stmt:
    """Return the loops over blocks of a statement's domain, the first axis outermost; ``names`` has the loop
    variable of each axis whose size is not None."""
    left = iter(names)
    amap: list[Index] = []
    shape: list[Dim] = []
    loops: list[Loop] = []
    for axis, (extent, size) in enumerate(zip(stmt.target.shape, sizes, strict=True)):
        start: Dim = 0
        length = extent
        if size is not None:
            name = next(left)
            start = dims.symbol(name, None)
            length = _shorter(size, extent, start)
            loops.append(Loop(name, (0, extent, size), (), loc=stmt.loc))
        amap.append(Index(start, 1, axis))
        shape.append(length)
    nest: Stmt = remap_points(stmt, tuple(amap), tuple(shape))
    for loop in reversed(loops):
        nest = replace(loop, body=(nest,))
    return nest


def _shorter(size: int, extent: Dim, start: Dim) -> Dim:
    """Return the length of the block that begins at ``start``, which is shorter for the last block."""
    if size == 1 or (type(extent) is int and extent % size == 0):
        return size
    return dims.minimum(size, extent - start)


# ---- the order of loops -------------------------------------------------------------------------------
def can_swap(loop: Loop, region: Region) -> Reason | None:
    """Return why a loop and the only statement of its body, a loop, cannot be interchanged; None if they can:
    if the outer loop carries no dependence.  ``loop`` must be the very object that is in ``region``."""
    (inner,) = loop.body
    assert isinstance(inner, Loop)
    if any(loop.var in dims.free_symbols(bound) for bound in inner.bounds):
        return Reason(f"the range of {inner.var} depends on {loop.var}")
    reason = iteration_conflict(loop, region)
    return None if reason is None else Reason(f"of the loop over {loop.var}, {reason.text}")


def swap(loop: Loop) -> Loop:
    """Return the interchanged nest of a loop and the loop in it.  Neither is declared parallel."""
    (inner,) = loop.body
    assert isinstance(inner, Loop)
    return replace(inner, parallel=False, body=(replace(loop, parallel=False, body=inner.body),))


def perfect_nest(stmt: Stmt) -> tuple[Loop, ...]:
    """Return the loops of a perfect nest, from ``stmt`` inwards; empty if ``stmt`` is no loop."""
    loops: list[Loop] = []
    while isinstance(stmt, Loop):
        loops.append(stmt)
        if len(stmt.body) != 1:
            break
        (stmt,) = stmt.body
    return tuple(loops)


# ---- several iterations in one ------------------------------------------------------------------------
def can_unroll(stmt: Stmt, factor: int) -> Reason | None:
    """Return why ``factor`` iterations of a loop cannot be written one after the other."""
    if not isinstance(stmt, Loop):
        return Reason(f"{kind_of(stmt)} is not a loop with a range")
    many = dims.count(stmt.bounds)
    if type(many) is not int or type(stmt.bounds[2]) is not int:
        return Reason(f"it is not known how many iterations {stmt.var} takes")
    if many < factor:
        return Reason(f"the loop over {stmt.var} has only {many} iterations")
    return None


def unroll(loop: Loop, factor: int) -> tuple[Loop, ...]:
    """Return the loop unrolled by ``factor``, and a loop over the remaining iterations if there are any.
    Neither is declared parallel."""
    start, stop, step = loop.bounds
    many = dims.count(loop.bounds)
    assert type(many) is int
    full = dims.simplify(start + many // factor * factor * step)
    var = dims.symbol(loop.var, None)
    body = [stmt_at(stmt, {loop.var: var + k * step}) for k in range(factor) for stmt in loop.body]
    large = replace(loop, bounds=(start, full, factor * step), body=tuple(body), parallel=False)
    return (large, replace(loop, bounds=(full, stop, step), parallel=False)) if many % factor else (large,)


def kind_of(stmt: Stmt) -> str:
    """Return the kind of a statement in words, for messages, such as "a loop"."""
    names = {
        Compute: "a statement over a domain", Call: "a call", Nest: "a nest of fused statements",
        Rows: "a group of statements that run row by row", TimeTiles: "a group of time tiles",
        Loop: "a loop", While: "a while loop", Branch: "a branch",
    }  # fmt: skip
    return names[type(stmt)]
