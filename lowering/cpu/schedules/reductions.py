"""The schedules of reductions: by rows, and by partial results of parts of rows.

By rows: the innermost loop is reduced into scalars (if it is not reduced, see ``column_reductions``).  By
partial results: where the kept loops are too short for all cores, parts of rows are reduced, and then their
results in order, so that the result does not depend on the number of threads.  Parts are also used where all
rows reduce the same elements, ``y[i] = sum(f(i, x[j]))``, and these exceed a cache: all rows reduce a part
before the next one is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from dcarray.ir import dims, ops, windows
from dcarray.ir.nodes import Apply, Dim, Gather, Iota, Load
from dcarray.lowering.cpu.kernel_passes.unroll_and_jam import WAYS, jam_rows
from dcarray.lowering.kernel import flags
from dcarray.lowering.kernel import nodes as k
from dcarray.lowering.nest.access import equal, product, total
from dcarray.lowering.nest.body import Scope, cast_to
from dcarray.lowering.nest.fold import Fold, Folding, foldings_of, op, starts_of
from dcarray.lowering.nest.loop_nest import (
    MIN_PARALLEL,
    Block,
    Kind,
    LoopHeader,
    LoopNest,
    build_loops,
    variable,
    wrap_loop,
)  # fmt: skip

from .column_reductions import jam_factor, schedule_columns
from .pairwise_sums import RowFolds

BLOCK = 512  # elements; sizes of pieces are multiples of it
PIECE = 64 * BLOCK  # elements of one partial result
MIN_JAMMED = 256  # rows, and elements of each, from which on rows are jammed
MIN_TERMS = 8  # terms of a sum from which on it is not in order
MIN_HALVINGS, MAX_HALVINGS = 2, 10  # how often rows are halved for threads
MIN_ELEMENTS = 64  # elements from which on the rows of several reduced loops are worth results of their own
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
    many = total(sizes) > 2 * PIECE and not nest.single_threaded
    ordered = any(f.fold.mode == "ordered" for f in foldings)
    if folded[-1] != rank - 1:
        schedule_columns(nest, foldings, kept, folded)
        return
    common = not ordered and many and _in_common(nest, kept, folded)
    parts = common or (not ordered and many and total(sizes[loop] for loop in kept) < MIN_PARALLEL)
    strip = STOP if _decidable(nest, foldings) else 0
    if parts and (len(folded) == 1 or sizes[folded[-1]] >= MIN_ELEMENTS):
        several = WAYS if common and _work(nest, folded) <= EACH and not strip else 1
        size = max(1, nest.hints(_height(nest, folded, common)))
        _parts(nest, foldings, kept, folded, size, strip, several)
    else:
        kind: Kind = "serial" if ordered else "vector"
        _rows(nest, foldings, kept, folded, kind, strip, _at_a_time(nest, foldings, kept, folded, kind))


def _decidable(nest: LoopNest, foldings: list[Folding]) -> bool:
    """Whether the reductions are boolean and may stop once their results are known, because the nest has no
    other effects, such as stores or floating-point flags."""
    if not all(nest.folds) or any(f.fold.dtype.kind != "b" or not f.fold.idempotent for f in foldings):
        return False
    every = [node for node in windows.walk(*nest.values) if isinstance(node, Apply)]
    return not any(flags.op_flags(n.op, tuple(a.dtype for a in n.args), n.dtype) for n in every)


def _rows(
    nest: LoopNest, foldings: list[Folding], kept: list[int], folded: list[int], kind: Kind, strip: int,
    several: int,
) -> None:  # fmt: skip
    """Add a phase in which each row is reduced by one thread; ``several`` rows at a time."""
    phase, extent, launch, points, headers = nest.parallel_header(kept)
    inside = [*headers, *map(nest.whole_loop, folded[:-1])]
    row = RowFolds(nest, foldings, folded[-1], phase, inside, kind)
    row.chained = _is_chain(nest, foldings, folded[-1]) and not row.buffered

    def body() -> Block:
        return row.statements(k.affine(), row.size, strip)

    stmts, pre = _reduced(nest, foldings, phase, headers, inside, row.scope, row.totals, row.chained, body)
    if several > 1:
        launch, first = nest.block_count(launch, several), variable("b0", several)
        stmts = jam_rows(nest, stmts, first, k.affine(several, first), several)
        phase, extent = "b0", nest.arguments.integer(launch, "blocks")
    nest.add_phase(k.Phase(phase, extent, "serial", stmts, pre), launch, several * points * nest.cost())


def _is_chain(nest: LoopNest, foldings: list[Folding], loop: int) -> bool:
    """Whether sums are what a program adds to totals in few turns of a loop: then they are added in order."""
    few = dims.prove_lt(nest.loops.extents[loop], MIN_TERMS) is True
    return few and all(f.compute.init is None and f.fold.wide == f.fold.dtype for f in foldings)


def _reduced(
    nest: LoopNest, foldings: list[Folding], phase: str, headers: list[LoopHeader], inside: list[LoopHeader],
    scope: Scope, sums: Mapping[Fold, k.Expr], chained: bool, body: Callable[[], Block],
) -> tuple[Block, tuple[k.Let, ...]]:  # fmt: skip
    """Return the body of a phase that stores the results of ``body``, the statements in the loops ``inside``,
    and the definitions before it.  They make the ``sums``, and update other reductions."""
    base, runs = 1 + len(headers), len(inside) > len(headers)
    ends = nest.scope_at(phase, headers, base, False)
    starts = starts_of(ends, nest, foldings)
    before, added, totals = list(ends.take(base)), list[k.Stmt](), list[k.Expr]()
    for folding, start in zip(foldings, starts, strict=True):
        fold = folding.fold
        if fold not in sums:
            before += fold.open(start, False)
            totals.append(fold.combine(start, fold.result()))
        elif chained:
            total = sums[fold]
            assert isinstance(total, k.Local)
            before.append(k.Declare(total.name, start))
            totals.append(total)
        elif runs:  # as NumPy adds each row's sum
            total = k.Local(nest.names("a"), fold.dtype)
            before.append(k.Declare(total.name, start))
            value = op("add", cast_to(total, fold.wide), sums[fold])
            added.append(k.Assign(total.name, cast_to(value, fold.dtype)))
            totals.append(total)
        else:
            totals.append(fold.combine(start, sums[fold]))
    if not runs:
        scope.put(base, before)
    scope.put(1 + len(inside), [*body(), *added])
    for folding, final in zip(foldings, totals, strict=True):
        ends.store(folding.compute.target, final, False)
    if runs:
        wrap_loop(inside, len(headers), tuple(before), ends.take(base))
    else:
        scope.put(base, ends.take(base))
    return build_loops(scope, 1, inside, "serial"), (*scope.preamble(), *ends.preamble())


def _parts(
    nest: LoopNest, foldings: list[Folding], kept: list[int], folded: list[int], size: int, strip: int,
    several: int,
) -> None:  # fmt: skip
    """Add the phases of a reduction by partial results: of rows, or, if these are few, of parts of them that
    have about ``size`` elements, as NumPy halves rows.  Then those of a row are reduced in order."""
    extents, arguments, (*runs, inner) = nest.loops.extents, nest.arguments, folded
    rows, depth = [*kept, *runs], 0
    if nest.hints(total(extents[loop] for loop in runs)) < MIN_PARALLEL:
        depth = min(MAX_HALVINGS, max(MIN_HALVINGS, (nest.hints(extents[inner]) // size).bit_length()))
    count, lines = 1 << depth, total(extents[loop] for loop in rows)
    steps = [dims.simplify(count * total(extents[loop] for loop in rows[n + 1 :])) for n in range(len(rows))]
    at = k.affine(0, *(product(arguments.integer(step, "partial"), nest.variables[loop])
                     for step, loop in zip(steps, rows, strict=True)))  # fmt: skip
    places = [arguments.scratch(f.fold.wide, lines * count) for f in foldings]
    bounds = [n for n in (0, *DECIDED) if n < count] if strip and depth else [0]
    for lower, upper in zip(bounds, (*bounds[1:], count), strict=True):
        phase, extent, launch = "b0", k.affine(upper - lower), upper - lower
        headers, number = [*map(nest.whole_loop, rows)], k.affine(lower, variable("b0"))
        work: Dim = lines * nest.block_count(extents[inner], count)
        if not depth:
            phase, extent, launch, work, headers = nest.parallel_header([*runs, *kept])
            number = k.affine()
        own = [replace(f, fold=Fold(f.fold.name, f.fold.dtype, nest.names)) for f in foldings]
        row = RowFolds(nest, own, inner, phase, headers, "vector")
        level, begun = 1 + len(headers), list[k.Stmt]()
        low, part = row.part(begun, number, depth)
        row.scope.put(1, begun)
        ends = nest.scope_at(phase, headers, level, False)
        for folding, place in zip(own, places, strict=True):
            if folding.fold in row.totals:
                continue
            start = starts_of(ends, nest, [folding])[0] if folding.fold.idempotent else None
            row.scope.put(level, (*ends.take(level), *folding.fold.open(start, False)))
            if lower:
                old = k.Elem(place, k.affine(0, at, variable("k0")), folding.fold.wide)
                known = k.For("k0", k.affine(), (k.affine(lower),), 1, "vector", folding.fold.update(old))
                row.scope.put(level, [known])
        row.scope.put(level, row.statements(low, part, strip))
        for f, place in zip(own, places, strict=True):
            value = row.totals[f.fold] if f.fold in row.totals else f.fold.result()
            row.scope.put(level, [k.Store(place, k.affine(0, at, number), value)])
        stmts, pre = build_loops(row.scope, 1, headers, "serial"), (*row.scope.preamble(), *ends.preamble())
        if several > 1 and depth and not runs:  # there is one loop over rows
            (loop,) = (stmt for stmt in stmts if isinstance(stmt, k.For))
            before = stmts[: stmts.index(loop)]
            stmts = (*before, *jam_rows(nest, loop.body, loop.lower, loop.upper[0], several))
        nest.add_phase(k.Phase(phase, extent, "serial", stmts, pre), launch, work * nest.cost())
    place_of = {f.fold: place for f, place in zip(foldings, places, strict=True)}
    _combine(nest, foldings, kept, runs, place_of, at, depth)


def _combine(
    nest: LoopNest, foldings: list[Folding], kept: list[int], runs: list[int], places: Mapping[Fold, str],
    at: k.Affine, depth: int,
) -> None:  # fmt: skip
    """Add the phase that reduces the partial results of each row: sums in pairs."""
    phase, extent, launch, _, headers = nest.parallel_header(kept)
    inside, loops = [*headers, *map(nest.whole_loop, runs)], list[k.Stmt]()
    sums = {fold: k.Elem(place, at, fold.wide) for fold, place in places.items() if fold.mode == "sum"}

    def body() -> Block:
        for fold, place in places.items():
            for bit in reversed(range(depth)) if fold in sums else ():
                pair = [k.Elem(place, k.affine(n, at, variable("b0", 2)), fold.wide) for n in range(2)]
                add = k.Store(place, k.affine(0, at, variable("b0")), op("add", *pair))
                loops.append(k.For("b0", k.affine(), (k.affine(1 << bit),), 1, "serial", (add,)))
            if fold not in sums:
                every = fold.update(k.Elem(place, k.affine(0, at, variable("b0")), fold.wide))
                loops.append(k.For("b0", k.affine(), (k.affine(1 << depth),), 1, "serial", every))
        return tuple(loops)

    scope = nest.scope_at(phase, inside, 1 + len(inside), False)
    statements, pre = _reduced(nest, foldings, phase, headers, inside, scope, sums, False, body)
    work = total(nest.loops.extents[loop] for loop in (*kept[1:], *runs)) * (8 << depth) * len(foldings)
    nest.add_phase(k.Phase(phase, extent, "serial", statements, pre), launch, work)


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
    return min(WAYS, jam_factor(nest)) if rows >= MIN_JAMMED and points >= MIN_JAMMED else 1


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
