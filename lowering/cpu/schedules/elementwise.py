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
    Kind,
    LoopNest,
    Open,
    Shared,
    build_loops,
    evaluated,
    variable,
)

from .transpose import found, transposing

STRIP = 4096  # elements of one parallel piece when the innermost loop itself is cut


def row_nests(
    body: Sequence[Compute | Nest],
    region: Region,
    axes: int,
    before: Shared | None = None,
    inside: Inside | None = None,
) -> list[LoopNest]:
    """The nests of statements that run row by row."""

    def nests(axes: int) -> list[LoopNest]:
        made: list[LoopNest] = []
        for part in body:
            made.append(LoopNest(part, region, axes, made[0] if made else before, inside))
        return made

    found = nests(axes)
    # if the axes cannot be one loop, a row is all that has the same first coordinate
    return found if all(nest.joined for nest in found) else nests(1)


def row(nest: LoopNest) -> None:
    """Element-wise statements of one row."""
    opens = [nest.whole(loop) for loop in range(1, len(nest.loops.axes))]
    scope = evaluated(nest, "i0", opens, {})
    phase = Phase(
        "i0", nest.arguments.extent(0), "serial", build_loops(scope, 1, opens, "vector"), scope.preamble()
    )
    nest.add(phase, nest.loops.extents[0], nest.cost() * total(nest.loops.extents[1:]))


def elementwise(nest: LoopNest) -> None:
    """Make the phase of element-wise statements."""
    loops, hints, arguments = nest.loops, nest.hints, nest.arguments
    rank = len(loops.axes)
    sizes = [hints(extent) for extent in loops.extents]
    tiling = found(nest)
    if tiling is not None:
        return transposing(nest, tiling)
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
            launch = nest.blocks(loops.extents[inner], STRIP)
            phase, extent = "b0", arguments.integer(launch, "blocks", inner)
            opens = [*map(nest.whole, order[:-1]), nest.piece(inner, variable("b0", STRIP), affine(STRIP))]
            share = STRIP * total(loops.extents[loop] for loop in order[:-1])
        else:
            phase, extent, launch = f"i{order[0]}", arguments.extent(order[0]), loops.extents[order[0]]
            opens = [nest.whole(loop) for loop in order[1:]]
            share = total(loops.extents[loop] for loop in order[1:])
    scope = evaluated(nest, phase, opens, {})
    body = build_loops(scope, 1, opens, "vector")
    kind: Kind = "vector" if rank == 1 else "serial"
    nest.add(
        Phase(phase, extent, kind, body, scope.preamble()), nest.unless_empty(launch), share * nest.cost()
    )


def elementwise_inside(nest: LoopNest) -> Block:
    """The loops of element-wise statements inside of others."""
    opens = [nest.whole(loop) for loop in range(len(nest.loops.axes))]
    scope = evaluated(nest, "one", opens, {})
    body = (*scope.preamble(), *build_loops(scope, 1, opens, "vector"))
    sure = all(map(positive, nest.loops.extents))
    if sure or (len(opens) == 1 and len(body) == 1):
        return body
    unsure = [bound for head in opens for bound in head.upper]
    boolean, zero = np.dtype(bool), literal(0, np.dtype(np.int64))
    some: list[Expr] = [Op("less", (zero, Index(bound)), boolean) for bound in unsure]
    return (If(reduce(lambda a, b: Op("logical_and", (a, b), boolean), some), body),)
