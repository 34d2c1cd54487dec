"""Partial dead-store elimination: a store that is overwritten in large part keeps only the border.

``out = z.copy(); out[1:-1] = ...`` then copies the first and the last row alone."""

from __future__ import annotations

from dataclasses import replace

from dcarray.ir import dims
from dcarray.ir.analysis.effects import Reason
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.nodes import Call, Compute, Const, Group, Index, Load, Region, Stmt, Window
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.flow import Block, Facts
from dcarray.ir.windows import Box, box, compose, remap

#: Domains with fewer points are not worth more kernels.
MIN_POINTS = 1 << 16
#: At most one in so many points may be in the border.
PART = 4
#: The number of later statements that are tried.
_LOOK_AHEAD = 16


def is_fill(stmt: Stmt | None) -> bool:
    """Whether the statement copies or fills, so that points may be left out of it."""
    return isinstance(stmt, Compute) and stmt.combine is None and isinstance(stmt.body, Load | Const)


def can_shrink(block: Block, pos: int, at: int, target: Window) -> Reason | None:
    """Return why the fill at ``pos`` must write even the elements that the statement at ``at`` overwrites."""
    fill, facts = block.stmts[pos], block.facts
    assert isinstance(fill, Compute)
    name = fill.target.array
    outer, inner = box(fill.target), box(target)
    whole = all(ix.axis is not None for ix in fill.target.index)
    if target.array != name or outer is None or inner is None or not whole:
        return Reason(f"what overwrites {name} is no box in a box", (fill.target, target))
    if not isinstance(block.stmts[at], Compute | Call | Group):
        return Reason(f"{name} may not be overwritten", (target,))
    for (first, last), (low, high) in zip(outer, inner, strict=True):
        if not (dims.prove_le(first, low) and dims.prove_le(low, high) and dims.prove_le(high, last)):
            return Reason(f"what overwrites {name} may reach beyond it", (fill.target, target))
    if isinstance(fill.body, Load) and facts.roots[fill.body.window.array] == facts.roots[name]:
        return Reason(f"{name} is copied within itself", (fill.target,))
    for q in block.touching(name, pos):
        for window, _ in block.reads[q] if q <= at else ():
            if facts.overlap(window, target) is not False:
                return Reason(f"{name} is read before it is overwritten", (window, target))
    return None


def worth_shrinking(fill: Compute, target: Window, hints: SizeHints) -> Reason | None:
    """Return why shrinking the store does not pay; None if it does."""
    points = _points(fill.target, hints)
    if points < MIN_POINTS:
        return Reason(f"{points} points are too few for more kernels")
    left = points - _points(target, hints)
    return Reason("too little of it is overwritten") if left * PART > points else None


def _points(window: Window, hints: SizeHints) -> int:
    return hints.product(window.shape[ix.axis] for ix in window.index if ix.axis is not None)


# ---- action -------------------------------------------------------------------------------------------
def shrink(fill: Compute, target: Window) -> tuple[Compute, ...]:
    """Return the statements that write the border: before and behind the target along one axis after the
    other."""
    outer, inner = box(fill.target), box(target)
    assert outer is not None and inner is not None
    border: list[Compute] = []
    ends = list(outer)
    for axis, ((first, last), (low, high)) in enumerate(zip(outer, inner, strict=True)):
        for side in ((first, low), (high, last)):
            if dims.prove_eq(*side) is not True:
                border.append(_part(fill, outer, (*ends[:axis], side, *ends[axis + 1 :])))
        ends[axis] = (low, high)
    return tuple(border)


def _part(fill: Compute, outer: Box, part: Box) -> Compute:
    """Return the statement restricted to the points that write a box of the array."""
    shape = list(fill.target.shape)
    amap = [Index(0, 1, axis) for axis in range(len(shape))]
    for ix, (start, _), (first, last) in zip(fill.target.index, outer, part, strict=True):
        assert ix.axis is not None
        amap[ix.axis] = Index(dims.simplify(first - start), 1, ix.axis)
        shape[ix.axis] = dims.simplify(last - first)
    size, onto = tuple(shape), tuple(amap)
    return replace(fill, target=compose(fill.target, onto, size), body=remap(fill.body, onto, size))


def _overwritten_window(block: Block, pos: int, fill: Compute, hints: SizeHints, log: Log) -> Window | None:
    """Return the largest later write that allows ``fill`` to leave out its elements; None if there is
    none."""
    largest: Window | None = None
    for seen, at in enumerate(block.touching(fill.target.array, pos)):
        if seen >= _LOOK_AHEAD:
            break
        for target in block.writes[at]:
            if target.array != fill.target.array or worth_shrinking(fill, target, hints) is not None:
                continue
            reason = can_shrink(block, pos, at, target)
            if reason is not None:
                log.refused(
                    "partial_dead_stores", f"{target.array} is written in full: {reason.text}", fill.loc
                )
            elif largest is None or _points(target, hints) > _points(largest, hints):
                largest = target
    return largest


def _run(region: Region, log: Log) -> Region:
    if not any(map(is_fill, region.body)):
        return region
    hints = SizeHints(region)
    block = Block(region.body, Facts(region))
    body: list[Stmt] = []
    changed = False
    for pos, stmt in enumerate(region.body):
        window = None
        if isinstance(stmt, Compute) and is_fill(stmt):
            window = _overwritten_window(block, pos, stmt, hints, log)
        if window is None or not isinstance(stmt, Compute):
            body.append(stmt)
            continue
        changed = True
        body += shrink(stmt, window)
        log.done("partial_dead_stores", f"of {window.array} only the border is written", stmt.loc)
    return replace(region, body=tuple(body)) if changed else region


PARTIAL_DEAD_STORES = Pass("partial_dead_stores", _run)
