"""Statements to kernels: which loop is parallel, which is the vector loop, what is tiled.

``schedule`` never decides what is right by a guess: legality is proved, sizes only steer choices.
"""

from __future__ import annotations

from ..ir.effects import rows_conflict
from ..ir.nodes import Bands, Compute, Dim, Nest, Region, Rows
from .access import total
from .bands import by_bands
from .job import FEW, Job, Kind, Open, evaluated, finish, nest, variable
from .kernel import Binding, Kernel, Phase, affine
from .reduce import reduction
from .target import Unsupported
from .transpose import found, transposing

STRIP = 4096  # elements of one parallel piece when the innermost loop itself is cut


def schedule(stmt: Compute | Nest | Rows | Bands, region: Region) -> tuple[Kernel, Binding]:
    """The kernel of a statement, and how its arguments come from the region's arrays and symbols.

    Parameters
    ----------
    stmt : Compute, Nest, Rows or Bands
        A statement of the region.  When one of the last three is refused, its statements may be scheduled
        one by one.
    region : Region
        Where the statement is from; its arrays and symbols are looked up.

    Returns
    -------
    kernel : Kernel
        Its text has no sizes in it.
    binding : Binding
        Every number in it is a Dim over the region's symbols and loop variables.

    Raises
    ------
    Unsupported
        If it cannot be done, or cannot be proved right; the text says why.
    """
    if isinstance(stmt, Rows):
        return _by_rows(stmt, region)
    if isinstance(stmt, Bands):
        return by_bands(stmt, region)
    job = Job(stmt, region)
    if any(job.folds):
        reduction(job)
    else:
        _elementwise(job)
    return finish([job])


def _by_rows(stmt: Rows, region: Region) -> tuple[Kernel, Binding]:
    """One phase over the rows; in it the loops of one statement after the other."""
    reason = rows_conflict(stmt.body, stmt.axes, region)
    if reason is not None:
        raise Unsupported(reason.text)
    jobs = _jobs(stmt, region, stmt.axes)
    if not all(job.joined for job in jobs):  # then a row is all that has the same first coordinate
        jobs = _jobs(stmt, region, 1)
    if jobs[0].guess(jobs[0].loops.extents[0]) < FEW:
        raise Unsupported("the rows are too few")
    for job in jobs:
        if any(job.folds):
            reduction(job)
        else:
            _row(job)
    return finish(jobs)


def _jobs(stmt: Rows, region: Region, axes: int) -> list[Job]:
    jobs: list[Job] = []
    for part in stmt.body:
        jobs.append(Job(part, region, axes, jobs[0] if jobs else None))
    return jobs


def _row(job: Job) -> None:
    """Element-wise statements of one row."""
    opens = [job.whole(loop) for loop in range(1, len(job.loops.axes))]
    scope = evaluated(job, "i0", opens, {})
    phase = Phase("i0", job.arguments.extent(0), "serial", nest(scope, 1, opens, "vector"), scope.preamble())
    job.add(phase, job.loops.extents[0], job.cost() * total(job.loops.extents[1:]))


def _elementwise(job: Job) -> None:
    loops, guess, arguments = job.loops, job.guess, job.arguments
    rank = len(loops.axes)
    sizes = [guess(extent) for extent in loops.extents]
    tiling = found(job)
    if tiling is not None:
        return transposing(job, tiling)
    order = list(range(rank))
    inner = rank - 1
    opens: list[Open] = []
    share: Dim = 1
    if rank == 0:
        phase, extent, launch = "one", affine(1), 1
    elif rank == 1:
        phase, extent, launch = "i0", arguments.extent(0), loops.extents[0]
    else:
        if sizes[0] < FEW:
            longest = max(order[:-1], key=lambda loop: sizes[loop])
            order.remove(longest)
            order.insert(0, longest)
        if sizes[order[0]] < FEW and sizes[inner] >= 2 * STRIP:
            launch = job.blocks(loops.extents[inner], STRIP)
            phase, extent = "b0", arguments.integer(launch, "blocks", inner)
            opens = [*map(job.whole, order[:-1]), job.piece(inner, variable("b0", STRIP), affine(STRIP))]
            share = STRIP * total(loops.extents[loop] for loop in order[:-1])
        else:
            phase, extent, launch = f"i{order[0]}", arguments.extent(order[0]), loops.extents[order[0]]
            opens = [job.whole(loop) for loop in order[1:]]
            share = total(loops.extents[loop] for loop in order[1:])
    scope = evaluated(job, phase, opens, {})
    body = nest(scope, 1, opens, "vector")
    kind: Kind = "vector" if rank == 1 else "serial"
    job.add(Phase(phase, extent, kind, body, scope.preamble()), job.unless_empty(launch), share * job.cost())
