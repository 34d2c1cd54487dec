"""Loop fusion of siblings: statements over one domain, with data in common, run as one loop nest.

Several outputs are then made in one trip through memory, and a reduction runs along with its
element-wise neighbours.  Point by point gives the results of one after the other only if every dependence
inside the nest is between accesses at the same point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dcarray.ir import windows
from dcarray.ir.analysis.effects import Reason, computes_of, domain, nest_conflict
from dcarray.ir.memo import kept
from dcarray.ir.nodes import Compute, Nest, Part, Region, Rows, Stmt
from dcarray.ir.passes.base import Log
from dcarray.ir.passes.exprs import size_bound
from dcarray.ir.passes.flow import Block, Facts, block_pass, reads_of, writes_of
from dcarray.ir.passes.fusion_profit import NEST, Change, loss
from dcarray.ir.passes.match import unused_axes
from dcarray.ir.records import record


def parts_of(stmt: Stmt | None, kind: type[Nest | Rows]) -> tuple[Part, ...]:
    """Return the statements of a group of the given kind, or the statement alone if it may join such a group;
    empty if it may not."""
    if isinstance(stmt, kind):
        return stmt.body
    return (stmt,) if isinstance(stmt, Compute if kind is Nest else Part) else ()


# ---- legality -----------------------------------------------------------------------------------------
def can_nest(everything: tuple[Compute, ...], region: Region) -> Reason | None:
    """Return why the statements may not form one nest."""
    if any(part.scan is not None for part in everything):
        return Reason("one is a scan", tuple(part.target for part in everything))
    folded = {unused_axes(part.target) for part in everything if part.combine is not None}
    if len(folded) > 1:
        return Reason("they fold along different axes", tuple(part.target for part in everything))
    return nest_conflict(everything, region)


def worth_nesting(first: tuple[Compute, ...], second: tuple[Compute, ...]) -> Reason | None:
    """Return why fusing the two groups into one nest does not pay; None if it does."""
    everything = first + second
    if len(everything) > NEST.statements:
        return Reason(f"one loop would hold more than {NEST.statements} statements")
    if why := loss(Change(len(_signatures(first) & _signatures(second)))):
        return Reason(why)
    touched = [w for part in everything for w in (*writes_of(part), *(r for r, _ in reads_of(part)))]
    arrays = {w.array for w in touched if w.index}  # scalars stay in registers
    if len(arrays) > NEST.arrays:
        return Reason(f"one loop would touch more than {NEST.arrays} arrays")
    if sum(size_bound(part.body) for part in everything) > NEST.nodes:
        return Reason("the loop body would be too large")
    return None


def can_move(block: Block, pos: int, other: int) -> Reason | None:
    """Return why the statement at ``pos`` may not be moved to the position ``other``; None if it may."""
    start, stop = min(pos, other), max(pos, other)
    for window, _ in block.reads[pos]:
        clash = block.writer_between(start, stop, window)
        if clash is not None:
            return Reason(f"a statement between them writes {clash.array}", (window, clash))
    for window in block.writes[pos]:
        clash = block.toucher_between(start, stop, window)
        if clash is not None:
            return Reason(f"a statement between them uses {clash.array}", (window, clash))
    return None


def _signatures(parts: tuple[Compute, ...]) -> set[Any]:
    """Return the accesses that traverse the whole domain (of a reduction, all reduced axes), each as an array
    with strides: equal ones of two statements share cache lines."""
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
    """Return the position at which two statements can be fused, the earlier one if possible, and None; or a
    reason if there is none."""
    reason = can_move(block, pos, head)
    if reason is not None and can_move(block, head, pos) is None:
        return pos, None
    return head, reason


# ---- action -------------------------------------------------------------------------------------------
@record(frozen=True, slots=True)
class Grouping:
    """The rules by which a pass joins statements to groups.

    Attributes
    ----------
    name : str
        The name of the pass.
    kind : type
        The class of the groups.
    tries : int
        The number of earlier statements that are tried.
    key : callable
        A key of a group; only groups with equal keys are tried together.
    group : callable
        ``group(earlier, later, facts)`` is the fused group, or why there is none; None if that needs no note.
    words : tuple of str
        The verbs of notes, for statements that are grouped and for others.
    """

    name: str
    kind: type[Nest | Rows]
    tries: int
    key: Callable[[tuple[Part, ...]], object]
    group: Callable[[Stmt | None, Stmt | None, Facts], Stmt | Reason | None]
    words: tuple[str, str]


def group_statements(block: Block, log: Log, how: Grouping) -> bool:
    """Group each statement of a block with an earlier one, where that can be; returns whether any was."""
    changed = False
    groups: dict[object, list[int]] = {}
    for pos in range(len(block.stmts)):
        parts = parts_of(block.stmts[pos], how.kind)
        if not parts:
            continue
        heads = groups.setdefault(how.key(parts), [])
        if _join(block, pos, heads, log, how):
            changed = True
        else:
            heads.append(pos)
    return changed


def _join(block: Block, pos: int, heads: list[int], log: Log, how: Grouping) -> bool:
    """Group the statement at a position with one of some earlier ones; returns whether it was."""
    stmt = block.stmts[pos]
    for head in heads[: -how.tries - 1 : -1]:
        whole = how.group(block.stmts[head], stmt, block.facts)
        if whole is None:
            continue
        both = f"{_names(block.stmts[head])} and {_names(stmt)}"
        loc = parts_of(stmt, how.kind)[-1].loc
        home, reason = head, None
        if not isinstance(whole, Reason):
            home, reason = common_position(block, head, pos)
        if reason is not None or isinstance(whole, Reason):
            log.refused(how.name, f"{both} {how.words[1]}: {reason or whole}", loc)
            continue
        block.replace(head, None)
        block.replace(pos, None)
        block.replace(home, whole)
        heads[:] = sorted([home, *(other for other in heads if other != head)])
        log.done(how.name, f"{both} {how.words[0]}", loc)
        return True
    return False


def _names(stmt: Stmt | None) -> str:
    return ", ".join(dict.fromkeys(window.array for window in writes_of(stmt)))


def _nest(earlier: Stmt | None, stmt: Stmt | None, facts: Facts) -> Nest | Reason:
    assert isinstance(earlier, Compute | Nest) and isinstance(stmt, Compute | Nest)
    first, second = computes_of(earlier), computes_of(stmt)
    reason = worth_nesting(first, second) or can_nest(first + second, facts.region)
    return reason or Nest(first + second, second[-1].loc)


_NESTS = Grouping(
    "siblings", Nest, 8, lambda parts: domain(parts[0]), _nest, ("run in one loop", "stay apart")
)
SIBLINGS = block_pass("siblings", lambda block, log: group_statements(block, log, _NESTS))
