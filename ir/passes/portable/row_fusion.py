"""Loop fusion of the outer axes: statements whose dependences stay within a row run row by row in one kernel.

A row that one statement has read or written is still in the cache when the next one needs it.  A softmax (a
maximum, an exponential with its sum, a division) so moves its data through memory once.
"""

from __future__ import annotations

from dcarray.ir.analysis.effects import Reason, computes_of, domain, folds_rows, row_targets
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.nodes import Compute, Part, Region, Rows, Stmt, Window
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.flow import Block, Facts, each_block, reads_of, writes_of
from dcarray.ir.windows import disjoint_rows, moving_axes

from .siblings import common_position, merge_statements

#: Fewer rows are too few for many cores.
MIN_ROWS = 16
#: Shorter rows run faster as whole statements, longer ones do not stay in the cache.
MIN_POINTS, MAX_POINTS = 64, 1 << 18
MAX_PARTS = 16
#: For reductions over rows: the fewest points in all, which no cache holds, and the most points of a row, of
#: which several stay in the second-level cache with the partial results.
MIN_FOLDED, MAX_FOLDED = 1 << 21, 1 << 16
#: Reductions whose partial results can be combined.
_PARTLY = frozenset({"add", "maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or"})
#: The number of earlier statements that are tried.
_TRIES = 4


def _parts(stmt: Stmt | None) -> tuple[Part, ...]:
    if isinstance(stmt, Rows):
        return stmt.body
    return (stmt,) if isinstance(stmt, Part) else ()


# ---- legality -----------------------------------------------------------------------------------------
def can_share_rows(first: Part, second: Part, axes: int, facts: Facts) -> Reason | None:
    """Return why the statements may not run row by row, ``first`` before ``second`` in each."""
    pairs = [(v, w) for v in writes_of(first) for w in (*_read(second), *writes_of(second))]
    pairs += [(v, w) for v in _read(first) for w in writes_of(second)]
    for v, w in pairs:
        if facts.overlap(v, w) is False:
            continue
        if v.array != w.array:
            return Reason(f"{w.array} may share memory with {v.array}", (v, w))
        if not disjoint_rows(v, w, axes):
            folded = [c.target for part in (first, second) for c in computes_of(part) if folds_rows(c, axes)]
            if v in folded or w in folded:
                return Reason(f"{w.array} is complete only after the last row", (v, w))
            return Reason(f"a row needs {w.array} of other rows", (v, w))
    return None


def can_row(first: tuple[Part, ...], second: tuple[Part, ...], axes: int, facts: Facts) -> Reason | None:
    """Return why the statements may not run row by row, a row being a point of their first ``axes`` axes."""
    for part in first + second:
        if isinstance(part, Compute) and part.scan is not None:
            return Reason("one is a scan", (part.target,))
        for target in row_targets(part, axes):
            if not disjoint_rows(target, target, axes):
                return Reason(f"{target.array} is complete only after the last row", (target,))
    for a in first:
        for b in second:
            reason = can_share_rows(a, b, axes, facts)
            if reason is not None:
                return reason
    return None


def worth_rows(
    first: tuple[Part, ...], second: tuple[Part, ...], axes: int, hints: SizeHints
) -> Reason | None:
    """Return why row fusion is of no use."""
    parts = first + second
    if len(parts) > MAX_PARTS:
        return Reason(f"there would be more than {MAX_PARTS} statements")
    if not any(len(domain(part)) > axes for part in parts):
        return Reason("their rows have one point")
    rows = hints.product(domain(parts[0])[:axes])
    if rows < MIN_ROWS:
        return Reason(f"{rows} rows are too few for many cores")
    points = [hints.product(domain(part)[axes:]) for part in parts]
    if max(points) < MIN_POINTS:
        return Reason(f"rows of {max(points)} points are too short")
    if max(points) > MAX_POINTS:
        return Reason(f"rows of {max(points)} points do not stay in the cache")
    one, two = ({w.array for p in some for w in (*_read(p), *writes_of(p))} for some in (first, second))
    if not one & two:
        return Reason("they have no data in common")
    if any(folds_rows(compute, axes) for part in parts for compute in computes_of(part)):
        return _worth_folding(first, second, axes, rows * max(points), max(points))
    for part in parts:
        for compute in computes_of(part):
            across = _strided_reduction(compute, axes)
            if across is not None:
                return Reason(f"rows of {across.array} lie across what is folded", (across,))
    return None


def _strided_reduction(compute: Compute, axes: int) -> Window | None:
    """Return a window that row order would read one element per memory row, for a reduction that by itself
    reads whole memory rows; None if there is none."""
    if compute.combine is None:
        return None
    kept = set(moving_axes(compute.target))
    for window, _ in reads_of(compute):
        last = window.index[-1].axis if window.index else None
        if last is not None and last < axes and any(axis not in kept for axis in moving_axes(window)):
            return window
    return None


def _worth_folding(first: tuple[Part, ...], second: tuple[Part, ...], axes: int, every: int, row: int
) -> Reason | None:  # fmt: skip
    """Return why partial results of reductions over the rows are of no use."""
    for part in first + second:
        for compute in computes_of(part):
            if not folds_rows(compute, axes):
                continue
            target = compute.target
            if axes != 1 or len(target.shape) != 2 or not moving_axes(target):
                return Reason(f"what is folded into {target.array} are no rows", (target,))
            if compute.combine not in _PARTLY:
                return Reason(f"{target.array} has to be folded in order", (target,))
    if every < MIN_FOLDED:
        return Reason("what they go over fits into the caches")
    if row > MAX_FOLDED:
        return Reason(f"rows of {row} points do not stay in the nearest caches")
    one, two = ({w.array for p in some for w in (*_read(p), *writes_of(p)) if len(moving_axes(w)) > 1}
                for some in (first, second))  # fmt: skip
    return None if one & two else Reason("they go over no rows in common")


def _read(part: Part) -> list[Window]:
    return [window for window, _ in reads_of(part)]


def _common(parts: tuple[Part, ...]) -> int:
    """Return the number of leading axes that all domains have in common."""
    first, *others = map(domain, parts)
    count = 0
    while all(count < len(shape) for shape in (first, *others)) and all(
        shape[count] == first[count] for shape in others
    ):
        count += 1
    return count


# ---- action -------------------------------------------------------------------------------------------
def _sweep(block: Block, log: Log, hints: SizeHints) -> bool:
    changed = False
    heads: list[int] = []
    for pos in range(len(block.stmts)):
        parts = _parts(block.stmts[pos])
        if not parts:
            continue
        home = _join(block, pos, parts, heads, log, hints)
        changed |= home is not None
        if home is None:
            heads.append(pos)
    return changed


def _join(
    block: Block, pos: int, parts: tuple[Part, ...], heads: list[int], log: Log, hints: SizeHints
) -> int | None:
    """Fuse the statement with an earlier one; return the position of the fused statement."""
    for k in range(len(heads) - 1, max(-1, len(heads) - 1 - _TRIES), -1):
        head = heads[k]
        earlier = _parts(block.stmts[head])
        most = min(_max_axes(block.stmts[head]), _max_axes(block.stmts[pos]), _common(earlier + parts))
        axes, reason = _axes(earlier, parts, most, block.facts, hints)
        if not axes:
            continue
        home = head
        if reason is None:
            home, reason = common_position(block, head, pos)
        names = f"{_names(earlier)} and {_names(parts)}"
        if reason is not None:
            log.refused("row_fusion", f"{names} do not run row by row: {reason.text}", parts[-1].loc)
            continue
        merge_statements(block, heads, (head, pos), home, Rows(earlier + parts, axes, parts[-1].loc))
        log.done("row_fusion", f"{names} run row by row", parts[-1].loc)
        return home
    return None


def _max_axes(stmt: Stmt | None) -> int:
    """Return the largest number of axes that can be rows of a statement's parts."""
    return stmt.axes if isinstance(stmt, Rows) else len(domain(_parts(stmt)[0]))


def _axes(
    first: tuple[Part, ...], second: tuple[Part, ...], most: int, facts: Facts, hints: SizeHints
) -> tuple[int, Reason | None]:
    """Return the largest number of axes that can be rows, or else a reason; no axes if the domains have none
    in common."""
    reason: Reason | None = None
    for axes in range(most, 0, -1):
        reason = can_row(first, second, axes, facts) or worth_rows(first, second, axes, hints)
        if reason is None:
            return axes, None
    return most, reason


def _names(parts: tuple[Part, ...]) -> str:
    return ", ".join(dict.fromkeys(window.array for part in parts for window in writes_of(part)))


def _is_part(stmt: Stmt) -> bool:
    return isinstance(stmt, Part)


def _run(region: Region, log: Log) -> Region:
    hints = SizeHints(region)
    return each_block(region, lambda block: _sweep(block, log, hints), _is_part)


ROW_FUSION = Pass("row_fusion", _run)
