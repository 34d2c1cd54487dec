"""Wavefronts: recurrences over two axes run several rows at once (skewing, then unroll-and-jam).

In ``for i: for j: a[i, j] = (a[i, j-1] + a[i-1, j] + a[i+1, j] + a[i, j+1]) / 4`` each element waits for the
latency of the one before it.  The elements of several rows along a skewed front are independent, so that a
processor overlaps them.  What is computed for a whole row before such a loop is moved into it, if it may be:
the loop is bound by latency anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dcarray.ir import dims, windows
from dcarray.ir.analysis.effects import Reason, families, reads, writes
from dcarray.ir.analysis.independence import iteration_conflict, window_at
from dcarray.ir.nodes import Compute, Dim, Index, Loop, Region, Stmt
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.nested import as_region, each_loop, in_bodies
from dcarray.ir.passes.portable.copies import COPIES
from dcarray.ir.passes.portable.fuse import FUSE
from dcarray.ir.renaming import statement_at
from dcarray.ir.statements import is_point

#: Rows that are jammed: as many as a processor overlaps divisions.
ROWS = 4
#: The largest skew, in columns, that dependences may need, and the columns added to it to hide latency.
MAX_SKEW, EXTRA_SKEW = 2, 2
#: Rows have at least so many times the skew in columns, which pays for the corners.
MIN_SKEWS = 4
#: The most statements in an iteration: more need more values than there are registers.
MAX_STATEMENTS = 3


# ---- legality -----------------------------------------------------------------------------------------
def _conflict(
    first: tuple[Stmt, ...],
    second: tuple[Stmt, ...],
    later: Mapping[str, Dim],
    ranges: dims.Bounds,
    root: Mapping[str, str],
) -> Reason | None:
    """Return the dependence between the statements ``first`` of one point and ``second`` of the point
    ``later``; None if there is none."""
    with dims.between(ranges):
        for one, two in ((one, two) for one in first for two in second):
            pairs = [(a, b) for a in writes(one) for b in (*reads(two), *writes(two))]
            pairs += [(a, b) for a in reads(one) for b in writes(two)]
            for a, b in pairs:
                if root[a.array] != root[b.array]:
                    continue
                if a.array != b.array or windows.overlap(a, window_at(b, later)) is not False:
                    return Reason(f"a row may need {a.array} of another one", (a, b))
    return None


def minimum_skew(outer: Loop, inner: Loop, region: Region) -> int | Reason:
    """Return by how many columns each row has to lag behind the row before it, or why no number is enough."""
    i, j = dims.symbol(outer.var, None), dims.symbol(inner.var, None)
    ranges, step = _ranges(outer, inner), inner.bounds[2]
    root = families(region)
    conflict: Reason | None = None
    for skew in range(MAX_SKEW + 1):
        for rows in range(1, ROWS):
            by, more = _before(inner, rows * skew + 1)
            later = {outer.var: i + rows * outer.bounds[2], inner.var: j - by * step}
            conflict = _conflict(inner.body, inner.body, later, {**ranges, **more}, root)
            if conflict is not None:
                break
        else:
            return skew
    assert conflict is not None
    return conflict


def _ranges(*loops: Loop) -> dims.Bounds:
    return {loop.var: dims.loop_range(*loop.bounds) for loop in loops}


def _before(inner: Loop, least: int) -> tuple[Dim, dims.Bounds]:
    """Return the distance of another iteration, at least ``least`` before one, and the range of its
    symbol."""
    name = f"{inner.var} before"  # which is no name of a variable
    low, high = dims.loop_range(*inner.bounds)
    j = dims.symbol(inner.var, None)
    assert low is not None and high is not None
    most = dims.simplify(j - low if inner.bounds[2] == 1 else high - j)
    return dims.symbol(name, None), {name: (least, most)}


def candidate(loop: Loop) -> Loop | None:
    """Return the loop over columns at the end of a loop over rows, if its statements are single points."""
    inner = loop.body[-1] if loop.body else None
    if not isinstance(inner, Loop) or loop.parallel or inner.parallel:
        return None
    if not all(type(n) is int for n in (*loop.bounds, *inner.bounds)) or abs(loop.bounds[2]) != 1:
        return None
    points = [stmt for stmt in inner.body if is_point(stmt) and stmt.body.dtype.kind == "f"]
    if abs(inner.bounds[2]) != 1 or len(points) < len(inner.body):
        return None
    return inner if len(range(*loop.bounds)) >= 2 and len(range(*inner.bounds)) > MIN_SKEWS else None


# ---- action -------------------------------------------------------------------------------------------
def fuse_row_statements(loop: Loop, inner: Loop, region: Region) -> Loop | Reason:
    """Return the loop over columns with the statements on whole rows before it in its body, point by point;
    or why they cannot be."""
    root, iterations = families(region), len(range(*inner.bounds))
    start, _, step = inner.bounds
    amap = (Index(dims.simplify((dims.symbol(inner.var, None) - start) * step)),)
    points: list[Stmt] = []
    for stmt in loop.body[:-1]:
        if not isinstance(stmt, Compute) or stmt.combine is not None or stmt.scan is not None:
            return Reason("it holds more than computations")
        if len(stmt.target.shape) != 1 or dims.prove_eq(stmt.target.shape[0], iterations) is not True:
            return Reason(f"what is written of {stmt.target.array} is no row", (stmt.target,))
        target = windows.compose(stmt.target, amap, ())
        points.append(replace(stmt, target=target, body=windows.remap(stmt.body, amap, ())))
    units = [*((point,) for point in points), inner.body]
    by, more = _before(inner, 1)
    later = {inner.var: dims.symbol(inner.var, None) - by * step}
    for k, unit in enumerate(units):
        for other in units[k + 1 :]:
            conflict = _conflict(unit, other, later, {**_ranges(loop, inner), **more}, root)
            if conflict is not None:
                return conflict
    return replace(inner, body=(*points, *inner.body))


def jam(outer: Loop, inner: Loop, skew: int, rows: int) -> tuple[Loop, ...]:
    """Return the skewed loop with several rows at once, and the remaining rows."""
    start, stop, step = outer.bounds
    count = len(range(start, stop, step)) // rows * rows
    first, _, along = inner.bounds
    columns = len(range(*inner.bounds))

    def part(row: int, at: int, end: int) -> tuple[Stmt, ...]:
        """Return a loop over the columns from ``at`` to ``end`` of row ``row`` of the block."""
        body = tuple(statement_at(stmt, {outer.var: _ahead(outer.var, row * step)}) for stmt in inner.body)
        bounds = first + at * along, first + end * along, along
        return (replace(inner, bounds=bounds, body=body),) if at < end else ()

    wide = (rows - 1) * skew
    body: list[Stmt] = []
    for row in range(rows):
        body += part(row, 0, wide - row * skew)
    slope: list[Stmt] = []
    for row in range(rows):
        here = {outer.var: row * step, inner.var: -row * skew * along}
        slope += [
            statement_at(stmt, {var: _ahead(var, by) for var, by in here.items()}) for stmt in inner.body
        ]
    bounds = first + wide * along, first + columns * along, along
    body.append(replace(inner, bounds=bounds, body=tuple(slope)))
    for row in range(rows):
        body += part(row, columns - row * skew, columns)
    middle = start + count * step
    blocks = replace(outer, bounds=(start, middle, rows * step), body=tuple(body))
    rest = replace(outer, bounds=(middle, stop, step), body=(inner,))
    return (blocks, rest) if middle != stop else (blocks,)


def _ahead(var: str, by: int) -> Dim:
    return dims.symbol(var, None) + by


# ---- the pass -----------------------------------------------------------------------------------------
def _rows(loop: Loop, region: Region, position: int) -> tuple[Loop, ...] | Reason | None:
    """Return the loop with several rows at once, or why not; None where it has no rows."""
    inner = candidate(loop)
    if inner is None:
        return None

    def put(inner: Loop) -> tuple[Loop, Region]:
        outer = replace(loop, body=(inner,))
        return outer, replace(region, body=(*region.body[:position], outer, *region.body[position + 1 :]))

    if len(loop.body) > 1:
        fused = fuse_row_statements(loop, inner, region)
        if isinstance(fused, Reason):
            return fused
        inner = fused
        _, around = put(inner)
        with dims.ranging(loop.var, loop.bounds), dims.ranging(inner.var, inner.bounds):
            part = as_region(inner.body, around, inner)
            for one in (COPIES, FUSE):
                part = one.fn(part, Log())
        inner = replace(inner, body=part.body)
    outer, around = put(inner)
    if len(inner.body) > MAX_STATEMENTS:
        return Reason(f"an iteration of {inner.var} does too much")
    if iteration_conflict(inner, around) is None or iteration_conflict(outer, around) is None:
        return Reason("its elements do not wait for one another")
    skew = minimum_skew(outer, inner, around)
    if isinstance(skew, Reason):
        return skew
    skew += EXTRA_SKEW
    rows = min(ROWS, len(range(*outer.bounds)))
    if len(range(*inner.bounds)) < MIN_SKEWS * skew * (rows - 1):
        return Reason("its rows are short")
    return jam(outer, inner, skew, rows)


def _run(region: Region, log: Log) -> Region:
    def replaced(loop: Loop, region: Region, position: int) -> tuple[tuple[Loop, ...], tuple[()]] | None:
        loops = _rows(loop, region, position)
        if isinstance(loops, Reason):
            log.refused("wavefront", f"the loop over {loop.var} stays row by row: {loops.text}", loop.loc)
        if not isinstance(loops, tuple):
            return None
        log.done("wavefront", f"several rows of the loop over {loop.var} run at once", loop.loc)
        return loops, ()

    return each_loop(in_bodies(region, log, _run), replaced)


WAVEFRONT = Pass("wavefront", _run)
