"""Statements that run row by row, some of which fold the rows: blocks of rows, each with partial results.

A matrix is read once for all of them: what a row gives is complete before the row is folded into the others,
and the row is still in the cache then.  The partial results of the blocks are folded in their order, so that
they do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from dcarray.ir import dims, windows
from dcarray.ir.nodes import Dim
from dcarray.lowering.cpu.kernel_passes.prefetch import BEYOND
from dcarray.lowering.cpu.kernel_passes.strip_fusion import abreast
from dcarray.lowering.cpu.kernel_passes.unroll_and_jam import WAYS, in_groups
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.nodes import Affine, Binding, Elem, Expr, Kernel, Let, Phase, Stmt, Store, affine
from dcarray.lowering.nest.access import product, total
from dcarray.lowering.nest.fold import Folding, converted, foldings_of, op, starts_of
from dcarray.lowering.nest.loop_nest import Block, Job, assembled, by_row, nest, statements, variable

from .column_reductions import fold_parts, rows_of_a_part, ways

LONG = 256  # rows, and elements of each, from which on several are taken at a time

Places = dict[int, tuple[str, Affine]]


def folds_rows(job: Job) -> bool:
    """Does a job fold the rows?"""
    return 0 in job.loops.folded


def by_blocks(jobs: Sequence[Job]) -> tuple[Kernel, Binding]:
    """The kernel of jobs that run row by row.

    Parameters
    ----------
    jobs : sequence of Job
        Those that do not fold the rows have a phase over them already.

    Raises
    ------
    Unsupported
        If something else than whole rows is folded.
    """
    first, arguments = jobs[0], jobs[0].arguments
    size = rows_of_a_part(max((job for job in jobs if folds_rows(job)), key=_points), 0)
    count = first.blocks(first.loops.extents[0], size)
    blocks, height = arguments.integer(count, "blocks"), arguments.integer(size, "height")
    pre, fills, rows, ends = list[Let](), list[Stmt](), list[Block](), list[Job]()
    work: Dim = 0
    for job in jobs:
        if folds_rows(job):
            foldings = foldings_of(job)
            places = _places(job, foldings, count)
            fill, row = _fill(job, foldings, places), _row(job, foldings, places)
            fills.extend(fill.body)
            rows.append(row.body)
            pre.extend((*fill.pre, *row.pre))
            fold_parts(job, foldings, {n: place for n, (place, _) in places.items()}, count, blocks)
            ends.append(job)
            work = work + total(job.loops.extents[1:]) * job.cost()
        else:
            (phase,) = job.phases
            rows.append(phase.body)
            pre.extend(phase.pre)
            work = work + job.launches[0][1]
    start = product(height, variable("b0"))
    several = _together(jobs)
    along = abreast(rows, [folds_rows(job) for job in jobs], lambda j, k: _unseen(jobs[j], jobs[k]))
    body = (*fills, *in_groups(first, along, start, affine(0, start, height), several))
    phases = [Phase("b0", blocks, "serial", body, tuple(pre)), *(p for job in ends for p in job.phases)]
    launches = [(count, dims.simplify(size * work)), *(n for job in ends for n in job.launches)]
    return assembled(jobs, phases, launches)


def by_groups(jobs: Sequence[Job]) -> tuple[Kernel, Binding] | None:
    """The kernel of jobs that run row by row, several rows at a time, where rows that are folded come from
    memory; None where that is of no use.

    Parameters
    ----------
    jobs : sequence of Job
        All have a phase over the rows already.
    """
    first, folding = jobs[0], [job for job in jobs if any(job.folds)]
    far = any(_points(job) >= BEYOND and _points(job) >= LONG * _rows_of(job) for job in folding)
    if not far or _rows_of(first) < LONG or not all(map(_apart, folding)):
        return None
    several = _together(jobs)
    if several == 1:
        return None
    phase, count = by_row(jobs), first.blocks(first.loops.extents[0], several)
    row = variable("b0", several)
    body = in_groups(first, phase.body, row, affine(several, row), several)
    blocks = first.arguments.integer(count, "blocks")
    work: Dim = 0
    for job in jobs:
        work = work + several * job.launches[0][1]
    return assembled(jobs, [Phase("b0", blocks, "serial", body, phase.pre)], [(count, dims.simplify(work))])


def _unseen(job: Job, folding: Job) -> bool:
    """Does a job write nothing that another reads, which folds the rows and so writes what is its own?"""
    family = job.memory.family
    read = {family(load.window.array) for value in folding.values for load in windows.loads(value)}
    return read.isdisjoint(family(compute.target.array) for compute in job.computes)


def _together(jobs: Sequence[Job]) -> int:
    """How many rows are taken at a time; what is done once for a row does not count."""
    return min(WAYS, *(ways(job) for job in jobs if len(job.loops.axes) > 1))


def _rows_of(job: Job) -> int:
    return job.guess(job.loops.extents[0])


def _apart(job: Job) -> bool:
    """Does a row fold into what is its own, without a look at whether the rest matters?"""
    arrays = job.memory.arrays
    whole = len(job.loops.axes) - 1 in job.loops.folded
    return whole and all(arrays[compute.target.array].dtype.kind != "b" for compute in job.computes)


def _points(job: Job) -> int:
    return job.guess(total(job.loops.extents))


def _places(job: Job, foldings: list[Folding], count: Dim) -> Places:
    """Where the partial results of each block lie."""
    if len(job.loops.axes) != 2 or job.loops.folded != {0}:
        raise Unsupported("what is folded over the rows is no row")
    if any(folding.fold.mode == "ordered" for folding in foldings):
        raise Unsupported("what is folded over the rows has to be folded in order")
    arguments, width = job.arguments, job.loops.extents[1]
    at = affine(0, product(arguments.extent(1), variable("b0")), job.variables[1])
    return {f.number: (arguments.scratch(f.fold.wide, count * width), at) for f in foldings}


def _fill(job: Job, foldings: list[Folding], places: Places) -> Phase:
    """What partial results begin with; in a loop over blocks."""
    across = job.whole(1)
    scope = job.place("b0", [across], 2, False)
    for folding in foldings:
        fold = folding.fold
        start = converted(starts_of(scope, job, [folding])[0], fold.wide) if fold.idempotent else None
        scope.add(Store(*places[folding.number], start or fold.identity()))
    return Phase("b0", affine(), "serial", nest(scope, 1, [across], "vector"), scope.preamble())


def _row(job: Job, foldings: list[Folding], places: Places) -> Phase:
    """One row, folded into its block's partial results; in a loop over rows."""
    across = job.whole(1)
    scope = job.place("i0", [across], 2, job.nonempty)
    scope.announce(job.values, [compute.target for compute in job.computes])
    folds = {folding.number: folding.fold for folding in foldings}

    def add(number: int, value: Expr) -> None:
        (place, at), fold = places[number], folds[number]
        old = Elem(place, at, fold.wide)
        scope.add(Store(place, at, op(fold.name, old, converted(value, fold.wide))))

    statements(job, scope, add)
    return Phase("i0", affine(), "serial", nest(scope, 1, [across], "vector"), scope.preamble())
