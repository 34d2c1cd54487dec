"""Effects of statements: the windows that they read and write, and the dependences that follow from these."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from dcarray.ir.dims import count, free_symbols, loop_range, simplify, slope, smallest, substitute
from dcarray.ir.memo import kept, symbols_of
from dcarray.ir.nodes import (
    Branch,
    Call,
    Compute,
    Dim,
    Expr,
    Gather,
    Group,
    Index,
    Loop,
    Nest,
    Part,
    Region,
    Role,
    Stmt,
    While,
    Window,
)
from dcarray.ir.records import record
from dcarray.ir.statements import bodies
from dcarray.ir.windows import covers, disjoint_rows, injective, loads, overlap, same


@record(frozen=True, slots=True)
class Reason:
    """Why a rewrite is not legal: a text for the user, and the windows that conflict."""

    text: str
    windows: tuple[Window, ...] = ()

    def __str__(self) -> str:
        return self.text


# ---- one statement ----------------------------------------------------------------------------------
def anywhere(array: str) -> Window:
    """Return a window without an index: unknown elements of ``array``."""
    return Window(array, (), ())


def _read_by(*exprs: Expr) -> list[Window]:
    return [
        anywhere(load.window.array) if isinstance(load, Gather) else load.window
        for expr in exprs
        for load in loads(expr)
    ]


#: A window in a statement, and the loops inside of the statement that may move it, the innermost first.
_Moved = tuple[Window, tuple[tuple[str, tuple[Dim, Dim, Dim]], ...]]


def reads(stmt: Stmt) -> tuple[Window, ...]:
    """Return the windows that the statement may read: for an array read at data-dependent positions
    `anywhere`, for a window that moves with a loop inside ``stmt`` its `widened_footprint`."""
    return _in_all_iterations(_moved_reads(stmt)) if bodies(stmt) else _leaf_reads(stmt)


def writes(stmt: Stmt) -> tuple[Window, ...]:
    """Return the windows that the statement may write; see `definite_writes` for those that it must."""
    return _in_all_iterations(_moved_writes(stmt)) if bodies(stmt) else _leaf_writes(stmt)


@kept
def _leaf_reads(stmt: Compute | Call | Group) -> tuple[Window, ...]:
    match stmt:
        case Compute(target, body, combine, init):
            windows = _read_by(body) + (_read_by(init) if init is not None else [])
            if combine is not None and init is None:
                windows.append(target)
            return _unique(windows)
        case Call():
            return _unique(stmt.reads)
        case _:
            return _unique([w for s in stmt.body for w in _leaf_reads(s)])


@kept
def _leaf_writes(stmt: Compute | Call | Group) -> tuple[Window, ...]:
    match stmt:
        case Compute(target):
            return (target,)
        case Call():
            return _unique(stmt.writes)
        case _:
            return _unique([w for s in stmt.body for w in _leaf_writes(s)])


@kept
def _moved_reads(stmt: Stmt) -> tuple[_Moved, ...]:
    parts = bodies(stmt)
    own = _read_by(stmt.cond) if isinstance(stmt, While | Branch) else [] if parts else _leaf_reads(stmt)
    inner = [one for part in parts for s in part for one in _moved_reads(s)]
    return tuple(dict.fromkeys([*[(w, ()) for w in own], *_moved_by(stmt, inner)]))


@kept
def _moved_writes(stmt: Stmt) -> tuple[_Moved, ...]:
    parts = bodies(stmt)
    if not parts:
        return tuple([(w, ()) for w in _leaf_writes(stmt)])
    inner = [one for part in parts for s in part for one in _moved_writes(s)]
    return tuple(dict.fromkeys(_moved_by(stmt, inner)))


def _moved_by(stmt: Stmt, inner: list[_Moved]) -> list[_Moved]:
    if not isinstance(stmt, Loop):
        return inner
    var, own = stmt.var, (stmt.var, stmt.bounds)
    return [(w, (*loops, own)) if loops or var in symbols_of(w) else (w, loops) for w, loops in inner]


def _in_all_iterations(moved: Iterable[_Moved]) -> tuple[Window, ...]:
    widened: dict[Window, None] = {}
    for window, loops in moved:
        for var, bounds in loops:
            window = widened_footprint(window, var, bounds)
        widened[window] = None
    return tuple(widened)


def definite_writes(stmt: Stmt) -> tuple[Window, ...]:
    """Return the windows of which every element is written whenever the statement runs."""
    match stmt:
        case Branch(_, then, orelse):
            first = [w for s in then for w in definite_writes(s)]
            second = [w for s in orelse for w in definite_writes(s)]
            return tuple(w for w in first if any(covers(v, w) is True for v in second))
        case Loop(var, bounds, inner):
            footprints = [footprint(w, var, bounds) for s in inner for w in definite_writes(s)]
            return _unique([w for w in footprints if w is not None])
        case While():
            return ()
        case _:
            return _definite_leaf_writes(stmt)


@kept
def _definite_leaf_writes(stmt: Compute | Call | Group) -> tuple[Window, ...]:
    match stmt:
        case Compute(target, _, combine, init):
            return (target if combine is None or init is None else without_reduced_axes(target),)
        case Call():
            return _leaf_writes(stmt)
        case _:
            return _unique([w for s in stmt.body for w in _definite_leaf_writes(s)])


def without_reduced_axes(target: Window) -> Window:
    """Return the target's window without the domain axes that no index of it uses: the reduced axes."""
    axes = sorted({ix.axis for ix in target.index if ix.axis is not None})
    index = tuple(
        ix if ix.axis is None else Index(ix.offset, ix.stride, axes.index(ix.axis)) for ix in target.index
    )
    return Window(target.array, tuple(target.shape[axis] for axis in axes), index)


@kept
def touched_arrays(stmt: Stmt) -> frozenset[str]:
    """Return the names of the arrays that the statement may read or write."""
    return frozenset([w.array for w, _ in (*_moved_reads(stmt), *_moved_writes(stmt))])


def _unique(windows: Iterable[Window]) -> tuple[Window, ...]:
    return tuple(dict.fromkeys(windows))


def footprint(window: Window, var: str, bounds: tuple[Dim, Dim, Dim]) -> Window | None:
    """Return one window with the elements that a window touches in all iterations of a loop over ``var``.
    None if there is no such window: the loop must move it along one axis of the array at most, along which
    the iteration domain does not."""
    if any(var in free_symbols(d) for d in (*window.shape, *(ix.stride for ix in window.index))):
        return None
    moved = [k for k, ix in enumerate(window.index) if var in free_symbols(ix.offset)]
    iterations = count(bounds)
    if iterations is None or len(moved) > 1:
        return None
    shape = (*window.shape, iterations)  # without iterations there are no elements either
    if not moved:
        return Window(window.array, shape, window.index)
    (k,) = moved
    ix = window.index[k]
    pace = slope(ix.offset, var)
    if ix.axis is not None or pace is None:
        return None
    along = Index(substitute(ix.offset, {var: bounds[0]}), simplify(pace * bounds[2]), len(window.shape))
    return Window(window.array, shape, (*window.index[:k], along, *window.index[k + 1 :]))


def widened_footprint(window: Window, var: str, bounds: tuple[Dim, Dim, Dim]) -> Window:
    """Return a window that contains all elements which a window touches in a loop: the `footprint`, the box
    between the least and the greatest indices, or ``anywhere``."""
    if var not in symbols_of(window):
        return window
    wide = footprint(window, var, bounds) or _bounding_box(window, var, bounds)
    return anywhere(window.array) if wide is None else wide


def _bounding_box(window: Window, var: str, bounds: tuple[Dim, Dim, Dim]) -> Window | None:
    """Return the smallest box that contains a window in all iterations of a loop; None if that is not
    known."""
    ends = {var: loop_range(*bounds)}
    shape: list[Dim] = []
    index: list[Index] = []
    for ix in window.index:
        last = ix.offset if ix.axis is None else ix.offset + window.shape[ix.axis] - 1
        low, high = smallest(ix.offset, ends), simplify(-smallest(simplify(-last), ends))
        known = ix.axis is None or (type(ix.stride) is int and ix.stride == 1)
        if not known or var in free_symbols(low) or var in free_symbols(high):
            return None
        index.append(Index(low, 1, len(shape)))
        shape.append(simplify(high - low + 1))
    return Window(window.array, tuple(shape), tuple(index)) if index else None


# ---- memory -----------------------------------------------------------------------------------------
@kept
def families(region: Region) -> dict[str, str]:
    """Return for every array the root of its chain of bases: arrays with the same root may share memory,
    others never do."""
    base = {array.name: array.base for array in region.arrays}
    roots: dict[str, str] = {}
    for name in base:
        root = name
        while (up := base.get(root)) is not None:
            root = up
        roots[name] = root
    return roots


@kept
def sharing(region: Region) -> frozenset[str]:
    """Return the names of the arrays that share their memory with another array of the region."""
    root = families(region)
    shared = {root[array.name] for array in region.arrays if array.base is not None}
    return frozenset(array.name for array in region.arrays if root[array.name] in shared)


def roles(region: Region) -> dict[str, Role]:
    """Return the role of each array by name; for a temporary that shares the memory of another array (its
    root base), the role of that array."""
    root = families(region)
    known = {array.name: array.role for array in region.arrays}
    return {name: known[root[name]] if role == "temp" else role for name, role in known.items()}


def clash(a: Window, b: Window, region: Region) -> bool | None:
    """Return whether two windows of a region, of one array or of two, share an element; None if unknown."""
    if a.array == b.array:
        return overlap(a, b)
    root = families(region)
    return None if root[a.array] == root[b.array] else False


# ---- nests and rows ---------------------------------------------------------------------------------
def nest_conflict(body: tuple[Compute, ...], region: Region) -> Reason | None:
    """Return why the statements cannot run point by point, each point in order; None if that gives the
    results of running them one after the other."""
    for k, later in enumerate(body):
        for earlier in body[:k]:
            pairs = [(earlier, w) for w in (*reads(later), later.target)]
            pairs += [(later, w) for w in reads(earlier)]
            for writer, w in pairs:
                v = writer.target
                if clash(v, w, region) is False:
                    continue
                if v.array != w.array or not same(v, w) or injective(v) is not True:
                    late = "is complete only after the whole loop"
                    text = late if writer.combine is not None else "is touched at different points"
                    return Reason(f"{v.array} {text}", (v, w))
    return None


def domain(stmt: Part) -> tuple[Dim, ...]:
    """Return the shape of the iteration domain of a statement, or of the first one of a nest."""
    return stmt.target.shape if isinstance(stmt, Compute) else stmt.body[0].target.shape


def computes_of(stmt: Part) -> tuple[Compute, ...]:
    """Return the statements of a nest, or for another statement the tuple of it alone."""
    return stmt.body if isinstance(stmt, Nest) else (stmt,)


def folds_rows(compute: Compute, axes: int) -> bool:
    """Whether a statement reduces over rows, a row being a point of the first ``axes`` axes of its domain."""
    moving = {ix.axis for ix in compute.target.index if ix.axis is not None}
    return compute.combine is not None and moving.isdisjoint(range(axes))


def rows_conflict(body: tuple[Part, ...], axes: int, region: Region) -> Reason | None:
    """Return why running the statements row by row (all of them for one row, then for the next) would give
    other results than one after the other, else None.  A row is a point of the first ``axes`` axes."""
    for number, later in enumerate(body):
        for target in [one.target for one in computes_of(later) if not folds_rows(one, axes)]:
            if not disjoint_rows(target, target, axes):
                return Reason(f"{target.array} is complete only after the last row", (target,))
        for earlier in body[:number]:
            pairs = [(v, w) for v in writes(earlier) for w in (*reads(later), *writes(later))]
            pairs += [(v, w) for v in reads(earlier) for w in writes(later)]
            for v, w in pairs:
                if clash(v, w, region) is not False and not (
                    v.array == w.array and disjoint_rows(v, w, axes)
                ):
                    if v.array != w.array:
                        return Reason(f"{w.array} may share memory with {v.array}", (v, w))
                    parts = (*computes_of(earlier), *computes_of(later))
                    if {v, w} & {one.target for one in parts if folds_rows(one, axes)}:
                        return Reason(f"{w.array} is complete only after the last row", (v, w))
                    return Reason(f"a row needs {w.array} of other rows", (v, w))
    return None


# ---- the order of statements ------------------------------------------------------------------------
def depends(a: Stmt, b: Stmt, region: Region) -> Reason | None:
    """Return the dependence of ``b`` on ``a``, a statement before it, as a reason; None if the two may be
    exchanged."""
    return conflict((reads(a), writes(a)), (reads(b), writes(b)), region)


def conflict(
    earlier: tuple[tuple[Window, ...], tuple[Window, ...]],
    later: tuple[tuple[Window, ...], tuple[Window, ...]],
    region: Region,
) -> Reason | None:
    """Return why two pieces of work must stay in order, else None; each is given as a pair of the windows
    that it reads and those that it writes."""
    root = families(region)
    kinds = (
        ("reads what the earlier statement writes", earlier[1], later[0]),
        ("overwrites what the earlier statement reads", earlier[0], later[1]),
        ("overwrites what the earlier statement writes", earlier[1], later[1]),
    )
    for text, first, second in kinds:
        for v, w in product(first, second):
            if root[v.array] != root[w.array]:
                continue
            if v.array != w.array:
                return Reason(f"{text}: {w.array} may share memory with {v.array}", (v, w))
            if overlap(v, w) is not False:
                return Reason(f"{text}: {w.array}", (v, w))
    return None


def overwritten_inputs(region: Region) -> tuple[str, ...]:
    """Return the ``inout`` arrays of which a run may overwrite elements that it has read before, so that a
    second run would give other results."""
    shared = sharing(region)
    return tuple(
        array.name
        for array in region.arrays
        if array.role == "inout" and (array.name in shared or _overwrites_input(array.name, region))
    )


def _overwrites_input(name: str, region: Region) -> bool:
    first: Window | None = None
    read = False
    for stmt in region.body:
        written = [w for w in writes(stmt) if w.array == name]
        read = read or (first is None and any(w.array == name for w in reads(stmt)))
        if not written:
            continue
        if read or isinstance(stmt, Loop | While | Branch):
            return True
        first = first or written[0]
        if not all(covers(first, w) is True for w in written):
            return True
    return False
