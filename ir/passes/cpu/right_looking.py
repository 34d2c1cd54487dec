"""Right-looking reductions: each iteration adds its term to all later sums.

``for j: x[j] = b[j] - sum(x[k] * A[k, j] for k < j)`` (left-looking) reads a column in each iteration.  Once
``x[j]`` is final, its terms are a row, ``s[j+1:] += x[j] * A[j, j+1:]``, which is contiguous in memory and
vectorises.

Rounding errors grow with the number of terms that are added one after the other, so long sums have partial
sums.  Extrema of integers that loops find term by term (`extrema`) are treated like sums.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np

from dcarray.ir import dims, windows
from dcarray.ir.analysis.effects import Reason, clash, families, writes
from dcarray.ir.analysis.independence import privatisable, window_at
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.nodes import (
    Apply,
    Array,
    Branch,
    Compute,
    Const,
    Dim,
    Expr,
    Index,
    Load,
    Loop,
    Region,
    Size,
    Stmt,
    Window,
)
from dcarray.ir.ops import const
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.exprs import dtype_of
from dcarray.ir.records import record
from dcarray.ir.renaming import unused_names
from dcarray.ir.statements import bodies, with_bodies

from .extrema import as_reduction

#: Terms of one partial sum; a power of two.
PART = 512
#: Fewer iterations have short sums only.
ITERATIONS = 16
# Dtypes whose reductions may be reordered, exactly or as sums may be.
_DTYPES = {"add": "fdFD", "maximum": "bhilqBHILQ", "minimum": "bhilqBHILQ"}

#: Statements, and the new arrays of their sums.
_Made = tuple[tuple[Stmt, ...], tuple[Array, ...]]


@record(frozen=True, slots=True)
class _Sum:
    """A sum that is one term longer in each iteration, its statement's position, and the number of
    iterations, with an upper bound."""

    position: int
    stmt: Compute
    count: Dim
    room: Dim

    @property
    def parts(self) -> bool:
        """Whether there are so many terms that they need partial sums."""
        return self.op == "add" and not (type(self.room) is int and self.room <= PART)

    @property
    def op(self) -> str:
        """The operation of the reduction."""
        assert self.stmt.combine is not None
        return self.stmt.combine

    @property
    def extent(self) -> Dim:
        """The number of terms of an iteration's sum."""
        return self.stmt.target.shape[0]


# ---- legality -----------------------------------------------------------------------------------------
def right_looking_sum(position: int, loop: Loop, region: Region, new: str = "") -> _Sum | Reason:
    """Return the sum that the statement at ``position`` of a loop makes, if each iteration's term can at once
    be added to all later sums; or why not. ``loop`` is the very object in ``region``, or writes the sum to
    the array ``new``, which nothing else uses."""
    stmt = loop.body[position]
    if not isinstance(stmt, Compute) or stmt.combine not in _DTYPES or not isinstance(stmt.init, Const):
        return Reason("it is not a sum")
    if (
        len(stmt.target.shape) != 1
        or stmt.target.index
        or dtype_of(stmt.body).char not in _DTYPES[stmt.combine]
    ):
        return Reason("it is not a sum to one number, with terms in any order")
    count = dims.count(loop.bounds)
    room = None if count is None else dims.upper_bound(count)
    if count is None or room is None or loop.bounds[2] != 1:
        return Reason(f"it is not known how many iterations {loop.var} takes")
    (extent,) = stmt.target.shape
    if dims.slope(extent, loop.var) != 1:
        return Reason("it does not grow by one term in each iteration")
    if sum(w.array == stmt.target.array for inner in loop.body for w in writes(inner)) > 1:
        return Reason(f"{stmt.target.array} has other values, too")
    if stmt.target.array != new and stmt.target.array not in privatisable(loop.body, region):
        return Reason(f"{stmt.target.array} may be used elsewhere")
    for node in windows.walk(stmt.body):
        if isinstance(node, Size) and loop.var in dims.free_symbols(node.dim):
            return Reason("its terms have numbers that depend on the iteration")
        if not isinstance(node, Load | Const | Apply | Size):
            return Reason("it has more than plain loads")
    reason = _conflict(stmt, loop, region)
    return _Sum(position, stmt, count, room) if reason is None else reason


def _conflict(stmt: Compute, loop: Loop, region: Region) -> Reason | None:
    """Return why an operand of a term may still change between the iteration in which the term would be added
    and that of its sum; None if no operand does."""
    root = families(region)
    start, stop, _ = loop.bounds
    iteration = dims.symbol(f"{loop.var}_iteration", None)  # one that writes, before or in that of the sum
    here = {loop.var: iteration}
    changed = [window_at(window, here) for inner in loop.body for window in writes(inner)]
    for load in windows.loads(stmt.body):
        assert isinstance(load, Load)
        if any(_pace(ix, loop.var) is None for ix in load.window.index):
            return Reason("what it reads does not move evenly", (load.window,))
        early = replace(load.window, shape=(dims.substitute(stmt.target.shape[0], here),))
        with (
            dims.ranging(f"{loop.var}_iteration", (start, stop, 1)),
            dims.ranging(loop.var, (iteration, stop, 1)),
        ):
            for window in changed:
                if root[window.array] == root[early.array] and clash(early, window, region) is not False:
                    return Reason(f"{early.array} may still change when a term is added", (early, window))
    return None


def _pace(ix: Index, var: str) -> int | None:
    """Return the step of an index per iteration; None if it is not known, or depends on other variables."""
    pace = dims.slope(ix.offset, var)
    if type(pace) is not int or var in dims.free_symbols(ix.stride) or (pace and ix.axis is not None):
        return None
    return pace


def _worth(found: _Sum, loop: Loop, region: Region, hints: SizeHints) -> bool:
    """Whether the operands are contiguous in memory across iterations, but not along the terms of one sum."""
    if hints(found.count) < ITERATIONS:
        return False
    arrays = {array.name: array for array in region.arrays}
    across = False
    for load in windows.loads(found.stmt.body):
        assert isinstance(load, Load)
        array = arrays[load.window.array]
        paces = [_pace(ix, loop.var) or 0 for ix in load.window.index]
        steps = [ix.stride if ix.axis is not None else 0 for ix in load.window.index]
        if any(paces) and not _contiguous(paces, array):
            return False
        across |= any(step != 0 for step in steps) and not _contiguous(steps, array)
    return across


def _contiguous(moves: list[Dim], array: Array) -> bool:
    """Whether moving by ``moves`` along the array's axes goes to the next element in memory."""
    strides = array.strides if array.strides is not None else (*(0 for _ in moves[1:]), 1)
    return all(move == (1 if stride == 1 else 0) for move, stride in zip(moves, strides, strict=True))


# ---- action -------------------------------------------------------------------------------------------
def scatter_terms(loop: Loop, found: _Sum, array: str, part: str) -> tuple[Stmt, ...]:
    """Return the statements that initialise all sums, in ``array``, and the loop that adds each iteration's
    term to the later ones, or to their partial sums in ``part``."""
    start, stop, _ = loop.bounds
    iteration, stmt = dims.symbol(loop.var, None), found.stmt
    dtype, first = dtype_of(stmt.body), {loop.var: start}
    assert stmt.init is not None
    begun: Dim = dims.substitute(found.extent, first)

    def early(load: Expr) -> Expr:
        """Return an operand of the terms known before the loop, as a load over all iterations."""
        assert isinstance(load, Load)
        index = []
        for ix in load.window.index:
            pace, offset = _pace(ix, loop.var), dims.substitute(ix.offset, first)
            axis = None if ix.axis is None else 1
            index.append(Index(offset, pace, 0) if pace else Index(offset, ix.stride, axis))
        return Load(Window(load.window.array, (found.count, begun), tuple(index)), load.dtype)

    whole = Window(array, (found.count,), (Index(0, 1, 0),))
    if type(begun) is int and begun == 0:
        begin = Compute(whole, stmt.init, loc=stmt.loc)
    else:
        body = windows.map_loads(stmt.body, early)
        begin = Compute(replace(whole, shape=(found.count, begun)), body, found.op, stmt.init, stmt.loc)

    rest = (dims.simplify(stop - 1 - iteration),)
    following = {loop.var: iteration + 1}

    def later(load: Expr) -> Expr:
        """Return an operand of the current iteration's term, as a load over all later iterations."""
        assert isinstance(load, Load)
        index = []
        for ix in load.window.index:
            offset = dims.substitute(ix.offset, following)
            if ix.axis is not None:
                offset = dims.simplify(offset + ix.stride * found.extent)
            pace = _pace(ix, loop.var)
            index.append(Index(offset, pace, 0) if pace else Index(offset))
        return Load(Window(load.window.array, rest, tuple(index)), load.dtype)

    def after(name: str) -> Window:
        """Return the window of the later iterations' sums."""
        return Window(name, rest, (Index(dims.simplify(iteration + 1 - start), 1, 0),))

    def both(first: Window, second: Window) -> Expr:
        return Apply(found.op, (Load(first, dtype), Load(second, dtype)), dtype)

    total, mine = (Window(name, (), (Index(dims.simplify(iteration - start)),)) for name in (array, part))
    value = both(total, mine) if found.parts else Load(total, dtype)
    place = after(part if found.parts else array)
    term = Apply(found.op, (Load(place, dtype), windows.map_loads(stmt.body, later)), dtype)
    inner: list[Stmt] = [*loop.body]
    inner[found.position] = Compute(replace(stmt.target, shape=()), value, loc=stmt.loc)
    inner.append(Compute(place, term, loc=stmt.loc))
    if not found.parts:
        return begin, replace(loop, body=tuple(inner))
    zero, i8 = const(np.zeros((), dtype)[()], dtype), np.dtype(np.int64)
    done = Apply("bitwise_and", (Size(dims.simplify(iteration + 1 - start), i8), const(PART - 1, i8)), i8)
    over = Apply("equal", (done, const(0, i8)), np.dtype(bool))
    joined = Compute(after(array), both(after(array), after(part)), loc=stmt.loc)
    inner.append(Branch(over, (joined, Compute(after(part), zero, loc=stmt.loc)), loc=stmt.loc))
    return begin, Compute(replace(whole, array=part), zero, loc=stmt.loc), replace(loop, body=tuple(inner))


# ---- the pass -----------------------------------------------------------------------------------------
def _run(region: Region, log: Log) -> Region:
    while (found := _one_sum(region.body, region, SizeHints(region), log)) is not None:
        body, arrays = found
        region = replace(region, arrays=(*region.arrays, *arrays), body=body)
    return region


def _one_sum(body: tuple[Stmt, ...], region: Region, hints: SizeHints, log: Log) -> _Made | None:
    """Return the body with one sum made right-looking, and the array of the sums; None if there is no such
    sum."""
    for k, stmt in enumerate(body):
        found = (
            _own_sum(stmt, region, hints, log)
            if isinstance(stmt, Loop)
            else _inner_sum(stmt, region, hints, log)
        )
        if found is None and isinstance(stmt, Loop):
            with dims.ranging(stmt.var, stmt.bounds):
                found = _inner_sum(stmt, region, hints.within(stmt.var, stmt.bounds)[0], log)
        if found is not None:
            return (*body[:k], *found[0], *body[k + 1 :]), found[1]
    return None


def _inner_sum(stmt: Stmt, region: Region, hints: SizeHints, log: Log) -> _Made | None:
    """Return the statement with one sum in one of its bodies made right-looking."""
    parts = bodies(stmt)
    for k, part in enumerate(parts):
        found = _one_sum(part, region, hints, log)
        if found is not None:
            return (with_bodies(stmt, (*parts[:k], found[0], *parts[k + 1 :])),), found[1]
    return None


def _own_sum(stmt: Loop, region: Region, hints: SizeHints, log: Log) -> _Made | None:
    """Return a loop with one sum of its own made right-looking, and the statements before it."""
    if stmt.parallel:
        return None
    taken = {array.name for array in region.arrays}
    for position, inner in enumerate(stmt.body):
        loop, whole, made = stmt, region, ""
        if isinstance(inner, Loop):
            made = next(unused_names(f"{inner.var}_", taken))
            with dims.ranging(stmt.var, stmt.bounds):
                fold = as_reduction(inner, region, made)
            if isinstance(fold, Reason):
                continue
            body = (*stmt.body[:position], *fold[:2], *stmt.body[position + 1 :])
            loop, whole = replace(stmt, body=body), replace(region, arrays=(*region.arrays, fold[2]))
            inner = fold[0]
        elif not isinstance(inner, Compute) or inner.combine not in _DTYPES:
            continue
        found = right_looking_sum(position, loop, whole, made)
        name = inner.target.array
        if isinstance(found, Reason):
            log.refused(
                "right_looking", f"the sum {name} is taken iteration by iteration: {found.text}", inner.loc
            )
        elif _worth(found, loop, whole, hints):
            names = list(islice(unused_names(f"{name}_", taken), 1 + found.parts))
            arrays = tuple(Array(n, dtype_of(inner.body), (found.room,)) for n in names)
            log.done(
                "right_looking",
                f"each iteration of {stmt.var} adds its terms to the later sums {name}",
                inner.loc,
            )
            own_arrays = whole.arrays[len(region.arrays) :]
            return scatter_terms(loop, found, names[0], names[-1]), (*own_arrays, *arrays)
    return None


RIGHT_LOOKING = Pass("right_looking", _run)
