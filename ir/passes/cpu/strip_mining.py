"""Strip-mining and interchange: a loop runs once for each strip of an axis along which it has no dependence.

A sweep over columns, ``for j: p[:, j] = f(p[:, j-1])``, goes through all rows in every iteration, and returns
to a cache line only when the cache has evicted it.  Its rows are independent: each strip of rows goes from
the first column to the last, and strips may run in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from dcarray.ir import dims
from dcarray.ir.analysis.effects import Reason, computes_of, domain, reads, writes
from dcarray.ir.analysis.independence import iteration_conflict
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.nodes import Branch, Compute, Dim, Index, Loop, Nest, Part, Region, Stmt, While, Window
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.portable.collapse import can_collapse, collapse
from dcarray.ir.records import record
from dcarray.ir.renaming import remap_points, unused_names
from dcarray.ir.statements import bodies, loop_variables, with_bodies

from .time_tiling import CacheLimits

#: Bytes that an iteration of one strip may touch, to stay in the first cache.
NEAR = 16 << 10
#: Bytes of a cache line.
LINE = 64
#: The least height of strips along the innermost axis: some vectors.
MIN_HEIGHT = 32
#: The least height where memory is contiguous along the strip: enough for the hardware prefetcher.
RUN = 512
#: The least height where each iteration reduces rows that other iterations have reduced: they are cached.
FOLDED = 96
#: Heights are multiples of this.
VECTOR = 8
#: The wanted number of strips, more than cores, if they are high enough.
STRIPS_WANTED = 8
#: A loop with fewer points takes less time than waking other threads.
MIN_POINTS = 1 << 14
#: The most points of a statement that every strip may repeat.
AGAIN = 64

#: Makes a region with other statements in one body.
Put = Callable[[tuple[Stmt, ...]], Region]


# ---- which axis of each statement ---------------------------------------------------------------------
@record(frozen=True, slots=True)
class Cut:
    """A way to split a loop into strips: the domain axis, of length ``extent``, along which each of its plain
    statements is split, in order (None: the statement is not split)."""

    extent: Dim
    axes: tuple[int | None, ...]


def leaves(body: tuple[Stmt, ...]) -> Iterator[Part | None]:
    """Yield the statements in nested loops, in order; None for one that is neither a computation nor a
    nest."""
    for stmt in body:
        if isinstance(stmt, Loop):
            yield from leaves(stmt.body)
        else:
            yield stmt if isinstance(stmt, Part) else None


def cuts(loop: Loop, hints: SizeHints) -> Iterator[Cut]:
    """Return the candidate splits of a loop, the first axis first."""
    stmts = list(leaves(loop.body))
    parts = [part for part in stmts if part is not None]
    if not parts or len(parts) < len(stmts):
        return
    seed = max(parts, key=lambda part: len(domain(part)))
    hints, _ = hints.within(loop.var, loop.bounds)
    own = loop_variables((loop,))
    for axis, extent in enumerate(domain(seed)):
        if not own.isdisjoint(dims.free_symbols(extent)):
            continue  # a triangle
        cut = _along(parts, seed, axis, extent, hints)
        if cut is not None:
            yield cut


def _along(parts: list[Part], seed: Part, axis: int, extent: Dim, hints: SizeHints) -> Cut | None:
    """Return for each statement the axis that accesses the same positions of an array as ``axis`` of
    ``seed``; None if that is not unique for a statement."""
    if not all(_moves(target, axis) for target in writes(seed)) or _scans(seed, axis):
        return None
    places = _positions(seed, axis)
    axes: list[int | None] = []
    for part in parts:
        alike = [k for k, n in enumerate(domain(part)) if n == extent]
        meeting = [k for k in alike if _positions(part, k) & places]
        if not alike:
            if hints.product(domain(part)) > AGAIN:
                return None
            axes.append(None)
            continue
        best = (meeting or [k for k in alike if k == axis] or alike)[0]
        if _scans(part, best):
            return None
        places |= _positions(part, best)
        axes.append(best)
    return Cut(extent, tuple(axes))


def _scans(part: Part, axis: int) -> bool:
    """Whether a statement accumulates along an axis, so that each position needs those before it."""
    return any(compute.scan == axis for compute in computes_of(part))


def _moves(window: Window, axis: int) -> bool:
    return any(ix.axis == axis for ix in window.index)


def _positions(part: Part, axis: int) -> frozenset[tuple[str, int, Dim, Dim]]:
    """Return the array axes, with offset and stride, along which a statement's domain axis moves."""
    return frozenset(
        (window.array, k, ix.offset, ix.stride)
        for window in (*writes(part), *reads(part))
        for k, ix in enumerate(window.index)
        if ix.axis == axis
    )


# ---- how high ---------------------------------------------------------------------------------------
def height(loop: Loop, cut: Cut, region: Region, hints: SizeHints, threads: int) -> int | Reason:
    """Return the number of positions in a strip that suits ``threads`` threads, or why strips do not pay."""
    size = hints(cut.extent)
    inside, _ = hints.within(loop.var, loop.bounds)
    parts = [part for part in leaves(loop.body) if part is not None]
    used: dict[tuple[object, ...], int] = {}
    inner, along, again = False, True, False
    for part, axis in zip(parts, cut.axes, strict=True):
        if axis is None:
            continue
        inner |= axis == len(domain(part)) - 1
        again |= threads > 1 and _folds((part,))
        for window in dict.fromkeys((*writes(part), *reads(part))):
            if _moves(window, axis):
                pattern = (window.array, *((ix.axis, ix.stride) for ix in window.index))
                used[pattern] = _bytes(window, axis, region, inside)
                along &= window.index[-1].axis == axis
    most = NEAR // max(1, sum(used.values()))
    if not inner:
        high = max(1, min(most, size // STRIPS_WANTED))
    else:
        least = MIN_HEIGHT if not along else FOLDED if again else RUN
        most = max(least, min(most, size // STRIPS_WANTED))
        count = max(1, size // most)
        even = [n for n in range(count, 2 * count) if again and size % n == 0 and size == cut.extent]
        if even:  # or the last one would come after the others
            return size // even[0] if even[0] > 1 else Reason("one strip is all of it")
        high = -(-size // count)
        high += -high % VECTOR
    return high if high < size else Reason("one strip is all of it")


def points(body: tuple[Stmt, ...], hints: SizeHints) -> int:
    """Return the estimated number of points that a loop body computes in total, by size hints."""
    total = 0
    for stmt in body:
        if isinstance(stmt, Loop):
            inside, iterations = hints.within(stmt.var, stmt.bounds)
            total += iterations * points(stmt.body, inside)
        elif isinstance(stmt, Part):
            total += hints.product(domain(stmt))
        else:
            total += sum(points(part, hints) for part in bodies(stmt))
    return total


def _bytes(window: Window, axis: int, region: Region, hints: SizeHints) -> int:
    """Return the bytes, in whole cache lines, that one iteration touches of an array at one position of an
    axis."""
    array = next(array for array in region.arrays if array.name == window.array)
    shape = [n for k, n in enumerate(window.shape) if k != axis and _moves(window, k)]
    last = window.index[-1] if window.index else Index(0)
    near = last.axis is not None and last.stride in (1, -1) and array.strides is None
    return hints.product(shape) * (array.dtype.itemsize if near else LINE)


# ---- legality and action ----------------------------------------------------------------------------
def strips(loop: Loop, cut: Cut, high: int, name: str) -> Loop:
    """Return the loop over strips of ``high`` positions (fewer in the last one), each of which runs all
    iterations of ``loop`` for one strip."""
    start = dims.symbol(name, None)
    if type(cut.extent) is int and cut.extent % high == 0:
        count: Dim = high
    else:
        count = dims.minimum(high, cut.extent - start)
    body, _ = _cut(loop.body, list(cut.axes), start, count)
    return Loop(name, (0, cut.extent, high), (replace(loop, body=body),), True, loop.loc)


def _cut(
    body: tuple[Stmt, ...], axes: list[int | None], start: Dim, count: Dim
) -> tuple[tuple[Stmt, ...], list[int | None]]:
    """Return the statements restricted to ``count`` positions from ``start`` on, and the axes not used
    yet."""
    new: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Loop):
            inner, axes = _cut(stmt.body, axes, start, count)
            new.append(replace(stmt, body=inner))
            continue
        assert isinstance(stmt, Part)
        axis, *axes = axes
        if axis is not None:
            stmt = _part(stmt, axis, start, count)
        new.append(stmt)
    return tuple(new), axes


def _part(stmt: Part, axis: int, start: Dim, count: Dim) -> Part:
    if isinstance(stmt, Nest):
        parts = tuple(_part(part, axis, start, count) for part in stmt.body)
        assert all(isinstance(part, Compute) for part in parts)
        piece: Part = replace(stmt, body=parts)  # type: ignore[arg-type]
    else:
        old = stmt.target.shape
        shape = (*old[:axis], count, *old[axis + 1 :])
        amap = tuple(Index(start if k == axis else 0, 1, k) for k in range(len(old)))
        piece = remap_points(stmt, amap, shape)
    return collapse(piece) if can_collapse(piece) is None else piece


def pieces(loop: Loop, cut: Cut, high: int, name: str) -> tuple[Loop, ...]:
    """Return the loop over strips that are all ``high`` long, and a loop for the remaining positions, if
    any."""
    extent = cut.extent
    if type(extent) is not int or extent % high == 0:
        return (strips(loop, cut, high, name),)
    full = extent // high * high
    some = strips(loop, replace(cut, extent=full), high, name)
    last, _ = _cut(loop.body, list(cut.axes), full, extent - full)
    return some, replace(loop, body=last)


# ---- the pass ---------------------------------------------------------------------------------------
class _Sweep:
    """One traversal of all loops of a region, the outer ones first."""

    def __init__(self, log: Log, threads: int) -> None:
        self.log, self.threads = log, threads

    def body(self, stmts: tuple[Stmt, ...], put: Put, hints: SizeHints) -> tuple[Stmt, ...]:
        """Return the body with loops replaced by strips; ``put`` makes the region that has a given body
        here."""
        new: list[Stmt] = []
        for k, stmt in enumerate(stmts):
            around = tuple(new), stmts[k + 1 :]
            new += self.one(stmt, partial(_between, put, around), hints)
        same = len(new) == len(stmts) and all(a is b for a, b in zip(new, stmts, strict=True))
        return stmts if same else tuple(new)

    def one(self, stmt: Stmt, put: Put, hints: SizeHints) -> tuple[Stmt, ...]:
        """Return the statements that replace a statement."""
        if isinstance(stmt, Loop):
            if stmt.parallel:
                return (stmt,)
            split = self.cut(stmt, put, hints, MIN_POINTS)
            if split is not None:
                return split
            hints, _ = hints.within(stmt.var, stmt.bounds)
            with dims.ranging(stmt.var, stmt.bounds):
                return (self.inner(stmt, put, hints),)
        if isinstance(stmt, While):
            return (self.inner(stmt, put, hints),)
        if isinstance(stmt, Branch):
            then = self.body(stmt.then, lambda new: put((replace(stmt, then=new),)), hints)
            half = with_bodies(stmt, (then, stmt.orelse))
            orelse = self.body(half.orelse, lambda new: put((replace(half, orelse=new),)), hints)
            return (with_bodies(half, (then, orelse)),)
        return (stmt,)

    def inner(self, stmt: Loop | While, put: Put, hints: SizeHints) -> Loop | While:
        """Return the statement with the replacements of its body."""
        body = self.body(stmt.body, lambda new: put((replace(stmt, body=new),)), hints)
        return with_bodies(stmt, (body,))

    def cut(self, loop: Loop, put: Put, hints: SizeHints, least: int) -> tuple[Stmt, ...] | None:
        """Return the loop in strips, or as a parallel loop; None if it stays as it is."""
        region = put((loop,))
        name = f"the loop over {loop.var}"
        if points((loop,), hints) < least:
            self.log.refused("strip_mining", f"{name} stays whole: there is too little to do", loop.loc)
            return None
        reason = iteration_conflict(loop, region)
        if reason is None:
            self.log.done("strip_mining", f"the iterations of {name} may run at the same time", loop.loc)
            return (replace(loop, parallel=True),)
        for cut in cuts(loop, hints):
            high = height(loop, cut, region, hints, self.threads)
            if isinstance(high, Reason):
                reason = high
                continue
            var = _unused(region)
            whole = strips(loop, cut, high, var)
            reason = iteration_conflict(whole, put((whole,)))
            if reason is not None:
                continue
            self.log.done("strip_mining", f"{name} runs in strips of {high}", loop.loc)
            if high == 1:
                return (self.again(whole, put, hints),)
            return pieces(loop, cut, high, var) if _folds(loop.body) else (whole,)
        if reason is not None:
            self.log.refused("strip_mining", f"{name} stays whole: {reason.text}", loop.loc)
        return None

    def again(self, whole: Loop, put: Put, hints: SizeHints) -> Loop:
        """Return a loop over strips of one position in which the inner loop is split along another axis,
        too."""
        (loop,) = whole.body
        assert isinstance(loop, Loop)
        hints, _ = hints.within(whole.var, whole.bounds)
        with dims.ranging(whole.var, whole.bounds):
            split = self.cut(loop, lambda new: put((replace(whole, body=new),)), hints, 0)
        return whole if split is None else replace(whole, body=split)


def _between(put: Put, around: tuple[tuple[Stmt, ...], tuple[Stmt, ...]], new: tuple[Stmt, ...]) -> Region:
    return put((*around[0], *new, *around[1]))


def _folds(body: tuple[Stmt, ...]) -> bool:
    """Whether a statement reduces: only element-wise statements may have strips of different lengths."""
    parts = [part for part in leaves(body) if part is not None]
    return any(compute.combine is not None for part in parts for compute in computes_of(part))


def _strips(region: Region, log: Log, threads: int) -> Region:
    if not any(bodies(stmt) for stmt in region.body):
        return region
    body = _Sweep(log, threads).body(
        region.body, lambda stmts: replace(region, body=stmts), SizeHints(region)
    )
    return region if body is region.body else replace(region, body=body)


def _unused(region: Region) -> str:
    """Return a name that is not in use."""
    taken = {s.name for s in region.symbols} | {a.name for a in region.arrays} | loop_variables(region.body)
    return next(unused_names("r", taken))


def strip_mining(limits: CacheLimits) -> Pass:
    """Return the pass for a machine with these threads."""
    return Pass("strip_mining", lambda region, log: _strips(region, log, limits.threads))


STRIP_MINING = strip_mining(CacheLimits())
