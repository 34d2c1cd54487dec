"""Reductions: rows, columns, and partial results of blocks.

Rows: the innermost loop is folded into variables.  Columns: the innermost loop is kept, and a strip of
the result that stays in cache is accumulated.  Partial results: where the kept loops are too few to keep
the cores busy, blocks of fixed size are folded on their own, and then the results of the blocks in their
order, so that a result never depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..ir import dims
from ..ir.nodes import Compute, Dim
from .access import product, total
from .body import Scope
from .fold import Fold, converted, op
from .job import FEW, Block, Job, Kind, Open, nest, statements, variable
from .kernel import Affine, Elem, Expr, Phase, Store, affine

BLOCK = 512  # elements whose sum a target may regroup
PIECE = 64 * BLOCK  # elements of one partial result
COLUMNS = 4096  # elements of a strip of the result of a column reduction
GROUP = 64  # rows of one partial result
ROWS = 128  # rows summed before the sum is added to the result


@dataclass(frozen=True, slots=True)
class _Folding:
    """A statement of the nest that reduces."""

    number: int
    compute: Compute
    fold: Fold


def reduction(job: Job) -> None:
    """Make the phases of a nest with reductions."""
    foldings = []
    for number, compute in enumerate(job.computes):
        if job.folds[number]:
            dtype = job.memory.arrays[compute.target.array].dtype
            assert compute.combine is not None
            foldings.append(_Folding(number, compute, Fold(compute.combine, dtype, job.names)))
    rank = len(job.loops.axes)
    kept = [loop for loop in range(rank) if loop not in job.loops.folded]
    folded = [loop for loop in range(rank) if loop in job.loops.folded]
    sizes = [job.guess(extent) for extent in job.loops.extents]
    many = total(sizes) > 2 * PIECE
    ordered = any(f.fold.mode == "ordered" for f in foldings)
    if folded[-1] != rank - 1 and many and len(kept) == 1 and sizes[-1] < FEW * COLUMNS and not ordered:
        _column_partials(job, foldings, folded)
    elif folded[-1] != rank - 1:
        _columns(job, foldings, kept, folded)
    elif many and total(sizes[loop] for loop in kept) < FEW and not ordered:
        _partials(job, foldings, kept, folded)
    else:
        _rows(job, foldings, kept, folded, "serial" if ordered else "vector")


def _head(job: Job, kept: list[int]) -> tuple[str, Affine, Dim, Dim]:
    """Variable, extent, its Dim and the points of one iteration, when the first kept loop is parallel."""
    extents = job.loops.extents
    if not kept:
        return "one", affine(1), 1, total(extents)
    others = (extent for loop, extent in enumerate(extents) if loop != kept[0])
    return f"i{kept[0]}", job.arguments.extent(kept[0]), extents[kept[0]], total(others)


def _scope(job: Job, phase: str, opens: list[Open], level: int, hoist: bool) -> Scope:
    """A place ``level`` loops deep, with the phase's as the first."""
    levels = {phase: 1, **{head.var: 2 + k for k, head in enumerate(opens)}}
    return job.scope([levels.get(f"i{k}", 0) for k in range(len(job.loops.axes))], level, hoist)


def _starts(scope: Scope, job: Job, foldings: list[_Folding]) -> list[Expr]:
    """The values that the reductions begin with."""
    roots = [job.start(folding.compute) for folding in foldings]
    scope.announce(roots, [])
    return [scope.evaluate(root) for root in roots]


def _inner(job: Job, loop: int, foldings: list[_Folding], nested: bool) -> tuple[list[Open], bool]:
    """The innermost loop, whole or in blocks, and whether the blocks' sums are to be carried.
    ``nested``: other folded loops are around it."""
    extent = job.loops.extents[loop]
    short = type(extent) is int and extent <= BLOCK
    if short or not any(f.fold.mode == "sum" for f in foldings):
        return [job.whole(loop)], nested and short
    return [job.strips(loop, "b1", BLOCK), job.piece(loop, variable("b1"), affine(BLOCK))], True


def _around(opens: list[Open], at: int, before: Block, after: Block) -> None:
    """Put statements before and after one of the loops, outside of those that are there."""
    head = opens[at]
    opens[at] = replace(head, before=(*before, *head.before), after=(*head.after, *after))


def _accumulate(job: Job, foldings: list[_Folding], scope: Scope, opens: list[Open], carried: bool) -> None:
    """Evaluate the statements in the innermost loop, folding."""
    scope.announce(job.values, [compute.target for compute in job.computes])
    folds = {folding.number: folding.fold for folding in foldings}

    def fold(number: int, value: Expr) -> None:
        for stmt in folds[number].update(value):
            scope.add(stmt)

    if carried:
        begin = tuple(stmt for fold_ in folds.values() for stmt in fold_.open_block())
        statements(job, scope, fold)
        _around(opens, -1, begin, tuple(stmt for fold_ in folds.values() for stmt in fold_.close_block()))
    else:
        statements(job, scope, fold)


def _rows(job: Job, foldings: list[_Folding], kept: list[int], folded: list[int], kind: Kind) -> None:
    phase, extent, launch, points = _head(job, kept)
    inner, carried = _inner(job, folded[-1], foldings, len(folded) > 1)
    opens = [job.whole(loop) for loop in kept[1:]]
    base, first = 1 + len(opens), len(opens)
    opens += [*map(job.whole, folded[:-1]), *inner]
    main = _scope(job, phase, opens, 1 + len(opens), job.nonempty)
    ends = _scope(job, phase, opens, base, False)
    starts = _starts(ends, job, foldings)
    declared = tuple(s for f, v in zip(foldings, starts, strict=True) for s in f.fold.open(v, carried))
    before = (*ends.take(base), *declared)
    _accumulate(job, foldings, main, opens, carried)
    for folding, start in zip(foldings, starts, strict=True):
        ends.store(folding.compute.target, folding.fold.combined(start, folding.fold.result()), False)
    _around(opens, first, before, ends.take(base))
    body = nest(main, 1, opens, kind)
    pre = (*main.preamble(), *ends.preamble())
    job.add(Phase(phase, extent, "serial", body, pre), launch, points * job.cost())


def _partials(job: Job, foldings: list[_Folding], kept: list[int], folded: list[int]) -> None:
    extents, arguments = job.loops.extents, job.arguments
    size, rows = affine(PIECE), PIECE
    if len(folded) > 1:
        rows = max(1, PIECE // max(1, job.guess(total(extents[loop] for loop in folded[1:]))))
        size = arguments.integer(rows, "rows")
    count = job.blocks(extents[folded[0]], rows)
    extent = arguments.integer(count, "blocks")
    start = product(size, variable("b0"))
    inner, carried = _inner(job, folded[-1], foldings, len(folded) > 1)
    opens = [job.whole(loop) for loop in kept]
    base, first = 1 + len(opens), len(opens)
    if len(folded) > 1:
        opens += [job.piece(folded[0], start, size), *map(job.whole, folded[1:-1]), *inner]
    elif carried:
        stop = (affine(0, start, size), arguments.extent(folded[0]))
        opens += [replace(inner[0], lower=start, upper=stop), inner[1]]
    else:
        opens += [job.piece(folded[0], start, size)]
    # one partial result for each block and each point of the kept loops
    places = [arguments.scratch(f.fold.wide, count * total(extents[k] for k in kept)) for f in foldings]
    steps = [dims.simplify(count * total(extents[k] for k in kept[n + 1 :])) for n in range(len(kept))]
    at = affine(0, *(product(arguments.integer(step, "partial"), job.variables[k])
                     for step, k in zip(steps, kept, strict=True)))  # fmt: skip

    main = _scope(job, "b0", opens, 1 + len(opens), job.nonempty)
    ends = _scope(job, "b0", opens, base, False)
    idempotent = [folding for folding in foldings if folding.fold.idempotent]
    begins = dict(zip((f.number for f in idempotent), _starts(ends, job, idempotent), strict=True))
    declared = tuple(s for f in foldings for s in f.fold.open(begins.get(f.number), carried))
    before = (*ends.take(base), *declared)
    _accumulate(job, foldings, main, opens, carried)
    for folding, place in zip(foldings, places, strict=True):
        ends.add(Store(place, affine(0, at, variable("b0")), folding.fold.result()))
    _around(opens, first, before, ends.take(base))
    body = nest(main, 1, opens, "vector")
    pre = (*main.preamble(), *ends.preamble())
    points = rows * total(n for loop, n in enumerate(extents) if loop != folded[0])
    job.add(Phase("b0", extent, "serial", body, pre), count, points * job.cost())
    _combine(job, foldings, kept, places, at, count)


def _combine(
    job: Job, foldings: list[_Folding], kept: list[int], places: list[str], at: Affine, count: Dim
) -> None:
    """The phase that folds the partial results of all blocks, in their order."""
    phase, extent, launch, _ = _head(job, kept)
    opens = [job.whole(loop) for loop in kept[1:]]
    base, first = 1 + len(opens), len(opens)
    opens.append(Open("b0", affine(), (job.arguments.integer(count, "blocks"),)))
    main = _scope(job, phase, opens, base + 1, False)
    ends = _scope(job, phase, opens, base, False)
    starts = _starts(ends, job, foldings)
    folds = [Fold(f.fold.name, f.fold.dtype, job.names) for f in foldings]
    declared = tuple(s for fold, v in zip(folds, starts, strict=True) for s in fold.open(v, True))
    before = (*ends.take(base), *declared)
    for fold, place in zip(folds, places, strict=True):
        for stmt in fold.add_partial(Elem(place, affine(0, at, variable("b0")), fold.wide)):
            main.add(stmt)
    for folding, fold, start in zip(foldings, folds, starts, strict=True):
        ends.store(folding.compute.target, fold.combined(start, fold.result()), False)
    _around(opens, first, before, ends.take(base))
    others = total(job.loops.extents[loop] for loop in kept[1:])
    body = nest(main, 1, opens, "serial")
    job.add(Phase(phase, extent, "serial", body, ends.preamble()), launch, count * others * 8 * len(folds))


def _columns(job: Job, foldings: list[_Folding], kept: list[int], folded: list[int]) -> None:
    extents, arguments = job.loops.extents, job.arguments
    *outer, last = kept
    strips = not outer or job.guess(extents[outer[0]]) < FEW
    if strips:
        launch = job.blocks(extents[last], COLUMNS)
        phase, extent = "b0", arguments.integer(launch, "blocks")
        opens = [job.whole(loop) for loop in outer]
        start = variable("b0", COLUMNS)
        points = COLUMNS * total(n for loop, n in enumerate(extents) if loop != last)
    else:
        phase, extent, launch, points = _head(job, outer)
        opens = [*map(job.whole, outer[1:]), job.strips(last, "b0", COLUMNS)]
        start = variable("b0")
    base = 1 + len(opens)
    across = job.piece(last, start, affine(COLUMNS))
    rows = total(extents[loop] for loop in folded)
    few = type(rows) is int and rows <= ROWS

    places: dict[int, tuple[str, Affine]] = {}  # where each sum of a few rows is kept
    for folding in foldings:
        arguments.note(arguments.access(folding.compute.target), "r")
        if folding.fold.mode == "sum" and not few:
            size, at = extents[last], job.variables[last]
            if not strips:
                width = job.at_most(extents[last], COLUMNS)
                size = width * extents[outer[0]]
                row = product(arguments.integer(width, "width"), job.variables[outer[0]])
                at = affine(0, row, at, variable("b0", -1))
            places[folding.number] = (arguments.scratch(folding.fold.wide, size), at)

    def sweep(fill: Callable[[Scope, _Folding], None], which: list[_Folding]) -> tuple[Block, Scope]:
        """A loop across the strip that does something for some of the reductions."""
        scope = _scope(job, phase, [*opens, across], base + 1, False)
        for folding in which:
            fill(scope, folding)
        return (nest(scope, base, [across], "vector") if which else ()), scope

    def begin(scope: Scope, folding: _Folding) -> None:
        (value,) = _starts(scope, job, [folding])
        scope.store(folding.compute.target, value, False)

    def clear(scope: Scope, folding: _Folding) -> None:
        scope.add(Store(*places[folding.number], folding.fold.identity()))

    def flush(scope: Scope, folding: _Folding) -> None:
        place, at = places[folding.number]
        old, fold = _element(scope, folding), folding.fold
        value = op(fold.name, converted(old, fold.wide), Elem(place, at, fold.wide))
        scope.store(folding.compute.target, converted(value, fold.dtype), False)

    begun, begins = sweep(begin, [f for f in foldings if f.compute.init is not None])
    summed = [f for f in foldings if f.number in places]
    inside = [*map(job.whole, folded)]
    if summed:
        inside[-1:] = [
            job.strips(folded[-1], "b1", ROWS),
            job.piece(folded[-1], variable("b1"), affine(ROWS)),
        ]
        _around(inside, -1, sweep(clear, summed)[0], sweep(flush, summed)[0])
    _around(inside, 0, begun, ())
    opens += [*inside, across]
    main = _scope(job, phase, opens, 1 + len(opens), job.nonempty)
    main.announce(job.values, [compute.target for compute in job.computes])
    by_number = {folding.number: folding for folding in foldings}

    def fold(number: int, value: Expr) -> None:
        folding = by_number[number]
        if number in places:
            place, at = places[number]
            wide = folding.fold.wide
            main.add(Store(place, at, op("add", Elem(place, at, wide), converted(value, wide))))
        else:
            old = _element(main, folding)
            main.store(folding.compute.target, op(folding.fold.name, old, value), False)

    statements(job, main, fold)
    body = nest(main, 1, opens, "vector")
    pre = (*main.preamble(), *begins.preamble())
    job.add(Phase(phase, extent, "serial", body, pre), launch, points * job.cost())


def _column_partials(job: Job, foldings: list[_Folding], folded: list[int]) -> None:
    """Columns that are too few for many cores: blocks of rows give partial rows of results."""
    arguments, (first, *others), last = job.arguments, folded, len(job.loops.axes) - 1
    extent, rows = job.loops.extents[last], job.loops.extents[first]
    count = job.blocks(rows, GROUP)
    row = product(arguments.extent(last), variable("b0"))
    places = {f.number: arguments.scratch(f.fold.wide, count * extent) for f in foldings}
    at = affine(0, row, job.variables[last])
    across = job.piece(last, variable("b1"), affine(COLUMNS))

    fills = _scope(job, "b0", [job.strips(last, "b1", COLUMNS), across], 3, False)
    for folding in foldings:
        value = folding.fold.identity() if not folding.fold.idempotent else None
        start = value or converted(_starts(fills, job, [folding])[0], folding.fold.wide)
        fills.add(Store(places[folding.number], at, start))
    before = nest(fills, 2, [across], "vector")
    group = job.piece(first, variable("b0", GROUP), affine(GROUP))
    opens = [job.strips(last, "b1", COLUMNS), group, *map(job.whole, others), across]
    _around(opens, 1, before, ())
    main = _scope(job, "b0", opens, 1 + len(opens), job.nonempty)
    main.announce(job.values, [compute.target for compute in job.computes])
    folds = {folding.number: folding.fold for folding in foldings}

    def fold(number: int, value: Expr) -> None:
        place, wide = places[number], folds[number].wide
        main.add(Store(place, at, op(folds[number].name, Elem(place, at, wide), converted(value, wide))))

    statements(job, main, fold)
    body = nest(main, 1, opens, "vector")
    pre = (*main.preamble(), *fills.preamble())
    points = GROUP * total(n for loop, n in enumerate(job.loops.extents) if loop != first)
    blocks = arguments.integer(count, "blocks")
    job.add(Phase("b0", blocks, "serial", body, pre), count, points * job.cost())

    strips = job.blocks(extent, COLUMNS)
    strip = job.piece(last, variable("b1", COLUMNS), affine(COLUMNS))
    begins = _scope(job, "b1", [strip], 2, False)
    adds = _scope(job, "b1", [Open("b0", affine(), (blocks,)), strip], 3, False)
    for folding in foldings:
        arguments.note(arguments.access(folding.compute.target), "r")
        if folding.compute.init is not None:
            begins.store(folding.compute.target, _starts(begins, job, [folding])[0], False)
        fold_, wide = folding.fold, folding.fold.wide
        value = op(
            fold_.name, converted(_element(adds, folding), wide), Elem(places[folding.number], at, wide)
        )
        adds.store(folding.compute.target, converted(value, fold_.dtype), False)
    opens = [Open("b0", affine(), (blocks,)), strip]
    body = nest(adds, 1, opens, "vector")
    if any(folding.compute.init is not None for folding in foldings):
        body = (*nest(begins, 1, [strip], "vector"), *body)
    phase = Phase("b1", arguments.integer(strips, "strips"), "serial", body, begins.preamble())
    job.add(phase, strips, COLUMNS * count * 4)


def _element(scope: Scope, folding: _Folding) -> Elem:
    """What the target holds."""
    buffer, at = scope.address(folding.compute.target)
    return Elem(buffer, at, folding.fold.dtype)
