"""The schedules of scans on devices: a thread per line, or three phases if lines are few and long.  On a
processor, a thread scans many neighbouring lines at once.

In three phases, each thread first folds a chunk of a line; then a block scans the results of a line's chunks;
then each thread scans its chunk, starting from the result of all chunks before it.  Rounding errors of sums
are as small as those of reductions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dcarray.ir import dims
from dcarray.ir.nodes import Compute, Const, Dim
from dcarray.lowering.kernel.nodes import (
    Affine,
    Assign,
    Declare,
    Elem,
    Expr,
    For,
    Index,
    Let,
    Lit,
    Local,
    Op,
    Stack,
    Stmt,
    Store,
    affine,
)
from dcarray.lowering.nest.access import product, scale, total
from dcarray.lowering.nest.body import Scope, cast_to
from dcarray.lowering.nest.fold import Fold, op
from dcarray.lowering.nest.loop_nest import Block, LoopHeader, LoopNest, build_loops, variable

from .blocks import (
    BOOL,
    LANE,
    Limits,
    Spread,
    Tile,
    add_blocks,
    ceil_power,
    guard,
    is_below,
    lane_of,
    scope_at,
    spread,
    threads,
    width_along,
)

WAVES = 4  # blocks for each that a device runs at a time; times that chunks are longer than usual, at most
STRIP = 256  # neighbouring lines that a thread scans on a processor
CHUNK = 32  # times that chunks are longer on a processor, which has few threads
LEVEL = 2  # of the threads of a block


def schedule_scan(nest: LoopNest, limits: Limits) -> None:
    """Add the phases of a scan (a cumulative sum or the like) to the nest's kernel."""
    (compute,) = nest.computes
    scanned = next(k for k, axes in enumerate(nest.loops.axes) if compute.scan in axes)
    kept = [k for k in range(len(nest.loops.axes)) if k != scanned]
    lines = nest.hints(total(nest.loops.extents[k] for k in kept))
    length = nest.hints(nest.loops.extents[scanned])
    if limits.vector:  # threads side by side are a vector, which is for neighbouring elements
        if kept and kept[-1] > scanned and lines >= limits.vector * limits.short:
            _by_strips(nest, compute, kept, scanned, limits)
            return
        limits = replace(limits, threads=1, serial=limits.serial * CHUNK)
    if lines >= limits.threads * limits.short or length <= 2 * limits.serial:
        _by_lines(nest, compute, kept, scanned, limits)
    else:
        _by_chunks(nest, compute, kept, scanned, limits)


def _start(compute: Compute) -> Lit:
    start = compute.init
    assert isinstance(start, Const)
    return Lit(start.bits, start.dtype)


def _by_lines(nest: LoopNest, compute: Compute, kept: list[int], scanned: int, limits: Limits) -> None:
    """Add to the kernel the phase in which each thread scans a line, element by element."""
    tile = _line_tile(nest, kept, limits)
    blocks = spread(nest, kept, tile)
    lane = lane_of(tile, nest.names)
    depths = {**blocks.depths(LEVEL), scanned: LEVEL + 1}
    scope = scope_at(nest, blocks.variables(lane), depths, LEVEL + 1, nest.nonempty)
    start, name = _start(compute), str(compute.combine)
    folded = Local(nest.names("a"), start.dtype)
    value = _value(nest, compute, scope)
    running = scope.name(op(name, folded, value))
    scope.add(Assign(folded.name, running))
    scope.store(compute.target, running, False)
    body = build_loops(scope, LEVEL, [nest.whole_loop(scanned)], "serial")
    body = (Declare(folded.name, start), *body)
    inside = blocks.guard(lane, body) if kept else guard([is_below(variable(LANE), 1)], body)
    whole = (*scope.take(0), *scope.take(1), threads(tile.threads, (*lane.before, *inside)))
    add_blocks(nest, blocks.grid, tile.threads, whole, (), tile.threads * nest.loops.extents[scanned])


def _by_strips(nest: LoopNest, compute: Compute, kept: list[int], scanned: int, limits: Limits) -> None:
    """Add to the kernel the phase in which a thread scans a strip of neighbouring lines, for processors.

    The loop over the lines is inside of that along them: memory is read and written in order, and lines are
    vectors.  The results so far are in memory of the block.
    """
    last = kept[-1]
    tile = Tile(1, 1, last, strip=STRIP)
    blocks = spread(nest, kept, tile)
    lane = lane_of(tile, nest.names)
    start, name, place = _start(compute), str(compute.combine), nest.names("s")
    own = blocks.variables(lane)
    at = variable("u0")
    depths = {**blocks.depths(LEVEL), scanned: LEVEL + 1, last: LEVEL + 2}
    extent = nest.arguments.extent(last)
    rest = affine(0, extent, scale(-1, own[last]))
    stop = (affine(STRIP), rest)
    scope = scope_at(nest, {**own, last: affine(0, own[last], at)}, depths, LEVEL + 2, nest.nonempty)
    running = scope.name(op(name, Elem(place, at, start.dtype), _value(nest, compute, scope)))
    scope.add(Store(place, at, running))
    scope.store(compute.target, running, False)
    across = LoopHeader("u0", affine(), stop)
    body = build_loops(scope, LEVEL, [nest.whole_loop(scanned), across], "vector")
    before = (*scope.take(0), *scope.take(1))
    clear = For("u0", affine(), (affine(STRIP),), 1, "vector", (Store(place, at, start),))
    whole = (*before, Stack(place, start.dtype, STRIP), threads(1, (*lane.before, clear, *body)))
    add_blocks(nest, blocks.grid, 1, whole, (), STRIP * nest.loops.extents[scanned])


def _value(nest: LoopNest, compute: Compute, scope: Scope) -> Expr:
    """Add the statements that compute a scan's operand at an element; return the operand as an expression."""
    scope.announce(nest.values, [compute.target])
    value = scope.evaluate(nest.values[0])
    return value if isinstance(value, Local | Lit) else scope.name(value)


def _line_tile(nest: LoopNest, kept: Sequence[int], limits: Limits) -> Tile:
    """Return the rectangle of threads of a block in which each thread scans a line of the array."""
    if len(kept) < 2:
        return Tile(limits.threads, 1, kept[0] if kept else None)
    sizes = [nest.hints(nest.loops.extents[loop]) for loop in kept]
    width = width_along(sizes[-1], limits)
    if width == limits.threads:
        return Tile(width, 1, kept[-1])
    down = max(range(len(kept) - 1), key=lambda k: sizes[k])
    return Tile(width, limits.threads // width, kept[-1], kept[down])


# ---- three phases ----------------------------------------------------------------------------------
def _by_chunks(nest: LoopNest, compute: Compute, kept: list[int], scanned: int, limits: Limits) -> None:
    """Add to the kernel the phases that fold chunks, scan their results, and scan the chunks."""
    extents = nest.loops.extents
    dtype = nest.memory.arrays[compute.target.array].dtype
    folds = [Fold(str(compute.combine), dtype, nest.names) for _ in range(5)]
    for fold in folds:
        if fold.mode == "ordered":
            fold.mode = "exact"
    points = nest.hints(total(extents))
    longer = ceil_power(-(-points // (limits.serial * limits.threads * WAVES * limits.blocks)))
    limits = replace(limits, serial=limits.serial * min(longer, WAVES))
    count = nest.block_count(extents[scanned], limits.serial)
    place = nest.arguments.scratch(folds[0].wide, count * total(extents[k] for k in kept))
    work = limits.threads * limits.serial * nest.cost()
    for last in (False, True):
        blocks = spread(nest, kept, Tile(limits.threads, 1, None), nest.block_count(count, limits.threads))
        results = place, _line(nest, kept, blocks, count), count
        body = _chunk(nest, compute, blocks, folds[-1 if last else 0], scanned, results, limits, last)
        if last:
            _scan_chunks(nest, kept, folds[1:4], place, count, compute, limits)
        add_blocks(nest, blocks.grid, limits.threads, body, (), work)


def _line(nest: LoopNest, kept: Sequence[int], blocks: Spread, count: Dim) -> Affine:
    """Return the index, in the scratch buffer, of the result of a line's first chunk."""
    parts = []
    for number, loop in enumerate(kept):
        step = dims.simplify(count * total(nest.loops.extents[k] for k in kept[number + 1 :]))
        parts.append(product(nest.arguments.integer(step, "line", loop), blocks.grid.coordinates[number]))
    return affine(0, *parts)


def _chunk(
    nest: LoopNest,
    compute: Compute,
    blocks: Spread,
    fold: Fold,
    scanned: int,
    results: tuple[str, Affine, Dim],
    limits: Limits,
    last: bool,
) -> Block:
    """Return a block's statements in the first phase, where each thread folds a chunk, or with ``last`` in
    the last phase, where each thread scans its chunk."""
    place, line, count = results
    lane = lane_of(blocks.tile, nest.names)
    chunk = affine(0, scale(limits.threads, blocks.piece), lane.column)
    here = affine(0, line, chunk)
    scope = scope_at(
        nest, blocks.variables(lane), {**blocks.depths(LEVEL), scanned: LEVEL + 1}, LEVEL + 1, True
    )
    header = nest.loop_from(scanned, scale(limits.serial, chunk), affine(limits.serial))
    value = _value(nest, compute, scope)
    start = _start(compute)
    declared = fold.open(start, False)
    before, after = list[Stmt](), list[Stmt]()
    for stmt in fold.update(value):
        scope.add(stmt)
    if last:
        offset = Local(nest.names("v"), fold.wide)
        before.append(Let(offset.name, Elem(place, here, fold.wide)))
        running = op(fold.name, offset, fold.result())
        scope.store(compute.target, cast_to(running, fold.dtype), False)
    else:
        after.append(Store(place, here, fold.result()))
    loops = build_loops(scope, LEVEL, [header], "serial")
    inside: Expr = Op("less", (Index(chunk), Index(nest.arguments.integer(count, "chunks"))), BOOL)
    body = guard([inside], (*declared, *before, *loops, *after))
    return (*scope.take(0), *scope.take(1), threads(limits.threads, (*lane.before, *body)))


def _scan_chunks(
    nest: LoopNest,
    kept: list[int],
    folds: Sequence[Fold],
    place: str,
    count: Dim,
    compute: Compute,
    limits: Limits,
) -> None:
    """Add to the kernel the phase in which a block scans the results of a line's chunks, so that each becomes
    the result of all chunks before it."""
    size = limits.threads
    tile = Tile(size, 1, None)
    blocks = spread(nest, kept, tile)
    line, here = _line(nest, kept, blocks, count), variable(LANE)
    first, middle, second = folds
    start, wide, name = _start(compute), first.wide, first.name
    run = nest.arguments.integer(nest.block_count(count, size), "run")
    begin = product(run, here)
    stop = (affine(0, begin, run), nest.arguments.integer(count, "chunks"))
    shared = nest.names("s")
    at = affine(0, line, variable("b0"))
    # each thread folds a run of chunks
    opened = first.open(start, True)
    one = (*opened, For("b0", begin, stop, 1, "serial", first.add_partial(Elem(place, at, wide))))
    body: list[Stmt] = [Stack(shared, wide, size)]
    body.append(threads(size, (*one, Store(shared, here, first.result()))))
    # one thread scans their results, beginning with the initial value
    opened, thread = middle.open(start, True), variable("b0")
    old = Local(nest.names("v"), wide)
    before = op(name, cast_to(start, wide), middle.result())
    step = (
        Let(old.name, Elem(shared, thread, wide)),
        Store(shared, thread, before),
        *middle.add_partial(old),
    )
    alone = (*opened, For("b0", affine(), (affine(size),), 1, "serial", step))
    body.append(threads(size, guard([is_below(here, 1)], alone)))
    # each thread scans its run
    value, offset = Local(nest.names("v"), wide), Local(nest.names("v"), wide)
    opened = second.open(start, True)
    go_on = (
        Let(value.name, Elem(place, at, wide)),
        Store(place, at, op(name, offset, second.result())),
        *second.add_partial(value),
    )
    again = For("b0", begin, stop, 1, "serial", go_on)
    body.append(threads(size, (Let(offset.name, Elem(shared, here, wide)), *opened, again)))
    add_blocks(nest, blocks.grid, size, tuple(body), (), count * 8)
