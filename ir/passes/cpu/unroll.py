"""Unrolling of time loops whose unrolled bodies can be tiled over time, see `time_tiling`.

A loop whose iterations all do the same to large arrays moves them through memory in every iteration.  Several
of its iterations are a chain of statements like any other, which is tiled.
"""

from __future__ import annotations

from dataclasses import replace

from dcarray.ir import dims, windows
from dcarray.ir.analysis.effects import Reason, families, reads, writes
from dcarray.ir.nodes import Compute, Loop, Part, Region, Size, Stmt, TimeTiles
from dcarray.ir.passes import by_hand
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.nested import each_loop
from dcarray.ir.statements import flatten

from .time_tiling import CacheLimits, time_tiling


# ---- legality -----------------------------------------------------------------------------------------
def can_unroll(loop: Loop, many: int, region: Region) -> Reason | None:
    """Return why a loop cannot be unrolled into a chain of at most ``many`` statements; None if it can."""
    root = families(region)
    written = {root[window.array] for stmt in loop.body for window in writes(stmt)}
    start, stop, step = loop.bounds
    if not type(start) is type(stop) is type(step) is int:
        return Reason(f"it is not known how many iterations {loop.var} takes")
    if not all(isinstance(stmt, Part) for stmt in loop.body):
        return Reason("it holds more than computations")
    if 2 * len(loop.body) > many or len(range(start, stop, step)) < 2:
        return Reason("there are too few iterations, or too many statements in one")
    for stmt in loop.body:
        parts = [part for part in flatten((stmt,)) if isinstance(part, Compute)]
        roots = [expr for part in parts for expr in part.exprs]
        values = [node.dim for node in windows.walk(*roots) if isinstance(node, Size)]
        for window in (*writes(stmt), *reads(stmt)):
            values += [*window.shape, *(ix.stride for ix in window.index)]
            if root[window.array] in written:  # the place of others may move
                values += [ix.offset for ix in window.index]
        if any(loop.var in dims.free_symbols(value) for value in values):
            return Reason(f"its iterations differ in {loop.var}")
    return None


# ---- action -------------------------------------------------------------------------------------------
def unroll(limits: CacheLimits) -> Pass:
    """Return the pass for a machine on which time tiles have these limits."""
    chains = time_tiling(limits)

    def run(region: Region, log: Log) -> Region:
        def replaced(loop: Loop, region: Region, position: int) -> tuple[tuple[Stmt, ...], tuple[()]] | None:
            bands = tiled(loop, region, position)
            if bands is None:
                return None
            log.done("unroll", f"some iterations of the loop over {loop.var} run in bands", loop.loc)
            return bands, ()

        return each_loop(region, replaced)

    def tiled(loop: Loop, region: Region, position: int) -> tuple[Stmt, ...] | None:
        if can_unroll(loop, limits.parts, region) is not None:
            return None
        times = min(len(range(*loop.bounds)), limits.parts // len(loop.body))
        large, *rest = by_hand.unroll(loop, times)
        body = (*region.body[:position], large, *region.body[position + 1 :])
        new = chains.fn(replace(region, body=body), Log()).body[position]
        assert isinstance(new, Loop)
        if not any(isinstance(stmt, TimeTiles) for stmt in new.body):
            return None
        return (new, *(part for few in rest for part in tiled(few, region, position) or (few,)))

    return Pass("unroll", run)
