"""Shared partial sums: terms that sums of several iterations have in common are added once.

``for i: b[i] += a[i+1:, i] @ b[i+1:]`` reads all rows of ``b`` below ``i`` in each iteration.  All but a few
of them are read by the next iterations, too; as long as none of these changes them, one statement loads them
once for several sums.  Each iteration adds its few other terms.
"""

from __future__ import annotations

from dataclasses import replace

from dcarray.ir import dims, windows
from dcarray.ir.analysis.effects import Reason, clash, families, writes
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.nodes import (
    Apply,
    Array,
    Compute,
    Const,
    Dim,
    Expr,
    Index,
    Load,
    Loop,
    Nest,
    Region,
    Size,
    Stmt,
    Window,
)
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.exprs import dtype_of
from dcarray.ir.passes.nested import each_loop, in_bodies
from dcarray.ir.records import record
from dcarray.ir.renaming import statement_at, unused_names

#: Iterations in a block, whose sums share partial sums.
ITERATIONS = 4
#: The fewest iterations, terms in the middle iteration, and sums in a row.
MIN_ITERATIONS, MIN_TERMS, MIN_ROW = 16, 16, 16
_DTYPES = "fdFD"


@record(frozen=True, slots=True)
class _Sum:
    """A sum of which ``ITERATIONS`` iterations have all but their first, or last, few terms in common."""

    stmt: Compute
    axis: int  # the reduced axis
    grows: bool  # at the end; otherwise they get fewer at the beginning
    room: tuple[Dim, ...]  # upper bounds of the extents of its results

    def extent(self, var: str, iteration: Dim) -> Dim:
        """Return the number of terms in an iteration."""
        return dims.substitute(self.stmt.target.shape[self.axis], {var: iteration})

    def common(self, var: str, block: Dim) -> Dim:
        """Return the number of terms that all iterations of a block have."""
        return self.extent(var, block if self.grows else dims.simplify(block + ITERATIONS - 1))


def _terms(stmt: Compute, axis: int, first: Dim, count: Dim) -> Compute:
    """Return the sum of only ``count`` terms of ``stmt`` from term ``first`` on."""

    def part(window: Window) -> Window:
        shape = tuple(count if k == axis else n for k, n in enumerate(window.shape))
        index = (
            replace(ix, offset=dims.simplify(ix.offset + ix.stride * first)) if ix.axis == axis else ix
            for ix in window.index
        )
        return Window(window.array, shape, tuple(index))

    def load(node: Expr) -> Expr:
        assert isinstance(node, Load)
        return Load(part(node.window), node.dtype)

    init = None if stmt.init is None else windows.map_loads(stmt.init, load)
    return replace(stmt, target=part(stmt.target), body=windows.map_loads(stmt.body, load), init=init)


def _shared_terms(sums: _Sum, var: str, block: Dim, ahead: int) -> Compute:
    """Return the sum, in iteration ``ahead`` of a block, of the terms that all iterations of the block
    have."""
    iteration, common = dims.simplify(block + ahead), sums.common(var, block)
    first = 0 if sums.grows else dims.simplify(sums.extent(var, iteration) - common)
    return _terms(statement_at(sums.stmt, {var: iteration}), sums.axis, first, common)


# ---- legality -----------------------------------------------------------------------------------------
def shared_sum(stmt: Stmt, loop: Loop, region: Region) -> _Sum | Reason:
    """Return the sum that a statement of a loop makes, if several iterations have most of its terms in
    common; or why not."""
    if not isinstance(stmt, Compute) or stmt.combine != "add" or not isinstance(stmt.init, Const):
        return Reason("it is not a sum")
    shape = stmt.target.shape
    kept = [ix.axis for ix in stmt.target.index if ix.axis is not None]
    folded = [axis for axis in range(len(shape)) if axis not in kept]
    if len(folded) != 1 or len(kept) > 1 or dtype_of(stmt.body).char not in _DTYPES:
        return Reason("it is not a sum to a number, or a row of numbers, with terms in any order")
    slope = dims.slope(shape[folded[0]], loop.var)
    room = [dims.upper_bound(shape[axis]) for axis in kept]
    if slope not in (1, -1) or any(loop.var in dims.free_symbols(shape[axis]) for axis in kept):
        return Reason("it does not get a term longer or shorter with each iteration")
    known = [n for n in room if n is not None]
    if len(known) < len(room):
        return Reason("it is not known how many sums there are")
    if not all(isinstance(node, Load | Const | Apply | Size) for node in windows.walk(stmt.body)):
        return Reason("it has more than plain loads")
    sums = _Sum(stmt, folded[0], slope == 1, tuple(known))
    reason = _conflict(sums, loop, region)
    return sums if reason is None else reason


def _conflict(sums: _Sum, loop: Loop, region: Region) -> Reason | None:
    """Return why the common terms cannot be added up before the iterations, or differ between these."""
    start, stop, _ = loop.bounds
    block = dims.symbol(f"{loop.var}_block", None)
    parts = [_shared_terms(sums, loop.var, block, ahead) for ahead in range(ITERATIONS)]
    loads = [{load.window for load in windows.loads(part.body) if isinstance(load, Load)} for part in parts]
    if not any(any(ix.axis == sums.axis for ix in w.index) for w in loads[0].intersection(*loads[1:])):
        return Reason("the iterations read nothing in common")
    root = families(region)
    changed = [window for inner in loop.body for window in writes(inner)]
    blocks = dims.ranging(f"{loop.var}_block", (start, stop - ITERATIONS + 1, 1))
    with blocks, dims.ranging(loop.var, (block, block + ITERATIONS, 1)):
        for window in set[Window]().union(*loads):
            for other in changed:
                if root[other.array] == root[window.array] and clash(window, other, region) is not False:
                    return Reason(f"{window.array} may change before its iteration", (window, other))
    return None


def _worth(sums: _Sum, loop: Loop, hints: SizeHints) -> bool:
    inner, iterations = hints.within(loop.var, loop.bounds)
    return iterations >= MIN_ITERATIONS and all(
        inner(n) >= (MIN_TERMS if axis == sums.axis else MIN_ROW)
        for axis, n in enumerate(sums.stmt.target.shape)
    )


# ---- action -------------------------------------------------------------------------------------------
def in_blocks(loop: Loop, sums: _Sum, position: int, name: str) -> tuple[Loop, ...]:
    """Return the loop over blocks, which adds up the common terms in the array ``name`` first, and a loop
    over the remaining iterations."""
    start, stop, _ = loop.bounds
    var, stmt = loop.var, sums.stmt
    block = dims.symbol(f"{var}_block", None)
    middle = start + (stop - start) // ITERATIONS * ITERATIONS
    dtype = dtype_of(stmt.body)

    def place(like: Window, iteration: Dim) -> Window:
        """Return the window of the partial sums of an iteration, for the points of a window."""
        along = [Index(0, 1, ix.axis) for ix in like.index if ix.axis is not None]
        return Window(name, like.shape, (Index(dims.simplify(iteration)), *along))

    early = [_shared_terms(sums, var, block, ahead) for ahead in range(ITERATIONS)]
    first = Nest(tuple(replace(p, target=place(p.target, k)) for k, p in enumerate(early)), stmt.loc)
    iteration, common = dims.symbol(var, None), sums.common(var, block)
    left = dims.simplify(sums.extent(var, iteration) - common)
    late = _terms(stmt, sums.axis, common if sums.grows else 0, left)
    late = replace(late, init=Load(place(late.target, iteration - block), dtype))
    body = (*loop.body[:position], late, *loop.body[position + 1 :])
    iterations = replace(loop, bounds=(block, block + ITERATIONS, 1), body=body)
    blocks = Loop(f"{var}_block", (start, middle, ITERATIONS), (first, iterations), loc=loop.loc)
    return (blocks, replace(loop, bounds=(middle, stop, 1))) if middle < stop else (blocks,)


# ---- the pass -----------------------------------------------------------------------------------------
def _run(region: Region, log: Log) -> Region:
    def replaced(loop: Loop, region: Region, _: int) -> tuple[tuple[Loop, ...], list[Array]] | None:
        first = _first_sum(loop, region, log)
        if first is None:
            return None
        position, sums = first
        like = sums.stmt.target.array
        name = next(unused_names(f"{like}_", {array.name for array in region.arrays}))
        text = f"the sums {like} of {ITERATIONS} iterations of {loop.var} begin at once"
        log.done("shared_partial_sums", text, sums.stmt.loc)
        array = Array(name, dtype_of(sums.stmt.body), (ITERATIONS, *sums.room))
        return in_blocks(loop, sums, position, name), [array]

    return each_loop(in_bodies(region, log, _run), replaced)


def _first_sum(loop: Loop, region: Region, log: Log) -> tuple[int, _Sum] | None:
    """Return a sum of the loop whose terms are to be shared, and its position."""
    if loop.parallel or not all(type(n) is int for n in loop.bounds) or loop.bounds[2] != 1:
        return None
    for position, stmt in enumerate(loop.body):
        if not isinstance(stmt, Compute) or stmt.combine != "add":
            continue
        sums = shared_sum(stmt, loop, region)
        if isinstance(sums, Reason):
            log.refused(
                "shared_partial_sums",
                f"the sum {stmt.target.array} is taken iteration by iteration: {sums.text}",
                stmt.loc,
            )
        elif _worth(sums, loop, SizeHints(region)):
            return position, sums
    return None


SHARED_PARTIAL_SUMS = Pass("shared_partial_sums", _run)
