"""The schedule of element-wise statements: as a kernel of their own, as rows, or in the loops of a kernel."""

from __future__ import annotations

import numpy as np

from dcarray.ir.nodes import Dim
from dcarray.lowering.kernel.nodes import Expr, If, Index, Op, Phase, affine
from dcarray.lowering.nest.access import positive, total
from dcarray.lowering.nest.body import all_of, literal
from dcarray.lowering.nest.loop_nest import (
    MIN_PARALLEL,
    Block,
    Kind,
    LoopHeader,
    LoopNest,
    build_loops,
    scope_of_statements,
    variable,
)

from .transpose import find_tiling, schedule_transposed

STRIP = 4096  # elements of one parallel chunk when the innermost loop itself is parallel


def schedule_row(nest: LoopNest) -> None:
    """Add to the kernel a phase over the rows of element-wise statements, each row in one iteration."""
    headers = [nest.whole_loop(loop) for loop in range(1, len(nest.loops.axes))]
    scope = scope_of_statements(nest, "i0", headers, {})
    phase = Phase(
        "i0", nest.arguments.extent(0), "serial", build_loops(scope, 1, headers, "vector"), scope.preamble()
    )
    nest.add_phase(phase, nest.loops.extents[0], nest.cost() * total(nest.loops.extents[1:]))


def schedule_elementwise(nest: LoopNest) -> None:
    """Add to the kernel the phase that runs element-wise statements."""
    loops, hints, arguments = nest.loops, nest.hints, nest.arguments
    rank = len(loops.axes)
    sizes = [hints(extent) for extent in loops.extents]
    tiling = find_tiling(nest)
    if tiling is not None:
        return schedule_transposed(nest, tiling)
    order = list(range(rank))
    inner = rank - 1
    headers: list[LoopHeader] = []
    share: Dim = 1
    if rank == 0:
        phase, extent, launch = "one", affine(1), 1
    elif rank == 1:
        phase, extent, launch = "i0", arguments.extent(0), loops.extents[0]
    else:
        if sizes[0] < MIN_PARALLEL:
            longest = max(order[:-1], key=lambda loop: sizes[loop])
            order.remove(longest)
            order.insert(0, longest)
        if sizes[order[0]] < MIN_PARALLEL and sizes[inner] >= 2 * STRIP:
            launch = nest.block_count(loops.extents[inner], STRIP)
            phase, extent = "b0", arguments.integer(launch, "blocks", inner)
            headers = [
                *map(nest.whole_loop, order[:-1]),
                nest.loop_from(inner, variable("b0", STRIP), affine(STRIP)),
            ]
            share = STRIP * total(loops.extents[loop] for loop in order[:-1])
        else:
            phase, extent, launch = f"i{order[0]}", arguments.extent(order[0]), loops.extents[order[0]]
            headers = [nest.whole_loop(loop) for loop in order[1:]]
            share = total(loops.extents[loop] for loop in order[1:])
    scope = scope_of_statements(nest, phase, headers, {})
    body = build_loops(scope, 1, headers, "vector")
    kind: Kind = "vector" if rank == 1 else "serial"
    nest.add_phase(
        Phase(phase, extent, kind, body, scope.preamble()), nest.unless_empty(launch), share * nest.cost()
    )


def elementwise_loops(nest: LoopNest) -> Block:
    """Return the kernel loops that run element-wise statements inside the loops of another kernel."""
    headers = [nest.whole_loop(loop) for loop in range(len(nest.loops.axes))]
    scope = scope_of_statements(nest, "one", headers, {})
    body = (*scope.preamble(), *build_loops(scope, 1, headers, "vector"))
    sure = all(map(positive, nest.loops.extents))
    if sure or (len(headers) == 1 and len(body) == 1):
        return body
    unsure = [bound for head in headers for bound in head.upper]
    boolean, zero = np.dtype(bool), literal(0, np.dtype(np.int64))
    some: list[Expr] = [Op("less", (zero, Index(bound)), boolean) for bound in unsure]
    return (If(all_of(some), body),)
