"""Blocked recurrences: the terms of a block's sums that are known before the block are added in one
statement.

``for i: x[i] = b[i] - sum(A[i, j] * x[j] for j < i)`` is sequential, and so are its reads of ``A``.  But most
terms of a block's sums are known before the block begins: they are one statement, which runs on all cores,
and the iterations add the remaining ones (as blocked triangular solvers do).
"""

from __future__ import annotations

from dataclasses import replace

from dcarray.ir import dims, windows
from dcarray.ir.analysis.effects import Reason, clash, families, writes
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.nodes import Apply, Array, Compute, Const, Dim, Expr, Index, Load, Loop, Region, Stmt, Window
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.exprs import dtype_of
from dcarray.ir.passes.nested import each_loop
from dcarray.ir.records import record
from dcarray.ir.renaming import unused_names

#: Iterations in a block.
BLOCK = 128
#: A loop with fewer terms in all takes less time than waking other threads.
MIN_WORK = 1 << 20
_DTYPES = "fdFD"


@record(frozen=True, slots=True)
class _Sum:
    """A sum that is one term longer in each iteration."""

    stmt: Compute
    extent: Dim


# ---- legality -----------------------------------------------------------------------------------------
def growing_sum(stmt: Stmt, loop: Loop, region: Region) -> _Sum | Reason:
    """Return the sum that a statement makes, if its terms before a block of iterations can be added up first;
    or why not."""
    if not isinstance(stmt, Compute) or stmt.combine != "add" or not isinstance(stmt.init, Const):
        return Reason("it is not a sum")
    if len(stmt.target.shape) != 1 or any(ix.axis is not None for ix in stmt.target.index):
        return Reason("it is not a sum to one element")
    if dtype_of(stmt.body).char not in _DTYPES:
        return Reason("sums of its dtype are not to be taken in another order")
    (extent,) = stmt.target.shape
    if dims.slope(extent, loop.var) != 1:
        return Reason("it does not grow by one element in each iteration")
    if not all(isinstance(node, Load | Const | Apply) for node in windows.walk(stmt.body)):
        return Reason("it has more than plain loads")
    root = families(region)
    changed = [window for inner in loop.body for window in writes(inner)]
    start, stop, _ = loop.bounds
    block = dims.symbol(f"{loop.var}_block", None)
    for load in windows.loads(stmt.body):
        window = load.window if isinstance(load, Load) else None
        if window is None or any(_moves(ix, loop.var) is None for ix in window.index):
            return Reason("what it reads does not move evenly")
        written = [w for w in changed if root[w.array] == root[window.array]]
        if not written:
            continue
        if any(_moves(ix, loop.var) for ix in window.index):
            return Reason(f"what it reads of {window.array} depends on the iteration", (window,))
        early = replace(window, shape=(dims.substitute(extent, {loop.var: block}),))
        earlier = dims.ranging(f"{loop.var}_block", (start, stop, 1))
        with earlier, dims.ranging(loop.var, (block, stop, 1)):
            late = [w for w in written if clash(early, w, region) is not False]
        if late:
            return Reason(f"{window.array} is not complete when a block begins", (window, late[0]))
    return _Sum(stmt, extent)


def _moves(ix: Index, var: str) -> int | None:
    """Return the step of an index per iteration; None if it is not known, or depends on other variables."""
    pace = dims.slope(ix.offset, var)
    if type(pace) is not int or type(ix.stride) is not int or (pace and ix.axis is not None):
        return None
    return pace


def _worth(found: _Sum, loop: Loop, region: Region) -> bool:
    start, stop, step = loop.bounds
    if not (type(start) is type(stop) is type(step) is int and step == 1 and stop - start >= 2 * BLOCK):
        return False
    middle = dims.substitute(found.extent, {loop.var: start + (stop - start) // 2})
    return SizeHints(region)(middle) * (stop - start) >= MIN_WORK


# ---- action -------------------------------------------------------------------------------------------
def in_blocks(loop: Loop, sums: dict[int, tuple[_Sum, Array]], at: Dim, iterations: int) -> tuple[Stmt, ...]:
    """Return ``iterations`` iterations of the loop from ``at`` on, and before them the statements that
    compute the partial sums; ``sums`` has, by position, each sum and the array for its partial sums."""
    made: list[Stmt] = []
    rest = list(loop.body)
    for position, (found, array) in sums.items():
        stmt, here = found.stmt, {loop.var: at}
        first = dims.substitute(found.extent, here)

        def ahead(load: Expr, here: dict[str, Dim] = here, first: Dim = first) -> Expr:
            assert isinstance(load, Load)
            index = []
            for ix in load.window.index:
                pace, offset = _moves(ix, loop.var), dims.substitute(ix.offset, here)
                axis = None if ix.axis is None else 1
                index.append(Index(offset, pace, 0) if pace else Index(offset, ix.stride, axis))
            return Load(Window(load.window.array, (iterations, first), tuple(index)), load.dtype)

        def later(load: Expr, first: Dim = first, extent: Dim = found.extent) -> Expr:
            assert isinstance(load, Load)
            index = tuple(
                ix if ix.axis is None else replace(ix, offset=dims.simplify(ix.offset + ix.stride * first))
                for ix in load.window.index
            )
            shape = (dims.simplify(extent - first),)
            return Load(Window(load.window.array, shape, index), load.dtype)

        target = Window(array.name, (iterations, first), (Index(0, 1, 0),))
        made.append(Compute(target, windows.map_loads(stmt.body, ahead), "add", stmt.init, stmt.loc))
        left = dims.simplify(found.extent - first)
        iteration = dims.simplify(dims.symbol(loop.var, None) - at)
        start = Load(Window(array.name, (left,), (Index(iteration),)), array.dtype)
        rest[position] = replace(
            stmt,
            target=replace(stmt.target, shape=(left,)),
            body=windows.map_loads(stmt.body, later),
            init=start,
        )
    return (*made, Loop(loop.var, (at, dims.simplify(at + iterations), 1), tuple(rest), loc=loop.loc))


def _sums(loop: Loop, region: Region, log: Log) -> dict[int, tuple[_Sum, Array]]:
    """Return the sums of a loop whose first terms can be added up for a block of iterations, by position,
    each with a new array for its partial sums."""
    sums: dict[int, tuple[_Sum, Array]] = {}
    taken = {array.name for array in region.arrays}
    for position, stmt in enumerate(loop.body):
        found = growing_sum(stmt, loop, region)
        if isinstance(found, Reason):
            if isinstance(stmt, Compute) and stmt.combine == "add":
                text = f"the sum {stmt.target.array} is taken iteration by iteration: {found.text}"
                log.refused("blocked_recurrences", text, stmt.loc)
        elif _worth(found, loop, region):
            name = next(unused_names(f"{found.stmt.target.array}_", taken))
            taken.add(name)
            sums[position] = found, Array(name, dtype_of(found.stmt.body), (BLOCK,))
    return sums


def _run(region: Region, log: Log) -> Region:
    def replaced(loop: Loop, region: Region, _: int) -> tuple[list[Stmt], list[Array]] | None:
        sums = {} if loop.parallel else _sums(loop, region, log)
        if not sums:
            return None
        start, stop, _ = loop.bounds
        whole = start + (stop - start) // BLOCK * BLOCK
        var = f"{loop.var}_block"
        inner = in_blocks(loop, sums, dims.symbol(var, None), BLOCK)
        body: list[Stmt] = [Loop(var, (start, whole, BLOCK), inner, loc=loop.loc)]
        if whole < stop:
            body += in_blocks(loop, sums, whole, stop - whole)
        names = ", ".join(found.stmt.target.array for found, _ in sums.values())
        text = f"{names}: a part for {BLOCK} iterations over {loop.var} at once"
        log.done("blocked_recurrences", text, loop.loc)
        return body, [array for _, array in sums.values()]

    return each_loop(region, replaced)


BLOCKED_RECURRENCES = Pass("blocked_recurrences", _run)
