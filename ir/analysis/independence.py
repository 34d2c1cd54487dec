"""Loop-carried dependences: whether a loop's iterations may run in any order, and with which private arrays.

Two iterations are compared: one at a value ``u`` of the variable, and one that comes later, at ``u + step *
t`` with ``t >= 1``.  Where one of them writes, the other must touch nothing, whatever ``u`` and ``t`` are and
whatever iterations the loops inside are in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dcarray.ir import dims
from dcarray.ir.memo import kept
from dcarray.ir.nodes import Branch, Call, Dim, Index, Loop, Region, Stmt, While, Window
from dcarray.ir.records import record
from dcarray.ir.statements import all_statements, bodies, flatten
from dcarray.ir.windows import covers, identity, overlap, union

from .effects import (
    Reason,
    definite_writes,
    families,
    reads,
    sharing,
    touched_arrays,
    widened_footprint,
    writes,
)

_Ranges = dict[str, tuple[Dim | None, Dim | None]]


# ---- privatisation ----------------------------------------------------------------------------------
def privatisable(body: tuple[Stmt, ...], region: Region) -> frozenset[str]:
    """Return the privatisable temporaries of a loop's or branch's body: those that no other statement uses,
    and that each run of the body writes before it reads them.  ``body`` must be the very object that is in
    ``region``, not an equal one."""
    asked, context = _asked(region), dims.known()
    if id(body) not in asked or asked[id(body)][0] != context:
        asked[id(body)] = context, _privatisable(body, region)
    return asked[id(body)][1]


@kept
def _asked(region: Region) -> dict[int, tuple[object, frozenset[str]]]:
    """Return the cache of `privatisable` of a region: by ``id(body)``, the assumptions of proofs and the
    result."""
    return {}


def _privatisable(body: tuple[Stmt, ...], region: Region) -> frozenset[str]:
    inside: dict[str, list[Stmt]] = {}
    for stmt in flatten(body):
        for name in touched_arrays(stmt):
            inside.setdefault(name, []).append(stmt)
    outside, times = _elsewhere(region.body, body)
    if times != 1:
        return frozenset()
    shared = sharing(region)
    return frozenset(
        array.name
        for array in region.arrays
        if array.role == "temp"
        and array.name in inside
        and array.name not in outside
        and array.name not in shared
        and not upward_exposed_reads(inside[array.name], identity(array))
    )


def _elsewhere(stmts: Iterable[Stmt], body: tuple[Stmt, ...]) -> tuple[frozenset[str], int]:
    """Return the arrays that statements in ``stmts`` outside of ``body`` touch, and how often ``body``
    occurs."""
    arrays: set[str] = set()
    times = 0
    for stmt in stmts:
        parts = bodies(stmt)
        if not (parts and isinstance(stmt, Loop)):
            arrays |= touched_arrays(_head(stmt) if parts else stmt)
        for part in parts:
            if part is body:
                times += 1
            else:
                names, more = _elsewhere(part, body)
                arrays |= names
                times += more
    return frozenset(arrays), times


def upward_exposed_reads(body: Iterable[Stmt], whole: Window) -> list[Window]:
    """Return the windows of an array that statements read before any of them has definitely written them."""
    covered: list[Window] = []
    exposed: list[Window] = []
    for stmt in flatten(body):
        if whole.array not in touched_arrays(stmt):
            continue
        if isinstance(stmt, Loop):
            with dims.ranging(stmt.var, stmt.bounds):
                inner = upward_exposed_reads(stmt.body, whole)
            some = [widened_footprint(w, stmt.var, stmt.bounds) for w in inner]
        else:
            some = [w for w in reads(_head(stmt)) if w.array == whole.array]
            some += [w for part in bodies(stmt) for w in upward_exposed_reads(part, whole)]
        for window in some:
            wanted = window if window.index else whole
            if not any(covers(w, wanted) is True for w in covered):
                exposed.append(wanted)
        for window in definite_writes(stmt):
            if window.array == whole.array:
                _add(covered, window)
    return exposed


def _add(covered: list[Window], window: Window) -> None:
    """Add a window to ``covered``, merged with another one there if their union is a window."""
    for k, other in enumerate(covered):
        if (both := union(other, window)) is not None:
            del covered[k]
            _add(covered, both)
            return
    covered.append(window)


def _head(stmt: Stmt) -> Stmt:
    """Return a while loop or branch with empty bodies, so with its condition alone; other statements as they
    are."""
    if isinstance(stmt, While):
        return While(stmt.cond, ())
    return Branch(stmt.cond, ()) if isinstance(stmt, Branch) else stmt


# ---- dependences between iterations -----------------------------------------------------------------
@record(frozen=True, slots=True)
class Access:
    """A window that one iteration reads or writes, and the ranges of the loop variables that it depends
    on."""

    window: Window
    writing: bool
    ranges: tuple[tuple[str, tuple[Dim | None, Dim | None]], ...]


def iteration_conflict(loop: Loop, region: Region) -> Reason | None:
    """Return why the iterations of a loop may not run in parallel; None if they may.  ``loop`` must be the
    very object that is in ``region``, in any body there."""
    private = privatised_arrays(loop, region)
    return private if isinstance(private, Reason) else None


def privatised_arrays(loop: Loop, region: Region) -> frozenset[str] | Reason:
    """Return the temporaries of which parallel iterations need private copies, or why the iterations may not
    run in parallel.  ``loop`` must be the very object that is in ``region``."""
    pair = iteration_pair(loop)
    if pair is None:
        return Reason(f"the step of {loop.var} is not known")
    u, after, known = pair
    with dims.ranging(loop.var, loop.bounds):
        free = privatisable(loop.body, region)
    root = families(region)
    written = {root[w.array] for stmt in loop.body for w in writes(stmt)}
    for stmt in all_statements(loop.body):
        if isinstance(stmt, Call) and not stmt.writes:
            return Reason(f"{stmt.op} may have other effects")
    first = accesses(loop.body, {loop.var: u}, "_a", {}, written, root)
    second = accesses(loop.body, {loop.var: after}, "_b", {}, written, root)
    return compare_iterations(first, second, free, known, root)


def compare_iterations(
    first: Iterable[Access],
    second: Iterable[Access],
    free: frozenset[str],
    known: _Ranges,
    root: Mapping[str, str],
) -> frozenset[str] | Reason:
    """Return the arrays of ``free`` that the accesses of two iterations have in common, or the dependence
    between the iterations through another array."""
    common: set[str] = set()
    for a in first:
        for b in second:
            if not (a.writing or b.writing) or root[a.window.array] != root[b.window.array]:
                continue
            if a.window.array in common:
                continue
            if a.window.array != b.window.array:
                return Reason(f"{b.window.array} may share memory with {a.window.array}")
            with dims.between({**known, **dict(a.ranges), **dict(b.ranges)}):
                apart = overlap(a.window, b.window) is False
            if not apart and a.window.array in free:
                common.add(a.window.array)
            elif not apart:
                return Reason(f"an iteration may need {a.window.array} of another one", (a.window, b.window))
    return frozenset(common)


def iteration_pair(loop: Loop) -> tuple[Dim, Dim, _Ranges] | None:
    """Return symbolic values of the loop variable in one iteration and in a later one, and the ranges of the
    symbols in them; None if the loop's step is not known."""
    step = loop.bounds[2]
    if type(step) is not int:
        return None
    low, high = dims.loop_range(*loop.bounds)
    u, t = dims.symbol(f"{loop.var}_u", None), dims.symbol(f"{loop.var}_t", 1)
    most: Dim | None = None  # iterations from one to the other
    if step == 1 and high is not None:
        most = dims.simplify(high - u)
    if step == -1 and low is not None:
        most = dims.simplify(u - low)
    known: _Ranges = {f"{loop.var}_u": (low, high), f"{loop.var}_t": (1, most)}
    return u, dims.simplify(u + step * t), known


def accesses(
    body: tuple[Stmt, ...],
    values: Mapping[str, Dim],
    mark: str,
    ranges: _Ranges,
    written: set[str],
    root: Mapping[str, str],
) -> list[Access]:
    """Return one iteration's accesses to the families of arrays in ``written`` (``root`` has each array's
    family), with loop variables replaced by ``values``; those of inner loops get ``mark`` and go to
    ``ranges``."""
    unique: dict[Access, None] = {}
    for stmt in body:
        if isinstance(stmt, Loop):
            name = stmt.var + mark
            low, high = dims.loop_range(*stmt.bounds)
            bounds = (
                None if low is None else dims.substitute(low, values),
                None if high is None else dims.substitute(high, values),
            )
            inner = {**values, stmt.var: dims.symbol(name, None)}
            part = accesses(stmt.body, inner, mark, {**ranges, name: bounds}, written, root)
            unique.update(dict.fromkeys(part))
            continue
        parts = bodies(stmt)
        for some in parts:
            unique.update(dict.fromkeys(accesses(some, values, mark, ranges, written, root)))
        stmt = _head(stmt)
        for windows, writing in ((writes(stmt), True), (reads(stmt), False)):
            for window in windows:
                if root[window.array] in written:
                    window = window_at(window, values)
                    unique[Access(window, writing, tuple(ranges.items()))] = None
    return list(unique)


def window_at(window: Window, values: Mapping[str, Dim]) -> Window:
    """Return the window with the symbols in ``values`` replaced by their values."""
    shape = tuple(dims.substitute(n, values) for n in window.shape)
    index = tuple(
        Index(dims.substitute(ix.offset, values), dims.substitute(ix.stride, values), ix.axis)
        for ix in window.index
    )
    return Window(window.array, shape, index)
