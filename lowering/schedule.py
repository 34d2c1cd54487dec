"""Statements to kernels: which loop is parallel, which is the vector loop, what is tiled.

``schedule`` never decides what is right by a guess: legality is proved, sizes only steer choices.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.nodes import Compute, Dim, Nest, Region
from .access import total
from .job import FEW, Job, Kind, Open, nest, statements, variable
from .kernel import Binding, Kernel, Phase, affine
from .reduce import reduction

STRIP = 4096  # elements of one parallel piece when the innermost loop itself is cut
# a tile of a transposed access: its iterations along the innermost loop, and along the other one
WIDE = 256
TALL = 64


def schedule(stmt: Compute | Nest, region: Region) -> tuple[Kernel, Binding]:
    """The kernel of a statement, and how its arguments come from the region's arrays and symbols.

    Parameters
    ----------
    stmt : Compute or Nest
        A statement of the region.  When a nest is refused, its statements may be scheduled one by one.
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
    job = Job(stmt, region)
    if any(job.folds):
        reduction(job)
    else:
        _elementwise(job)
    return job.finish()


def _elementwise(job: Job) -> None:
    loops, guess, arguments = job.loops, job.guess, job.arguments
    rank = len(loops.axes)
    sizes = [guess(extent) for extent in loops.extents]
    order = list(range(rank))
    inner = rank - 1
    opens: list[Open] = []
    across = _across(job, sizes)
    share: Dim = 1
    if rank == 0:
        phase, extent, launch = "one", affine(1), 1
    elif rank == 1:
        phase, extent, launch = "i0", arguments.extent(0), loops.extents[0]
    elif across is not None:
        launch = job.blocks(loops.extents[across], TALL)
        phase, extent = "b0", arguments.integer(launch, "blocks", across)
        others = [loop for loop in order if loop not in (across, inner)]
        opens = [*map(job.whole, others), job.strips(inner, "b1", WIDE)]
        opens += [job.piece(across, variable("b0", TALL), affine(TALL))]
        opens += [job.piece(inner, variable("b1"), affine(WIDE))]
        share = TALL * total(loops.extents[loop] for loop in (*others, inner))
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
    level = {phase: 1, **{head.var: 2 + k for k, head in enumerate(opens)}}
    # Without points nothing is launched: values may be computed before the loops that use them.
    scope = job.scope([level[f"i{loop}"] for loop in range(rank)], 1 + len(opens), True)
    scope.announce(job.values, [compute.target for compute in job.computes])
    statements(job, scope, None)
    body = nest(scope, 1, opens, "vector")
    kind: Kind = "vector" if rank == 1 else "serial"
    launch = _unless_empty(launch, job)
    job.add(Phase(phase, extent, kind, body, scope.preamble()), launch, share * job.cost())


def _unless_empty(head: Dim, job: Job) -> Dim:
    """The launched extent: nothing when the domain has no point."""
    if job.nonempty or len(job.loops.extents) < 2:
        return head
    points = total(job.loops.extents)
    if type(points) is int:
        return head if points else 0
    import sympy

    return head * sympy.Min(1, points)


def _across(job: Job, sizes: Sequence[int]) -> int | None:
    """The loop along which some access is contiguous that is not along the innermost."""
    if len(sizes) < 2:
        return None
    for access in job.arguments.accesses():
        *outer, last = (abs(job.guess(step)) for step in job.arguments.steps(access))
        if last > 1 and 1 in outer:
            loop = outer.index(1)
            if min(sizes[loop], sizes[-1]) >= 2 * TALL:
                return loop
    return None
