"""Unroll-and-jam of triangular loops in which each element of a row is a sum over those before it.

In ``for i: for j < i: a[i, j] = (a[i, j] - a[i, :j] @ a[j, :j]) / a[j, j]`` each element of a row waits for
the one before it, and each row reads all rows above it once more.  As far as rows are independent, which is
up to where the first of them ends, several of them go through the columns together: the common operands of
their sums are loaded once, and their elements do not wait for each other.
"""

from __future__ import annotations

from dataclasses import replace

from dcarray.ir import dims, windows
from dcarray.ir.analysis.effects import Reason, families, writes
from dcarray.ir.analysis.independence import accesses, compare_iterations, iteration_pair, privatisable
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.nodes import Array, Compute, Dim, Load, Loop, Nest, Part, Region, Stmt, Window
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.nested import each_loop, in_bodies, without_unused
from dcarray.ir.records import record
from dcarray.ir.renaming import numbered, rename, statement_at
from dcarray.ir.statements import flatten, is_point

#: Rows that are jammed.
ROWS = 4
#: The fewest rows, and columns in the middle row.
MIN_ROWS, MIN_COLUMNS = 16, 16
#: The most statements in an iteration: more need more values than there are registers.
PARTS = 3


@record(frozen=True, slots=True)
class _Rows:
    """A loop over rows, its first loop over columns, and the temporaries that are private to a column
    (``mine``) and to a row (``all``)."""

    loop: Loop
    inner: Loop
    mine: frozenset[str]
    all: frozenset[str]


# ---- legality -----------------------------------------------------------------------------------------
def candidate(loop: Loop) -> Loop | None:
    """Return the loop over columns that is the first statement of a loop over rows, if its sums have operands
    that are the same for all rows; else None."""
    inner = loop.body[0] if loop.body else None
    if not isinstance(inner, Loop) or loop.parallel or inner.parallel:
        return None
    if not all(type(n) is int for n in loop.bounds) or loop.bounds[2] != 1 or inner.bounds[2] != 1:
        return None
    first, end, _ = inner.bounds
    if dims.slope(first, loop.var) != 0 or dims.slope(end, loop.var) not in (0, 1):
        return None
    if not all(isinstance(stmt, Part) for stmt in (*inner.body, *loop.body[1:])):
        return None
    parts = [stmt for stmt in flatten(inner.body) if isinstance(stmt, Compute)]
    sums = [part for part in parts if part.combine == "add"]
    if len(parts) > PARTS or not all(part in sums or is_point(part) for part in parts):
        return None
    return inner if sums and all(_shares(part, loop.var) for part in sums) else None


def _shares(part: Compute, var: str) -> bool:
    """Whether a statement is a sum to one element of which all rows share some operands."""
    shape = part.target.shape
    if len(shape) != 1 or _runs(part.target) or part.init is None or var in dims.free_symbols(shape[0]):
        return False
    along = [load.window for load in windows.loads(part.body) if isinstance(load, Load)]
    return any(_runs(window) and var not in _moved(window) for window in along)


def _runs(window: Window) -> bool:
    return any(ix.axis is not None for ix in window.index)


def _moved(window: Window) -> frozenset[str]:
    """Return the variables that move a window."""
    numbers = [n for ix in window.index for n in (ix.offset, ix.stride)]
    return frozenset[str]().union(*map(dims.free_symbols, numbers))


def can_jam(loop: Loop, inner: Loop, region: Region) -> _Rows | Reason:
    """Return the rows that can be jammed, if the columns that they have in common are independent; or why
    not. ``loop`` is a statement of ``region``, that very object."""
    pair = iteration_pair(loop)
    if pair is None:
        return Reason(f"the step of {loop.var} is not known")
    u, after, known = pair
    root = families(region)
    with dims.ranging(loop.var, loop.bounds):
        whole = privatisable(loop.body, region)
        with dims.ranging(inner.var, inner.bounds):
            mine = privatisable(inner.body, region)
    written = {root[window.array] for stmt in loop.body for window in writes(stmt)}
    first, end, step = inner.bounds
    if dims.prove_le(first, dims.substitute(end, {loop.var: loop.bounds[0]})) is not True:
        return Reason("the first rows may end before they begin")
    common = replace(inner, bounds=(first, dims.substitute(end, {loop.var: u}), step))
    before = accesses(loop.body, {loop.var: u}, "_a", {}, written, root)
    behind = accesses((common,), {loop.var: after}, "_b", {}, written, root)
    conflict = compare_iterations(before, behind, mine, known, root)
    return conflict if isinstance(conflict, Reason) else _Rows(loop, inner, mine, whole)


def _worth(loop: Loop, inner: Loop, region: Region) -> bool:
    hints, iterations = SizeHints(region), len(range(*loop.bounds))
    inside, _ = hints.within(loop.var, loop.bounds)
    return iterations >= MIN_ROWS and inside(inner.bounds[1]) - inside(inner.bounds[0]) >= MIN_COLUMNS


# ---- action -------------------------------------------------------------------------------------------
def jam(nest: _Rows, region: Region) -> tuple[tuple[Loop, ...], list[Array]]:
    """Return the loop unrolled and jammed by `ROWS`, the remaining rows, and new temporaries."""
    loop, inner = nest.loop, nest.inner
    start, stop, _ = loop.bounds
    middle = start + (stop - start) // ROWS * ROWS
    i, row = dims.symbol(loop.var, None), dims.symbol(f"{loop.var}_row", None)
    arrays = {array.name: array for array in region.arrays}
    taken = set(arrays)
    new: list[Array] = []

    def copies(names: frozenset[str]) -> dict[str, str]:
        new_names = {}
        for name in sorted(names):
            new_names[name] = numbered(name, taken)
            taken.add(new_names[name])
            new.append(replace(arrays[name], name=new_names[name]))
        return new_names

    def at(part: Compute, value: Dim, names: dict[str, str]) -> Compute:
        moved: Stmt = statement_at(part, {loop.var: value})
        for old, name in names.items():
            moved = rename(moved, old, name)
        assert isinstance(moved, Compute)
        return moved

    def copied(stmt: Stmt, value: Dim, names: dict[str, str]) -> Stmt:
        if isinstance(stmt, Nest):
            return replace(stmt, body=tuple(at(part, value, names) for part in stmt.body))
        assert isinstance(stmt, Compute)
        return at(stmt, value, names)

    rows = [(i + k, copies(nest.mine)) for k in range(ROWS)]
    together: list[Stmt] = []
    for stmt in inner.body:
        unit = [part for part in flatten((stmt,)) if isinstance(part, Compute)]
        unrolled = [at(part, value, names) for value, names in rows for part in unit]
        together += [Nest(tuple(unrolled), stmt.loc)] if unit[0].combine is not None else unrolled
    body: list[Stmt] = [replace(inner, body=tuple(together))]

    names = copies(nest.all)
    rest = [copied(stmt, row, names) for stmt in loop.body[1:]]
    end = dims.substitute(inner.bounds[1], {loop.var: row})
    if end != inner.bounds[1]:
        iteration = tuple(copied(stmt, row, names) for stmt in inner.body)
        rest.insert(0, replace(inner, bounds=(inner.bounds[1], end, 1), body=iteration))
    if rest:
        body.append(Loop(f"{loop.var}_row", (i, i + ROWS, 1), tuple(rest), loc=loop.loc))
    some = replace(loop, bounds=(start, middle, ROWS), body=tuple(body))
    return ((some, replace(loop, bounds=(middle, stop, 1))) if middle < stop else (some,)), new


# ---- the pass -----------------------------------------------------------------------------------------
def _run(region: Region, log: Log) -> Region:
    def replaced(loop: Loop, region: Region, _: int) -> tuple[tuple[Loop, ...], list[Array]] | None:
        inner = candidate(loop)
        if inner is None or not _worth(loop, inner, region):
            return None
        name, rows = f"the loop over {loop.var}", can_jam(loop, inner, region)
        if isinstance(rows, Reason):
            log.refused("triangular_jam", f"{name} stays row by row: {rows.text}", loop.loc)
            return None
        log.done("triangular_jam", f"{ROWS} rows of {name} go through their columns at once", loop.loc)
        return jam(rows, region)

    region = in_bodies(region, log, _run)
    changed = each_loop(region, replaced)
    return region if changed is region else without_unused(changed)


TRIANGULAR_JAM = Pass("triangular_jam", _run)
