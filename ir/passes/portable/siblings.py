"""Loop fusion of siblings: statements over one domain, with data in common, run as one loop nest.

Several outputs are then made in one trip through memory, and a reduction runs along with its
element-wise neighbours.  Point by point gives the results of one after the other only if every dependence
inside the nest is between accesses at the same point.
"""

from __future__ import annotations

from typing import Any

from dcarray.ir import windows
from dcarray.ir.analysis.effects import Reason
from dcarray.ir.memo import kept
from dcarray.ir.nodes import Compute, Nest, Stmt
from dcarray.ir.passes.base import Log
from dcarray.ir.passes.exprs import size_bound
from dcarray.ir.passes.flow import Block, Facts, block_pass, reads_of, writes_of
from dcarray.ir.passes.match import unused_axes

#: Upper bounds of a nest: each statement needs registers, each array a stream of memory accesses.
MAX_PARTS = 8
MAX_ARRAYS = 16
MAX_NODES = 600
#: The number of earlier statements over the same domain that are tried.
_TRIES = 8


def _parts(stmt: Stmt | None) -> tuple[Compute, ...]:
    if isinstance(stmt, Nest):
        return stmt.body
    return (stmt,) if isinstance(stmt, Compute) else ()


# ---- legality -----------------------------------------------------------------------------------------
def can_share_points(first: Compute, second: Compute, facts: Facts) -> Reason | None:
    """Return why two statements may not run point by point, ``first`` before ``second`` at each."""
    pairs = [(window, first.target, first) for window, _ in reads_of(second)]
    pairs += [(window, second.target, second) for window, _ in reads_of(first)]
    for window, target, writer in pairs:
        if facts.overlap(target, window) is False:
            continue
        if writer.combine is not None:
            return Reason(f"{target.array} is complete only after the whole loop", (target, window))
        if not windows.same(target, window):
            return Reason(f"{target.array} is read and written at different points", (target, window))
    if facts.overlap(first.target, second.target) is not False:
        plain = first.combine is None and second.combine is None
        if not (plain and windows.same(first.target, second.target)):
            return Reason(
                f"{second.target.array} is written at different points", (first.target, second.target)
            )
    return None


def can_nest(first: tuple[Compute, ...], second: tuple[Compute, ...], facts: Facts) -> Reason | None:
    """Return why the statements may not, or should not, form one nest."""
    everything = first + second
    if any(part.scan is not None for part in everything):
        return Reason("one is a scan", tuple(part.target for part in everything))
    folded = {unused_axes(part.target) for part in everything if part.combine is not None}
    if len(folded) > 1:
        return Reason("they fold along different axes", tuple(part.target for part in everything))
    if len(everything) > MAX_PARTS:
        return Reason(f"one loop would hold more than {MAX_PARTS} statements")
    if not _signatures(first) & _signatures(second):
        return Reason("they have no data in common")
    touched = [w for part in everything for w in (*writes_of(part), *(r for r, _ in reads_of(part)))]
    arrays = {w.array for w in touched if w.index}  # scalars stay in registers
    if len(arrays) > MAX_ARRAYS:
        return Reason(f"one loop would touch more than {MAX_ARRAYS} arrays")
    if sum(size_bound(part.body) for part in everything) > MAX_NODES:
        return Reason("the loop body would be too large")
    for a in first:
        for b in second:
            reason = can_share_points(a, b, facts)
            if reason is not None:
                return reason
    return None


def can_move(block: Block, pos: int, other: int) -> Reason | None:
    """Return why the statement at ``pos`` may not change places with all between it and ``other``."""
    start, stop = min(pos, other), max(pos, other)
    for window, _ in block.reads[pos]:
        found = block.writer_between(start, stop, window)
        if found is not None:
            return Reason(f"a statement between them writes {found.array}", (window, found))
    for window in block.writes[pos]:
        found = block.toucher_between(start, stop, window)
        if found is not None:
            return Reason(f"a statement between them uses {found.array}", (window, found))
    return None


def _signatures(parts: tuple[Compute, ...]) -> set[Any]:
    """Return the accesses that traverse the whole domain, as arrays with strides: equal ones meet in the
    cache. Of a reduction, those along every axis that it reduces."""
    return set[Any]().union(*map(_signatures_of, parts))


@kept
def _signatures_of(part: Compute) -> frozenset[Any]:
    axes = frozenset(range(len(part.target.shape)))
    if part.combine is not None:
        still = set(windows.moving_axes(part.target))
        moved = [windows.moving_axes(window) for window, kind in reads_of(part) if kind == "load"]
        axes = frozenset[int]().union(*[along for along in moved if not still.issuperset(along)])
    touched = (part.target, *[read for read, _ in reads_of(part)])
    traversing = [w for w in touched if axes and axes.issubset(windows.moving_axes(w))]
    return frozenset([(w.array, tuple([(ix.stride, ix.axis) for ix in w.index])) for w in traversing])


def common_position(block: Block, head: int, pos: int) -> tuple[int, Reason | None]:
    """Return the position at which two statements can stand together, the earlier if possible; or why there
    is none."""
    reason = can_move(block, pos, head)
    if reason is not None and can_move(block, head, pos) is None:
        return pos, None
    return head, reason


# ---- action -------------------------------------------------------------------------------------------
def _sweep(block: Block, log: Log) -> bool:
    changed = False
    heads: dict[tuple[Any, ...], list[int]] = {}
    for pos in range(len(block.stmts)):
        parts = _parts(block.stmts[pos])
        if not parts:
            continue
        same_domain = heads.setdefault(parts[0].target.shape, [])
        home = _join(block, pos, parts, same_domain, log)
        changed |= home is not None
        if home is None:
            same_domain.append(pos)
    return changed


def _join(block: Block, pos: int, parts: tuple[Compute, ...], heads: list[int], log: Log) -> int | None:
    """Fuse the statement with an earlier nest; return the position of the nest."""
    for k in range(len(heads) - 1, max(-1, len(heads) - 1 - _TRIES), -1):
        head = heads[k]
        earlier = _parts(block.stmts[head])
        names = f"{_names(earlier)} and {_names(parts)}"
        reason = can_nest(earlier, parts, block.facts)
        home = head
        if reason is None:
            home, reason = common_position(block, head, pos)
        if reason is not None:
            log.refused("siblings", f"{names} stay apart: {reason.text}", parts[-1].loc)
            continue
        merge_statements(block, heads, (head, pos), home, Nest(earlier + parts, parts[-1].loc))
        log.done("siblings", f"{names} run in one loop", parts[-1].loc)
        return home
    return None


def merge_statements(block: Block, heads: list[int], places: tuple[int, int], home: int, whole: Stmt) -> None:
    """Replace the statements at two places by one at ``home``; ``heads`` are the places of statements that
    may still be fused, the first of the two among them."""
    for place in places:
        block.replace(place, None)
    block.replace(home, whole)
    heads.remove(places[0])
    heads.append(home)
    heads.sort()


def _names(parts: tuple[Compute, ...]) -> str:
    return ", ".join(dict.fromkeys(part.target.array for part in parts))


SIBLINGS = block_pass("siblings", _sweep)
