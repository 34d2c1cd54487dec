"""The schedules of reductions: by rows, and by partial results of blocks.

By rows: the innermost loop is reduced into scalars (if it is not reduced, see ``column_reductions``).  By
partial results: where the kept loops are too short for all cores, each block of a fixed size is reduced, and
then the results of the blocks in order, so that the result does not depend on the number of threads.  Blocks
are also used where all rows reduce the same elements, ``y[i] = sum(f(i, x[j]))``, and these exceed a cache:
all rows reduce a block before the next one is read.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from dcarray.ir import dims, ops, windows
from dcarray.ir.nodes import Apply, Dim, Gather, Iota, Load
from dcarray.lowering.cpu.kernel_passes.unroll_and_jam import WAYS, jam_rows
from dcarray.lowering.kernel import flags
from dcarray.lowering.kernel.nodes import Affine, Elem, For, Let, Phase, Store, affine
from dcarray.lowering.nest.access import equal, product, total
from dcarray.lowering.nest.body import Scope
from dcarray.lowering.nest.fold import Fold, Folding, accumulate, foldings_of, op, starts_of
from dcarray.lowering.nest.loop_nest import (
    MIN_PARALLEL,
    Block,
    Kind,
    LoopHeader,
    LoopNest,
    build_loops,
    variable,
    wrap_loop,
)

from .column_reductions import COLUMNS, jam_factor, schedule_column_partials, schedule_columns

BLOCK = 512  # elements whose sum a target may reassociate
PIECE = 64 * BLOCK  # elements of one partial result
LONG = 256  # rows, and elements of each, from which on rows are jammed
STOP = 4096  # elements between early-exit tests of a boolean reduction
DECIDED = (1, 8, 64)  # blocks after which a new phase begins, which tests the results of those before
CACHE = 1 << 20  # bytes that all rows share from which on the rows reduce them block by block
NEAR, FAR = 16, 64  # the least and the largest number of BLOCKs in such a block
PARTS = 128  # the number of such blocks, roughly
AHEAD = 4  # the least ratio of a block's elements to its partial results
EACH = 16  # the work for an element up to which rows are jammed there


def schedule_reduction(nest: LoopNest) -> None:
    """Add the phases of a nest with reductions."""
    foldings = foldings_of(nest)
    rank = len(nest.loops.axes)
    kept = [loop for loop in range(rank) if loop not in nest.loops.folded]
    folded = [loop for loop in range(rank) if loop in nest.loops.folded]
    sizes = [nest.hints(extent) for extent in nest.loops.extents]
    many = total(sizes) > 2 * PIECE
    ordered = any(f.fold.mode == "ordered" for f in foldings)
    if nest.single_threaded:
        many = False
    if (
        folded[-1] != rank - 1
        and many
        and len(kept) == 1
        and sizes[-1] < MIN_PARALLEL * COLUMNS
        and not ordered
    ):
        schedule_column_partials(nest, foldings, folded)
    elif folded[-1] != rank - 1:
        schedule_columns(nest, foldings, kept, folded)
    elif ordered or not many:
        _rows(nest, foldings, kept, folded, "serial" if ordered else "vector")
    else:
        common = _in_common(nest, kept, folded)
        if common or total(sizes[loop] for loop in kept) < MIN_PARALLEL:
            _partials(nest, foldings, kept, folded, common)
        else:
            _rows(nest, foldings, kept, folded, "vector")


def _inner(nest: LoopNest, loop: int, foldings: list[Folding], nested: bool) -> tuple[list[LoopHeader], bool]:
    """Return the headers of the innermost loop, whole or in blocks, and whether the sums of blocks are added
    with compensation. ``nested``: the loop is inside another reduced loop."""
    extent = nest.loops.extents[loop]
    if _decidable(nest, foldings):
        if not dims.prove_lt(STOP, extent):  # short rows would be slower
            return [nest.whole_loop(loop)], False
        return [nest.strip_loop(loop, "b1", STOP), nest.loop_from(loop, variable("b1"), affine(STOP))], True
    short = dims.prove_le(extent, BLOCK) is True
    if short or not any(f.fold.mode == "sum" for f in foldings):
        return [nest.whole_loop(loop)], nested and short
    return [nest.strip_loop(loop, "b1", BLOCK), nest.loop_from(loop, variable("b1"), affine(BLOCK))], True


def _decidable(nest: LoopNest, foldings: list[Folding]) -> bool:
    """Whether the reductions are boolean and may stop once their results are known, because the nest has no
    other effects, such as stores or floating-point flags."""
    if not all(nest.folds) or any(f.fold.dtype.kind != "b" or not f.fold.idempotent for f in foldings):
        return False
    every = [node for node in windows.walk(*nest.values) if isinstance(node, Apply)]
    return not any(flags.op_flags(n.op, tuple(a.dtype for a in n.args), n.dtype) for n in every)


def _until_decided(nest: LoopNest, foldings: list[Folding], headers: list[LoopHeader]) -> None:
    """Add to the innermost loop the condition that it can still change the results."""
    if len(headers) < 2 or not _decidable(nest, foldings):
        return
    ends = [found for f in foldings if (found := f.fold.open_ended()) is not None]
    headers[-1] = replace(headers[-1], cond=reduce(lambda a, b: op("logical_or", a, b), ends))


def _accumulate(
    nest: LoopNest, foldings: list[Folding], scope: Scope, headers: list[LoopHeader], carried: bool
) -> None:
    """Add the statements of the innermost loop, which accumulate as long as that can change the results."""
    accumulate(nest, foldings, scope, headers, carried)
    _until_decided(nest, foldings, headers)


def _rows(nest: LoopNest, foldings: list[Folding], kept: list[int], folded: list[int], kind: Kind) -> None:
    phase, extent, launch, points, headers = nest.parallel_header(kept)
    inner, carried = _inner(nest, folded[-1], foldings, len(folded) > 1)
    base, first = 1 + len(headers), len(headers)
    headers += [*map(nest.whole_loop, folded[:-1]), *inner]
    main = nest.scope_at(phase, headers, 1 + len(headers), nest.nonempty)
    ends = nest.scope_at(phase, headers, base, False)
    starts = starts_of(ends, nest, foldings)
    declared = tuple(s for f, v in zip(foldings, starts, strict=True) for s in f.fold.open(v, carried))
    before = (*ends.take(base), *declared)
    _accumulate(nest, foldings, main, headers, carried)
    for folding, start in zip(foldings, starts, strict=True):
        ends.store(folding.compute.target, folding.fold.combine(start, folding.fold.result()), False)
    wrap_loop(headers, first, before, ends.take(base))
    body = build_loops(main, 1, headers, kind)
    pre = (*main.preamble(), *ends.preamble())
    several = _at_a_time(nest, foldings, kept, folded, kind)
    if several == 1:
        nest.add_phase(Phase(phase, extent, "serial", body, pre), launch, points * nest.cost())
        return
    count, row = nest.block_count(launch, several), variable("b0", several)
    body = jam_rows(nest, body, row, affine(several, row), several)
    blocks = nest.arguments.integer(count, "blocks")
    nest.add_phase(Phase("b0", blocks, "serial", body, pre), count, several * points * nest.cost())


def _at_a_time(
    nest: LoopNest, foldings: list[Folding], kept: list[int], folded: list[int], kind: Kind
) -> int:
    """Return how many rows the loop over rows reduces at a time (its jam factor)."""
    if (
        nest.single_threaded
        or len(kept) != 1
        or len(folded) != 1
        or kind == "serial"
        or _decidable(nest, foldings)
    ):
        return 1
    rows, points = map(nest.hints, nest.loops.extents)
    return min(WAYS, jam_factor(nest)) if rows >= LONG and points >= LONG else 1


def _partials(
    nest: LoopNest, foldings: list[Folding], kept: list[int], folded: list[int], common: bool
) -> None:
    """Add the phases of a reduction by partial results; ``common``: all rows reduce the same elements."""
    extents, arguments = nest.loops.extents, nest.arguments
    size, rows = affine(PIECE), _height(nest, folded, common)
    if common or len(folded) > 1:
        size = arguments.integer(rows, "rows")
    several = WAYS if common and _work(nest, folded) <= EACH and not _decidable(nest, foldings) else 1
    count = nest.block_count(extents[folded[0]], rows)
    points = rows * total(n for loop, n in enumerate(extents) if loop != folded[0])
    # one partial result for each block and each point of the kept loops
    places = [arguments.scratch(f.fold.wide, count * total(extents[k] for k in kept)) for f in foldings]
    steps = [dims.simplify(count * total(extents[k] for k in kept[n + 1 :])) for n in range(len(kept))]
    at = affine(0, *(product(arguments.integer(step, "partial"), nest.variables[k])
                     for step, k in zip(steps, kept, strict=True)))  # fmt: skip
    bounds = (0, *DECIDED) if _decidable(nest, foldings) else (0,)
    for lower, upper in zip(bounds, (*bounds[1:], None), strict=True):
        reached = count if upper is None else nest.at_most(count, upper)
        launch = dims.simplify(nest.largest(reached - lower, 0)) if lower else reached
        own = [replace(f, fold=Fold(f.fold.name, f.fold.dtype, nest.names)) for f in foldings]
        block = affine(lower, variable("b0"))
        at_all = [(place, at) for place in places]
        body, pre = _pieces(nest, own, kept, folded, block, size, at_all, lower, several)
        extent = arguments.integer(launch, "blocks", *([lower] if lower else []))
        nest.add_phase(Phase("b0", extent, "serial", body, pre), launch, points * nest.cost())
    _combine(nest, foldings, kept, places, at, count)


def _pieces(
    nest: LoopNest,
    foldings: list[Folding],
    kept: list[int],
    folded: list[int],
    block: Affine,
    size: Affine,
    places: list[tuple[str, Affine]],
    known: int,
    several: int,
) -> tuple[Block, tuple[Let, ...]]:
    """Return the body of a phase that reduces one block into ``places``, after folding in the results of the
    first ``known`` blocks there; ``several`` rows are reduced at a time."""
    start = product(size, block)
    inner, carried = _inner(nest, folded[-1], foldings, len(folded) > 1)
    headers = [nest.whole_loop(loop) for loop in kept]
    base, first = 1 + len(headers), len(headers)
    if len(folded) > 1:
        headers += [nest.loop_from(folded[0], start, size), *map(nest.whole_loop, folded[1:-1]), *inner]
    elif carried:
        stop = (affine(0, start, size), nest.arguments.extent(folded[0]))
        headers += [replace(inner[0], lower=start, upper=stop), inner[1]]
    else:
        headers += [nest.loop_from(folded[0], start, size)]
    main = nest.scope_at("b0", headers, 1 + len(headers), nest.nonempty)
    ends = nest.scope_at("b0", headers, base, False)
    idempotent = [folding for folding in foldings if folding.fold.idempotent]
    begins = dict(zip((f.number for f in idempotent), starts_of(ends, nest, idempotent), strict=True))
    before = [*ends.take(base)]
    for folding, (place, at) in zip(foldings, places, strict=True):
        before += folding.fold.open(begins.get(folding.number), carried)
        if known:
            old = Elem(place, affine(0, at, variable("k0")), folding.fold.wide)
            before.append(For("k0", affine(), (affine(known),), 1, "vector", folding.fold.update(old)))
    _accumulate(nest, foldings, main, headers, carried)
    for folding, (place, at) in zip(foldings, places, strict=True):
        ends.add(Store(place, affine(0, at, block), folding.fold.result()))
    wrap_loop(headers, first, tuple(before), ends.take(base))
    if several == 1:
        body = build_loops(main, 1, headers, "vector")
    else:
        row, *inside = headers
        body = jam_rows(nest, build_loops(main, 2, inside, "vector", 1), row.lower, row.upper[0], several)
        body = (*main.take(1), *row.before, *body, *row.after)
    return body, (*main.preamble(), *ends.preamble())


def _in_common(nest: LoopNest, kept: list[int], folded: list[int]) -> bool:
    """Whether all rows reduce the same elements, and these exceed a cache, so that blocks pay."""
    arguments, bytes_ = nest.arguments, 0
    if len(kept) != 1 or any(isinstance(node, Gather) for node in windows.walk(*nest.values)):
        return False
    every = [arguments.reach(load) for value in nest.values for load in windows.loads(value)]
    for access in dict.fromkeys(every):
        steps = arguments.steps(access)
        moving = [loop for loop in folded if not equal(steps[loop], 0)]
        if moving and not equal(steps[kept[0]], 0):
            return False
        if moving:
            bytes_ += access.array.dtype.itemsize * nest.hints(total(nest.loops.extents[k] for k in moving))
    height, extents = nest.hints(_height(nest, folded, True)), nest.loops.extents
    few = nest.hints(extents[folded[0]]) < MIN_PARALLEL * height  # blocks, for many cores
    return bytes_ >= CACHE and not few and nest.hints(extents[kept[0]]) * AHEAD <= FAR * BLOCK


def _height(nest: LoopNest, folded: list[int], common: bool) -> Dim:
    """Return the number of iterations of the first reduced loop in a block."""
    extents = nest.loops.extents
    inner = max(1, nest.hints(total(extents[loop] for loop in folded[1:])))
    if not common:
        return max(1, PIECE // inner)
    rows = total(n for loop, n in enumerate(extents) if loop not in nest.loops.folded)
    blocks = nest.block_count(total(extents[loop] for loop in folded), BLOCK * PARTS)
    size = nest.at_most(nest.largest(blocks, nest.block_count(rows * AHEAD, BLOCK), NEAR), FAR) * BLOCK
    return size if len(folded) == 1 else nest.block_count(size, inner)


def _work(nest: LoopNest, folded: list[int]) -> float:
    """Return the work per reduced element that every row repeats."""
    moving: set[object] = set()
    work = float(sum(nest.folds))
    axes = {axis for loop in folded for axis in nest.loops.axes[loop]}
    for node in windows.walk(*nest.values):
        if isinstance(node, Load):
            steps = nest.arguments.steps(nest.arguments.reach(node))
            moves = any(not equal(steps[loop], 0) for loop in folded)
        else:
            moves = (isinstance(node, Iota) and node.axis in axes) or any(
                child in moving for child in windows.children(node)
            )
        if moves:
            moving.add(node)
            work += ops.OPS[node.op].cost if isinstance(node, Apply) else 0
    return work


def _combine(
    nest: LoopNest, foldings: list[Folding], kept: list[int], places: list[str], at: Affine, count: Dim
) -> None:
    """Add the phase that reduces the partial results of all blocks in order."""
    phase, extent, launch, _, headers = nest.parallel_header(kept)
    base, first = 1 + len(headers), len(headers)
    headers.append(LoopHeader("b0", affine(), (nest.arguments.integer(count, "blocks"),)))
    main = nest.scope_at(phase, headers, base + 1, False)
    ends = nest.scope_at(phase, headers, base, False)
    starts = starts_of(ends, nest, foldings)
    folds = [Fold(f.fold.name, f.fold.dtype, nest.names) for f in foldings]
    declared = tuple(s for fold, v in zip(folds, starts, strict=True) for s in fold.open(v, True))
    before = (*ends.take(base), *declared)
    for fold, place in zip(folds, places, strict=True):
        for stmt in fold.add_partial(Elem(place, affine(0, at, variable("b0")), fold.wide)):
            main.add(stmt)
    for folding, fold, start in zip(foldings, folds, starts, strict=True):
        ends.store(folding.compute.target, fold.combine(start, fold.result()), False)
    wrap_loop(headers, first, before, ends.take(base))
    others = total(nest.loops.extents[loop] for loop in kept[1:])
    body = build_loops(main, 1, headers, "serial")
    nest.add_phase(
        Phase(phase, extent, "serial", body, ends.preamble()), launch, count * others * 8 * len(folds)
    )
