"""The loops of element-wise statements, on their own, row by row, or inside of other loops."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from dcarray.ir.nodes import Compute, Dim, Nest, Region
from dcarray.lowering.kernel.nodes import Expr, If, Index, Op, Phase, affine
from dcarray.lowering.nest.access import positive, total
from dcarray.lowering.nest.body import literal
from dcarray.lowering.nest.loop_nest import (
    FEW,
    Block,
    Inside,
    Job,
    Kind,
    Open,
    Shared,
    evaluated,
    nest,
    variable,
)

from .transpose import found, transposing

STRIP = 4096  # elements of one parallel piece when the innermost loop itself is cut


def row_jobs(
    body: Sequence[Compute | Nest],
    region: Region,
    axes: int,
    before: Shared | None = None,
    inside: Inside | None = None,
) -> list[Job]:
    """The jobs of statements that run row by row."""

    def jobs(axes: int) -> list[Job]:
        made: list[Job] = []
        for part in body:
            made.append(Job(part, region, axes, made[0] if made else before, inside))
        return made

    found = jobs(axes)
    # if the axes cannot be one loop, a row is all that has the same first coordinate
    return found if all(job.joined for job in found) else jobs(1)


def row(job: Job) -> None:
    """Element-wise statements of one row."""
    opens = [job.whole(loop) for loop in range(1, len(job.loops.axes))]
    scope = evaluated(job, "i0", opens, {})
    phase = Phase("i0", job.arguments.extent(0), "serial", nest(scope, 1, opens, "vector"), scope.preamble())
    job.add(phase, job.loops.extents[0], job.cost() * total(job.loops.extents[1:]))


def elementwise(job: Job) -> None:
    """Make the phase of element-wise statements."""
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


def elementwise_inside(job: Job) -> Block:
    """The loops of element-wise statements inside of others."""
    opens = [job.whole(loop) for loop in range(len(job.loops.axes))]
    scope = evaluated(job, "one", opens, {})
    body = (*scope.preamble(), *nest(scope, 1, opens, "vector"))
    sure = all(map(positive, job.loops.extents))
    if sure or (len(opens) == 1 and len(body) == 1):
        return body
    unsure = [bound for head in opens for bound in head.upper]
    boolean, zero = np.dtype(bool), literal(0, np.dtype(np.int64))
    some: list[Expr] = [Op("less", (zero, Index(bound)), boolean) for bound in unsure]
    return (If(reduce(lambda a, b: Op("logical_and", (a, b), boolean), some), body),)
