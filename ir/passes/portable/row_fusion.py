"""Loop fusion of the outer axes: statements whose dependences stay within a row run row by row in one kernel.

A row that one statement has read or written is still in the cache when the next one needs it.  A softmax (a
maximum, an exponential with its sum, a division) so moves its data through memory once.
"""

from __future__ import annotations

from dcarray.ir.analysis.effects import Reason, computes_of, domain, folds_rows, rows_conflict
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.nodes import Compute, Part, Region, Rows, Stmt, Window
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.flow import Facts, each_block, reads_of, writes_of
from dcarray.ir.passes.fusion_profit import ROWS, Change, loss
from dcarray.ir.windows import moving_axes

from .siblings import Grouping, group_statements, parts_of

#: Reductions whose partial results can be combined.
_PARTLY = frozenset({"add", "maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or"})


# ---- legality -----------------------------------------------------------------------------------------
def can_row(parts: tuple[Part, ...], axes: int, region: Region) -> Reason | None:
    """Return why the statements may not run row by row, a row being a point of their first ``axes`` axes."""
    for part in parts:
        if isinstance(part, Compute) and part.scan is not None:
            return Reason("one is a scan", (part.target,))
    return rows_conflict(parts, axes, region)


# ---- profit ---------------------------------------------------------------------------------------------
def worth_rows(
    first: tuple[Part, ...], second: tuple[Part, ...], axes: int, hints: SizeHints
) -> Reason | None:
    """Return why row fusion does not pay; None if it does."""
    parts = first + second
    if len(parts) > ROWS.statements:
        return Reason(f"there would be more than {ROWS.statements} statements")
    if not any(len(domain(part)) > axes for part in parts):
        return Reason("their rows have one point")
    folding = [c for part in parts for c in computes_of(part) if folds_rows(c, axes)]
    for compute in folding:
        target = compute.target
        if axes != 1 or len(target.shape) != 2 or not moving_axes(target):
            return Reason(f"the values folded into {target.array} are not rows", (target,))
        if compute.combine not in _PARTLY:
            return Reason(f"{target.array} has to be folded in order", (target,))
    rows = hints.product(domain(parts[0])[:axes])
    row = max(hints.product(domain(part)[axes:]) for part in parts)
    one, two = (
        {w.array for p in some for w in (*_read(p), *writes_of(p)) if not folding or len(moving_axes(w)) > 1}
        for some in (first, second)
    )
    if folding and not one & two:
        return Reason("they go over no rows in common")
    if why := loss(Change(bool(one & two), 0.0, rows, row, bool(folding))):
        return Reason(why)
    for compute in () if folding else (c for part in parts for c in computes_of(part)):
        across = _strided_reduction(compute, axes)
        if across is not None:
            return Reason(f"rows of {across.array} lie across the folded values", (across,))
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
def _rows(earlier: Stmt | None, stmt: Stmt | None, facts: Facts, hints: SizeHints) -> Rows | Reason | None:
    """Return two statements fused over as many row axes as possible, or why none is; None if their domains
    have no axes in common."""
    first, second = parts_of(earlier, Rows), parts_of(stmt, Rows)
    reason: Reason | None = None
    for axes in range(min(_max_axes(earlier), _max_axes(stmt), _common(first + second)), 0, -1):
        reason = can_row(first + second, axes, facts.region) or worth_rows(first, second, axes, hints)
        if reason is None:
            return Rows(first + second, axes, second[-1].loc)
    return reason


def _max_axes(stmt: Stmt | None) -> int:
    """Return the largest number of row axes that fusion with a statement may have."""
    return stmt.axes if isinstance(stmt, Rows) else len(domain(parts_of(stmt, Rows)[0]))


def _run(region: Region, log: Log) -> Region:
    hints = SizeHints(region)
    how = Grouping(
        "row_fusion", Rows, 4, lambda parts: None, lambda one, other, facts: _rows(one, other, facts, hints),
        ("run row by row", "do not run row by row"),
    )  # fmt: skip
    return each_block(region, lambda block: group_statements(block, log, how), _is_part)


def _is_part(stmt: Stmt) -> bool:
    return isinstance(stmt, Part)


ROW_FUSION = Pass("row_fusion", _run)
