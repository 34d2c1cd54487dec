"""The schedule of scans (cumulative reductions along an axis).

Each line is scanned in order, as NumPy does, since floating-point results depend on it; several lines are
scanned at once.  Where the scanned axis is the innermost loop, rows are jammed, which hides the latency of
each row's dependent operations; where it is not, a strip of neighbouring lines is scanned by vectors.
"""

from __future__ import annotations

from dataclasses import replace

from dcarray.ir.nodes import Compute, Const
from dcarray.lowering.kernel.nodes import Declare, Elem, Expr, Lit, Local, Phase, Stmt, Update, affine
from dcarray.lowering.nest.access import total
from dcarray.lowering.nest.body import Scope
from dcarray.lowering.nest.fold import op
from dcarray.lowering.nest.loop_nest import (
    MIN_PARALLEL,
    Block,
    LoopHeader,
    LoopNest,
    build_loops,
    variable,
    wrap_loop,
)

STRIP = 1024  # neighbouring lines that are scanned by vectors
WAYS = 4  # the jam factor of rows


def schedule_scan(nest: LoopNest) -> None:
    """Add the phase of a scan."""
    (compute,) = nest.computes
    loops = nest.loops.axes
    scanned = next(k for k, axes in enumerate(loops) if compute.scan in axes)
    kept = [k for k in range(len(loops)) if k != scanned]
    if scanned == len(loops) - 1:
        _rows(nest, compute, kept, scanned)
    else:
        _columns(nest, compute, kept, scanned)


# ---- along the innermost loop ----------------------------------------------------------------------
def _rows(nest: LoopNest, compute: Compute, kept: list[int], scanned: int) -> None:
    extents, arguments = nest.loops.extents, nest.arguments
    along = nest.whole_loop(scanned)
    if not kept:
        main, body = _lines(nest, compute, "one", [], [along], 1)
        nest.add_phase(
            Phase("one", affine(1), "serial", body, main.preamble()), 1, total(extents) * nest.cost()
        )
        return
    *outer, last = kept
    launch = nest.block_count(extents[last], WAYS)
    start, whole = variable("b0", WAYS), arguments.integer(extents[last] // WAYS * WAYS, "whole")
    several = LoopHeader(f"i{last}", start, (affine(WAYS, start), whole), WAYS)
    single = replace(nest.loop_from(last, start, affine(WAYS)), floors=(whole,))
    others = [nest.whole_loop(loop) for loop in outer]
    main, first = _lines(nest, compute, "b0", others, [several, along], WAYS)
    rest, second = _lines(nest, compute, "b0", others, [single, along], 1)
    main.absorb(rest)
    main.put(1 + len(others), (*first, *second))
    points = WAYS * total(n for loop, n in enumerate(extents) if loop != last)
    body, groups = build_loops(main, 1, others, "serial"), arguments.integer(launch, "groups")
    nest.add_phase(Phase("b0", groups, "serial", body, main.preamble()), launch, points * nest.cost())


def _lines(
    nest: LoopNest,
    compute: Compute,
    phase: str,
    others: list[LoopHeader],
    headers: list[LoopHeader],
    ways: int,
) -> tuple[Scope, Block]:
    """Return the loops that scan ``ways`` rows at a time, each with a running value of its own."""
    dtype = nest.memory.arrays[compute.target.array].dtype
    name = str(compute.combine)
    level = 1 + len(others) + len(headers)
    places = [
        nest.scope_at(phase, [*others, *headers], level, nest.nonempty, offset) for offset in range(ways)
    ]
    declared: list[Stmt] = []
    for scope in places:
        scope.announce(nest.values, [compute.target])
        value = _as_local(scope, scope.evaluate(nest.values[0]))
        folded = Local(nest.names("a"), dtype)
        declared.append(Declare(folded.name, _start(nest, compute)))
        result = scope.name(op(name, folded, value))
        scope.add(Update(folded.name, name, value))
        scope.store(compute.target, result, False)
    main, *more = places
    main.absorb(*more)
    heads = list(headers)
    wrap_loop(heads, -1, tuple(declared), ())
    return main, build_loops(main, 1 + len(others), heads, "serial")


def _start(nest: LoopNest, compute: Compute) -> Lit:
    start = compute.init
    assert isinstance(start, Const)
    return Lit(start.bits, start.dtype)


def _as_local(scope: Scope, value: Expr) -> Expr:
    return value if isinstance(value, Local | Lit) else scope.name(value)


# ---- along an outer loop ---------------------------------------------------------------------------
def _columns(nest: LoopNest, compute: Compute, kept: list[int], scanned: int) -> None:
    extents, arguments = nest.loops.extents, nest.arguments
    arguments.note(arguments.access(compute.target), "r")
    *outer, last = kept
    if not outer or nest.hints(extents[outer[0]]) < MIN_PARALLEL:
        launch = nest.block_count(extents[last], STRIP)
        phase, extent = "b0", arguments.integer(launch, "blocks")
        others, start = [nest.whole_loop(loop) for loop in outer], variable("b0", STRIP)
        points = STRIP * total(n for loop, n in enumerate(extents) if loop != last)
    else:
        phase, extent, launch, points, others = nest.parallel_header(outer)
        others.append(nest.strip_loop(last, "b0", STRIP))
        start = variable("b0")
    across, along = nest.loop_from(last, start, affine(STRIP)), nest.whole_loop(scanned)
    level = 1 + len(others)
    begin, go_on = replace(along, upper=(affine(1), *along.upper)), replace(along, lower=affine(1))
    main = _across(nest, compute, phase, [*others, begin, across], _start(nest, compute))
    first = build_loops(main, level, [begin, across], "vector")
    headers = [*others, go_on, across]
    buffer, at = nest.scope_at(phase, headers, level + 2, False, -1).address(compute.target)
    before = Elem(buffer, at, nest.memory.arrays[compute.target.array].dtype)
    rest = _across(nest, compute, phase, headers, before)
    second = build_loops(rest, level, [go_on, across], "vector")
    main.absorb(rest)
    main.put(level, (*first, *second))
    body = build_loops(main, 1, others, "serial")
    nest.add_phase(Phase(phase, extent, "serial", body, main.preamble()), launch, points * nest.cost())


def _across(nest: LoopNest, compute: Compute, phase: str, headers: list[LoopHeader], before: Expr) -> Scope:
    """Return the scope of a vector loop across a strip that combines each element with ``before``, the result
    of its line so far."""
    scope = nest.scope_at(phase, headers, 1 + len(headers), nest.nonempty)
    scope.announce(nest.values, [compute.target])
    value = scope.evaluate(nest.values[0])
    scope.store(compute.target, op(str(compute.combine), before, value), False)
    return scope
