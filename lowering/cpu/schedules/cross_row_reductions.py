"""Cross-row reductions: statements that run row by row, some of which reduce over the rows.

A matrix is read once for all of them: the reductions within a row are complete before the row is folded into
the cross-row results, while it is still in the cache.  Blocks of rows have partial results, which are folded
in their order, so that the result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from dcarray.ir import dims, windows
from dcarray.ir.nodes import Dim
from dcarray.ir.passes.fusion_profit import OUT_OF_CACHE
from dcarray.lowering.cpu.kernel_passes.strip_fusion import fuse_strips
from dcarray.lowering.cpu.kernel_passes.unroll_and_jam import WAYS, jam_rows
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.nodes import Affine, Binding, Elem, Expr, Kernel, Let, Phase, Stmt, Store, affine
from dcarray.lowering.nest.access import equal, product, total
from dcarray.lowering.nest.body import cast_to
from dcarray.lowering.nest.fold import Folding, foldings_of, op, starts_of
from dcarray.lowering.nest.loop_nest import (
    Block,
    LoopNest,
    assemble_kernel,
    build_loops,
    evaluate_statements,
    row_phase,
    variable,
)

from .column_reductions import fold_parts, jam_factor, rows_of_a_part

MIN_JAMMED = 256  # rows, and elements of each, from which on rows are jammed

Places = dict[int, tuple[str, Affine]]


def folds_rows(nest: LoopNest) -> bool:
    """Whether a nest reduces over the rows."""
    return 0 in nest.loops.folded


def schedule_row_blocks(nests: Sequence[LoopNest]) -> tuple[Kernel, Binding]:
    """Return the kernel, and its binding, of nests that run row by row, some of which reduce over the rows.

    The other nests must already have a phase over the rows. Raises `Unsupported` if the result of a cross-row
    reduction is not one row.
    """
    first, arguments = nests[0], nests[0].arguments
    size = rows_of_a_part(max((nest for nest in nests if folds_rows(nest)), key=_points), 0)
    count = first.block_count(first.loops.extents[0], size)
    blocks, height = arguments.integer(count, "blocks"), arguments.integer(size, "height")
    pre, fills, rows, ends = list[Let](), list[Stmt](), list[Block](), list[LoopNest]()
    work: Dim = 0
    for nest in nests:
        if folds_rows(nest):
            foldings = foldings_of(nest)
            places = _places(nest, foldings, count)
            fill, row = _fill(nest, foldings, places), _row(nest, foldings, places)
            fills.extend(fill.body)
            rows.append(row.body)
            pre.extend((*fill.pre, *row.pre))
            fold_parts(nest, foldings, {n: place for n, (place, _) in places.items()}, count, blocks)
            ends.append(nest)
            work = work + total(nest.loops.extents[1:]) * nest.cost()
        else:
            (phase,) = nest.phases
            rows.append(phase.body)
            pre.extend(phase.pre)
            work = work + nest.launches[0][1]
    start = product(height, variable("b0"))
    several = _common_jam_factor(nests)
    along = fuse_strips(
        rows, [folds_rows(nest) for nest in nests], lambda j, k: _independent(nests[j], nests[k])
    )
    body = (*fills, *jam_rows(first, along, start, affine(0, start, height), several))
    phases = [Phase("b0", blocks, "serial", body, tuple(pre)), *(p for nest in ends for p in nest.phases)]
    launches = [(count, dims.simplify(size * work)), *(n for nest in ends for n in nest.launches)]
    return assemble_kernel(nests, phases, launches)


def schedule_row_groups(nests: Sequence[LoopNest]) -> tuple[Kernel, Binding] | None:
    """Return the kernel of nests that run row by row, with several rows jammed; None if that does not pay,
    because the reduced rows do not come from memory. All nests must already have a phase over the rows."""
    first, folding = nests[0], [nest for nest in nests if any(nest.folds)]
    far = any(_points(n) >= OUT_OF_CACHE and _points(n) >= MIN_JAMMED * _rows_of(n) for n in folding)
    if not far or _rows_of(first) < MIN_JAMMED or not all(map(_folds_whole_rows, folding)):
        return None
    several = _common_jam_factor(nests)
    if several == 1:
        return None
    phase, count = row_phase(nests), first.block_count(first.loops.extents[0], several)
    row = variable("b0", several)
    body = jam_rows(first, phase.body, row, affine(several, row), several)
    blocks = first.arguments.integer(count, "blocks")
    work = dims.simplify(sum(several * nest.launches[0][1] for nest in nests))
    return assemble_kernel(nests, [Phase("b0", blocks, "serial", body, phase.pre)], [(count, work)])


def _independent(nest: LoopNest, folding: LoopNest) -> bool:
    """Whether a nest writes nothing that a cross-row reduction reads; the reduction itself writes partial
    results only."""
    family = nest.memory.family
    read = {family(load.window.array) for value in folding.values for load in windows.loads(value)}
    return read.isdisjoint(family(compute.target.array) for compute in nest.computes)


def _common_jam_factor(nests: Sequence[LoopNest]) -> int:
    """Return the jam factor for nests that run row by row: the smallest of those with an inner loop."""
    return min(WAYS, *(jam_factor(nest) for nest in nests if len(nest.loops.axes) > 1))


def _rows_of(nest: LoopNest) -> int:
    return nest.hints(nest.loops.extents[0])


def _folds_whole_rows(nest: LoopNest) -> bool:
    """Whether each row is reduced to its own result, without an early exit."""
    arrays = nest.memory.arrays
    whole = len(nest.loops.axes) - 1 in nest.loops.folded
    return whole and all(arrays[compute.target.array].dtype.kind != "b" for compute in nest.computes)


def _points(nest: LoopNest) -> int:
    return nest.hints(total(nest.loops.extents))


def _places(nest: LoopNest, foldings: list[Folding], count: Dim) -> Places:
    """Return the buffer and offset of a block's partial results for each reduction; raise `Unsupported` if a
    reduction over the rows does not give one row, or is in order, as all sums are but products."""
    if len(nest.loops.axes) != 2 or nest.loops.folded != {0}:
        raise Unsupported("the values folded over the rows are not a row")
    if any(f.fold.mode == "ordered" or (f.fold.mode == "sum" and not _is_product(nest, f)) for f in foldings):
        raise Unsupported("the values folded over the rows have to be folded in order")
    arguments, width = nest.arguments, nest.loops.extents[1]
    at = affine(0, product(arguments.extent(1), variable("b0")), nest.variables[1])
    return {f.number: (arguments.scratch(f.fold.wide, count * width), at) for f in foldings}


def _is_product(nest: LoopNest, folding: Folding) -> bool:
    """Whether a reduction has a factor that stays the same along the rows, or along the columns."""
    loads = windows.loads(nest.values[folding.number])
    return any(equal(c, 0) for load in loads for c in nest.arguments.reach(load).coefs)


def _fill(nest: LoopNest, foldings: list[Folding], places: Places) -> Phase:
    """Return the phase over blocks that initialises their partial results."""
    across = nest.whole_loop(1)
    scope = nest.scope_at("b0", [across], 2, False)
    for folding in foldings:
        fold = folding.fold
        start = cast_to(starts_of(scope, nest, [folding])[0], fold.wide) if fold.idempotent else None
        scope.add(Store(*places[folding.number], start or fold.identity()))
    return Phase("b0", affine(), "serial", build_loops(scope, 1, [across], "vector"), scope.preamble())


def _row(nest: LoopNest, foldings: list[Folding], places: Places) -> Phase:
    """Return the phase over rows that folds each row into the partial results of its block."""
    across = nest.whole_loop(1)
    scope = nest.scope_at("i0", [across], 2, nest.nonempty)
    scope.announce(nest.values, [compute.target for compute in nest.computes])
    folds = {folding.number: folding.fold for folding in foldings}

    def add(number: int, value: Expr) -> None:
        (place, at), fold = places[number], folds[number]
        old = Elem(place, at, fold.wide)
        scope.add(Store(place, at, op(fold.name, old, cast_to(value, fold.wide))))

    evaluate_statements(nest, scope, add)
    return Phase("i0", affine(), "serial", build_loops(scope, 1, [across], "vector"), scope.preamble())
