"""Array padding and alignment: loops over time work on copies whose rows begin at vector boundaries.

An unaligned vector touches two cache lines, and rows of 40 elements, or the inner points of an array, are
rarely aligned.  An array that stays in a core's own cache for many iterations is copied before the loop and
back after it; the copy has padding before each row, so that most loads and stores are aligned.

Where each iteration writes the same inner points before anything reads them, the first iteration is peeled
and reads the arrays themselves: then only the border around those points is copied before (loop peeling).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from dcarray.ir.analysis.effects import Reason, anywhere, computes_of, families, reads, touched_arrays, writes
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.dims import free_symbols
from dcarray.ir.nodes import (
    Apply,
    Array,
    Call,
    Compute,
    Dim,
    Index,
    Load,
    Loop,
    Nest,
    Part,
    Region,
    Rows,
    Size,
    Stmt,
    TimeTiles,
    Window,
)
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.fusion_profit import NEST
from dcarray.ir.passes.nested import each_loop
from dcarray.ir.renaming import rewindow
from dcarray.ir.statements import all_statements
from dcarray.ir.windows import identity, walk

from .time_tiling import CacheLimits

#: Bytes of a vector register and of a cache line.
LINE = 64
#: Rows that are a multiple of so many cache lines apart share few sets of the cache, and loads seem to alias
#: recent stores to other rows, since processors compare only the last bits of addresses (4K aliasing).
CROWDED = 4
#: Fewer iterations do not make up for the copies, nor do fewer points in all of them.
MIN_ITERATIONS, MIN_POINTS = 24, 1 << 19
#: Rows of fewer lines have little to align.
MIN_ROW = 2
#: Operations that take no longer than their loads.  Divisions and functions take longer: alignment gains
#: nothing.
QUICK = frozenset(
    {
        "add", "subtract", "multiply", "square", "negative", "positive", "absolute", "maximum", "minimum",
        "where", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal",
    }
)  # fmt: skip


# ---- legality -----------------------------------------------------------------------------------------
def can_align(array: Array, loop: Loop, region: Region) -> Reason | None:
    """Return why a loop cannot use a copy of ``array`` with padded rows instead; None if it can."""
    if array.dtype.kind not in "fiu" or LINE % array.dtype.itemsize:
        return Reason(f"{array.name} does not consist of what vectors hold")
    if array.strides is not None or any(type(extent) is not int for extent in array.shape):
        return Reason(f"it is not known how {array.name} lies in memory")
    if not array.shape or 0 in array.shape:
        return Reason(f"{array.name} has no rows")
    if array.layout is not None or array.place != "host":
        return Reason(f"{array.name} lies elsewhere")
    root = families(region)
    if list(root.values()).count(root[array.name]) > 1:
        return Reason(f"{array.name} is used in several shapes")
    if array.name in _fixed_layout(loop.body) or anywhere(array.name) in (*reads(loop), *writes(loop)):
        return Reason(f"it is not known which elements of {array.name} are used")
    return None


def _fixed_layout(body: tuple[Stmt, ...]) -> frozenset[str]:
    """Return the arrays that library calls, time tiles or rows use, which need their memory layout."""
    fixed = (stmt for stmt in all_statements(body) if isinstance(stmt, Call | TimeTiles | Rows))
    return frozenset[str]().union(*map(touched_arrays, fixed))


# ---- what it is worth ---------------------------------------------------------------------------------
def row_start(array: Array, loop: Loop) -> int | None:
    """Return the position in an array's rows at which most accesses of a loop begin, to be aligned; None if
    an iteration writes less than half of the array."""
    found: Counter[int] = Counter()
    much = False
    for stmt in loop.body:
        for written, windows in ((True, writes(stmt)), (False, reads(stmt))):
            for window in windows:
                if window.array != array.name or not _along(window):
                    continue
                found[window.index[-1].offset] += 1
                moves = any(loop.var in free_symbols(ix.offset) for ix in window.index)
                known = all(type(n) is int for n in window.shape)
                much |= (
                    written and known and not moves and 2 * math.prod(window.shape) >= math.prod(array.shape)
                )
    return found.most_common(1)[0][0] if much else None


def _along(window: Window) -> bool:
    """Whether the window runs along the array's last axis with stride 1 from a known position."""
    last = window.index[-1] if window.index else None
    return last is not None and last.axis is not None and last.stride == 1 and type(last.offset) is int


def _operations(body: tuple[Stmt, ...]) -> frozenset[str]:
    """Return the names of the element-wise operations in statements."""
    plain = (stmt for stmt in all_statements(body) if isinstance(stmt, Part))
    roots = [compute.body for stmt in plain for compute in computes_of(stmt)]
    return frozenset(node.op for node in walk(*roots) if isinstance(node, Apply))


def worth_aligning(loop: Loop, region: Region, limits: CacheLimits) -> Reason | None:
    """Return why aligned copies for a loop are not profitable; None if they are."""
    _, iterations = SizeHints(region).within(loop.var, loop.bounds)
    used = [array for array in region.arrays if array.name in touched_arrays(loop)]
    if any(type(extent) is not int for array in used for extent in array.shape):
        return Reason("it is not known how large its arrays are")
    if (
        iterations < MIN_ITERATIONS
        or iterations * max((math.prod(array.shape) for array in used), default=0) < MIN_POINTS
    ):
        return Reason("it has too few iterations")
    if sum(_bytes(array) for array in used) > limits.near:
        return Reason("its arrays do not stay in a cache that is near")
    if not _operations(loop.body) <= QUICK:
        return Reason("its operations take longer than loads")
    return None


def _bytes(array: Array) -> int:
    return math.prod(array.shape) * array.dtype.itemsize


def live_around(array: Array, loop: Loop, region: Region) -> tuple[bool, bool]:
    """Whether an array's contents before a loop are used in or after it, and whether its contents after the
    loop are."""
    position = next(k for k, stmt in enumerate(region.body) if stmt is loop)
    earlier, later = region.body[:position], region.body[position + 1 :]
    before = array.role in ("in", "inout") or any(array.name in touched_arrays(stmt) for stmt in earlier)
    return before, array.role in ("out", "inout") or any(array.name in touched_arrays(stmt) for stmt in later)


# ---- action -------------------------------------------------------------------------------------------
def padded_array(array: Array, begin: int, name: str) -> tuple[Array, int]:
    """Return a new array ``name`` of the shape of ``array`` with padded rows, so that position ``begin`` of
    each row is aligned, and the number of elements of the padding before a row."""
    lanes = LINE // array.dtype.itemsize
    ahead = -begin % lanes
    lines = -(-(array.shape[-1] + ahead) // lanes)
    if len(array.shape) > 1 and lines % CROWDED == 0:
        lines += 1
    return Array(name, array.dtype, (*array.shape[:-1], lines * lanes)), ahead


def _moved(window: Window, array: str, ahead: int) -> Window:
    last = window.index[-1]
    return Window(array, window.shape, (*window.index[:-1], replace(last, offset=last.offset + ahead)))


def align(loop: Loop, arrays: list[tuple[Array, int]], region: Region
) -> tuple[tuple[Array, ...], tuple[Stmt, ...]]:  # fmt: skip
    """Return the new arrays, and the loop that works on them between the copies."""
    names = {array.name for array in region.arrays}
    made: list[Array] = []
    before: list[Compute] = []
    after: list[Compute] = []
    others: dict[str, tuple[str, int]] = {}
    peeled: dict[str, int] = {}
    for array, begin in arrays:
        name = f"{array.name}_rows"
        while name in names:
            name += "_"
        names.add(name)
        copy, ahead = padded_array(array, begin, name)
        made.append(copy)
        others[array.name] = name, ahead
        copied, used = live_around(array, loop, region)
        written = written_once(array, loop) if copied else None
        if written is not None:
            peeled[array.name] = written[0]
        here = [identity(array)] if written is None else border(array, written[1])
        if copied:
            before += [Compute(_moved(w, name, ahead), Load(w, array.dtype), loc=loop.loc) for w in here]
        if used:
            whole = identity(array)
            after.append(Compute(whole, Load(_moved(whole, name, ahead), array.dtype), loc=loop.loc))

    def moved(window: Window) -> Window:
        return _moved(window, *others[window.array]) if window.array in others else window

    first: list[Compute] = []
    if peeled:
        first = _first_iteration(loop, peeled, moved)
        start, stop, step = loop.bounds
        loop = replace(loop, bounds=(start + step, stop, step))
    return tuple(made), (*_copy_nests(before), *first, rewindow(loop, moved), *_copy_nests(after))


def _first_iteration(loop: Loop, writers: dict[str, int], moved: Callable[[Window], Window]) -> list[Compute]:
    """Return the peeled iteration, which reads the arrays themselves until it has written their copies."""
    found: list[Compute] = []
    for k, stmt in enumerate(loop.body):

        def reading(window: Window, k: int = k) -> Window:
            return window if k <= writers.get(window.array, -1) else moved(window)

        read = rewindow(stmt, reading)
        assert isinstance(stmt, Compute) and isinstance(read, Compute)
        found.append(replace(read, target=moved(stmt.target)))
    return found


def written_once(array: Array, loop: Loop) -> tuple[int, Window] | None:
    """Return the statement of an iteration that writes an array, and the box that it writes, if the first
    iteration needs no copy of that box; else None."""
    bounds = [bound for bound in loop.bounds if type(bound) is int]
    if len(bounds) < 3 or len(range(*bounds)) < 2:
        return None
    found: list[tuple[int, Window]] = []
    for k, stmt in enumerate(loop.body):
        if not isinstance(stmt, Compute) or stmt.combine is not None or stmt.scan is not None:
            return None
        if loop.var in _symbols(stmt):
            return None
        if stmt.target.array == array.name:
            found.append((k, stmt.target))
    if len(found) != 1 or len(found[0][1].shape) != len(array.shape):
        return None
    window = found[0][1]
    straight = all(
        (ix.axis, ix.stride) == (axis, 1) and type(ix.offset) is int and type(extent) is int
        for axis, (ix, extent) in enumerate(zip(window.index, window.shape, strict=True))
    )
    return found[0] if straight else None


def _symbols(stmt: Compute) -> frozenset[str]:
    """Return the symbols that the windows and values of a statement depend on."""
    values = [node.dim for node in walk(stmt.body) if isinstance(node, Size)]
    for window in (*writes(stmt), *reads(stmt)):
        values += [*window.shape, *(dim for ix in window.index for dim in (ix.offset, ix.stride))]
    return frozenset().union(*map(free_symbols, values))


def border(array: Array, box: Window) -> list[Window]:
    """Return disjoint boxes that cover an array without the box ``box``."""
    found: list[Window] = []
    spans = [(0, int(extent)) for extent in array.shape]
    for axis, (ix, extent) in enumerate(zip(box.index, box.shape, strict=True)):
        low, high = int(ix.offset), int(ix.offset) + int(extent)
        for side in ((0, low), (high, spans[axis][1])):
            if side[0] < side[1]:
                part = [*spans[:axis], side, *spans[axis + 1 :]]
                index = tuple([Index(begin, 1, k) for k, (begin, _) in enumerate(part)])
                found.append(Window(array.name, tuple([end - begin for begin, end in part]), index))
        spans[axis] = low, high
    return found


def _copy_nests(copies: list[Compute]) -> list[Stmt]:
    """Return the copying statements, those of equal shape fused into nests: larger work for several
    threads."""
    shapes: dict[tuple[Dim, ...], list[Compute]] = {}
    for copy in copies:
        shapes.setdefault(copy.target.shape, []).append(copy)
    found: list[Stmt] = []
    for alike in shapes.values():
        for k in range(0, len(alike), NEST.statements):
            part = tuple(alike[k : k + NEST.statements])
            found.append(Nest(part, part[0].loc) if len(part) > 1 else part[0])
    return found


def aligned_copies(limits: CacheLimits) -> Pass:
    """Return the pass for a machine with these caches."""

    def run(region: Region, log: Log) -> Region:
        def replaced(loop: Loop, region: Region, _: int) -> tuple[tuple[Stmt, ...], tuple[Array, ...]] | None:
            found = candidates(loop, region, log)
            if not found:
                return None
            names = ", ".join(array.name for array, _ in found)
            text = f"the loop over {loop.var} works on a copy of {names}, row by row aligned"
            log.done("aligned_copies", text, loop.loc)
            made, stmts = align(loop, found, region)
            return stmts, made

        return each_loop(region, replaced)

    def candidates(loop: Loop, region: Region, log: Log) -> list[tuple[Array, int]]:
        if worth_aligning(loop, region, limits) is not None:
            return []
        found: list[tuple[Array, int]] = []
        for array in region.arrays:
            begin = row_start(array, loop) if array.name in touched_arrays(loop) else None
            if begin is None or array.shape[-1] * array.dtype.itemsize < MIN_ROW * LINE:
                continue
            reason = can_align(array, loop, region)
            if reason is None:
                copy, ahead = padded_array(array, begin, array.name)
                if (array.role, array.shape, ahead) == ("temp", copy.shape, 0):
                    continue  # it is so already
                found.append((array, begin))
            else:
                log.refused("aligned_copies", f"no copy for the loop over {loop.var}: {reason}", loop.loc)
        return found

    return Pass("aligned_copies", run)
