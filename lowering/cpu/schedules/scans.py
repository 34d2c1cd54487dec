"""Scans: each element is what lies before it along an axis, with its own value folded in.

NumPy goes from element to element, and so does each line here, for floating-point results depend on the
order; but lines go side by side.  Where the scanned axis is the innermost loop, some rows are taken at a
time, so that none has to wait for its own last result; where it is not, a strip of neighbours is scanned
by vectors.
"""

from __future__ import annotations

from dataclasses import replace

from dcarray.ir.nodes import Compute, Const
from dcarray.lowering.kernel.nodes import Declare, Elem, Expr, Lit, Local, Phase, Stmt, Update, affine
from dcarray.lowering.nest.access import total
from dcarray.lowering.nest.body import Scope
from dcarray.lowering.nest.fold import op
from dcarray.lowering.nest.loop_nest import FEW, Block, Job, Open, around, nest, variable

STRIP = 1024  # neighbours that are scanned side by side
WAYS = 4  # rows taken at a time


def scanning(job: Job) -> None:
    """Make the phase of a scan."""
    (compute,) = job.computes
    loops = job.loops.axes
    scanned = next(k for k, axes in enumerate(loops) if compute.scan in axes)
    kept = [k for k in range(len(loops)) if k != scanned]
    if scanned == len(loops) - 1:
        _rows(job, compute, kept, scanned)
    else:
        _columns(job, compute, kept, scanned)


# ---- the scanned loop is the innermost -------------------------------------------------------------
def _rows(job: Job, compute: Compute, kept: list[int], scanned: int) -> None:
    extents, arguments = job.loops.extents, job.arguments
    along = job.whole(scanned)
    if not kept:
        main, body = _lines(job, compute, "one", [], [along], 1)
        job.add(Phase("one", affine(1), "serial", body, main.preamble()), 1, total(extents) * job.cost())
        return
    *outer, last = kept
    launch = job.blocks(extents[last], WAYS)
    start, whole = variable("b0", WAYS), arguments.integer(extents[last] // WAYS * WAYS, "whole")
    several = Open(f"i{last}", start, (affine(WAYS, start), whole), WAYS)
    single = replace(job.piece(last, start, affine(WAYS)), floors=(whole,))
    others = [job.whole(loop) for loop in outer]
    main, first = _lines(job, compute, "b0", others, [several, along], WAYS)
    rest, second = _lines(job, compute, "b0", others, [single, along], 1)
    main.absorb(rest)
    main.put(1 + len(others), (*first, *second))
    points = WAYS * total(n for loop, n in enumerate(extents) if loop != last)
    body, groups = nest(main, 1, others, "serial"), arguments.integer(launch, "groups")
    job.add(Phase("b0", groups, "serial", body, main.preamble()), launch, points * job.cost())


def _lines(
    job: Job, compute: Compute, phase: str, others: list[Open], opens: list[Open], ways: int
) -> tuple[Scope, Block]:
    """So many rows at a time, each folded into a variable of its own."""
    dtype = job.memory.arrays[compute.target.array].dtype
    name = str(compute.combine)
    level = 1 + len(others) + len(opens)
    places = [job.place(phase, [*others, *opens], level, job.nonempty, ahead) for ahead in range(ways)]
    declared: list[Stmt] = []
    for scope in places:
        scope.announce(job.values, [compute.target])
        value = _named(scope, scope.evaluate(job.values[0]))
        folded = Local(job.names("a"), dtype)
        declared.append(Declare(folded.name, _start(job, compute)))
        made = scope.name(op(name, folded, value))
        scope.add(Update(folded.name, name, value))
        scope.store(compute.target, made, False)
    main, *more = places
    for scope in more:
        main.absorb(scope)
    heads = list(opens)
    around(heads, -1, tuple(declared), ())
    return main, nest(main, 1 + len(others), heads, "serial")


def _start(job: Job, compute: Compute) -> Lit:
    start = compute.init
    assert isinstance(start, Const)
    return Lit(start.bits, start.dtype)


def _named(scope: Scope, value: Expr) -> Expr:
    return value if isinstance(value, Local | Lit) else scope.name(value)


# ---- it is not -------------------------------------------------------------------------------------
def _columns(job: Job, compute: Compute, kept: list[int], scanned: int) -> None:
    extents, arguments = job.loops.extents, job.arguments
    arguments.note(arguments.access(compute.target), "r")
    *outer, last = kept
    if not outer or job.guess(extents[outer[0]]) < FEW:
        launch = job.blocks(extents[last], STRIP)
        phase, extent = "b0", arguments.integer(launch, "blocks")
        others, start = [job.whole(loop) for loop in outer], variable("b0", STRIP)
        points = STRIP * total(n for loop, n in enumerate(extents) if loop != last)
    else:
        phase, extent, launch, points, others = job.head(outer)
        others.append(job.strips(last, "b0", STRIP))
        start = variable("b0")
    across, along = job.piece(last, start, affine(STRIP)), job.whole(scanned)
    level = 1 + len(others)
    begin, go_on = replace(along, upper=(affine(1), *along.upper)), replace(along, lower=affine(1))
    main = _across(job, compute, phase, [*others, begin, across], _start(job, compute))
    first = nest(main, level, [begin, across], "vector")
    opens = [*others, go_on, across]
    buffer, at = job.place(phase, opens, level + 2, False, -1).address(compute.target)
    before = Elem(buffer, at, job.memory.arrays[compute.target.array].dtype)
    rest = _across(job, compute, phase, opens, before)
    second = nest(rest, level, [go_on, across], "vector")
    main.absorb(rest)
    main.put(level, (*first, *second))
    body = nest(main, 1, others, "serial")
    job.add(Phase(phase, extent, "serial", body, main.preamble()), launch, points * job.cost())


def _across(job: Job, compute: Compute, phase: str, opens: list[Open], before: Expr) -> Scope:
    """The elements of a strip, each folded with what is before it."""
    scope = job.place(phase, opens, 1 + len(opens), job.nonempty)
    scope.announce(job.values, [compute.target])
    value = scope.evaluate(job.values[0])
    scope.store(compute.target, op(str(compute.combine), before, value), False)
    return scope
