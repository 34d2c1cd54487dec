"""Reductions by the threads of a block: each thread folds some elements, then a team of threads folds their
results in a tree.

The tree is in shared memory, and its shape does not depend on sizes.  A team of one thread has no tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dcarray.ir import dims
from dcarray.ir.records import record
from dcarray.lowering.kernel.nodes import Affine, Elem, Expr, Stack, Stmt, Store, affine
from dcarray.lowering.nest.body import Scope
from dcarray.lowering.nest.fold import Folding, op, starts_of
from dcarray.lowering.nest.loop_nest import Block, LoopHeader, LoopNest, variable

from .blocks import LANE, Lane, Limits, Tile, guard, is_below, lane_of, threads

Guard = Callable[[Lane, Block], Block]


@record(frozen=True, slots=True)
class Team:
    """The threads of a tile that fold one result together: a row, a column or all threads.  ``count`` is how
    many they are, ``step`` the difference between the numbers of two neighbours."""

    tile: Tile
    count: int
    step: int

    def index(self, lane: Lane) -> Affine:
        """Return the number of a thread in its team."""
        if self.count == self.tile.threads:
            return variable(LANE)
        return lane.column if self.step == 1 else lane.row


def team_of(tile: Tile, folded: Sequence[int]) -> Team:
    """Return the team of threads that folds one result, given the loops that are reduced."""
    across = tile.across in folded and tile.width > 1
    down = tile.down in folded and tile.height > 1
    if across and (down or tile.height == 1):
        return Team(tile, tile.threads, 1)
    if across:
        return Team(tile, tile.width, 1)
    return Team(tile, tile.height if down else 1, tile.width)


def fold_together(
    nest: LoopNest,
    foldings: Sequence[Folding],
    team: Team,
    within: Guard,
    part: Callable[[Lane], Block],
    finish: Callable[[Lane, list[Expr]], Block],
) -> Block:
    """Return the statements with which a block folds.  ``part(lane)`` returns the statements with which one
    thread folds its elements, ``finish(lane, results)`` the statements that use a team's results.

    ``within`` puts a thread's statements under the condition that the thread has work.
    """
    count = team.tile.threads
    lane = lane_of(team.tile, nest.names)
    own = part(lane)
    results = [folding.fold.result() for folding in foldings]
    if team.count == 1:
        return (threads(count, (*lane.before, *within(lane, (*own, *finish(lane, results))))),)
    shared = [nest.names("s") for _ in foldings]
    stmts: list[Stmt] = []
    for name, folding in zip(shared, foldings, strict=True):
        stmts.append(Stack(name, folding.fold.wide, count))
    here = variable(LANE)
    stores = tuple(Store(name, here, value) for name, value in zip(shared, results, strict=True))
    stmts.append(threads(count, (*lane.before, *within(lane, (*own, *stores)))))
    width = team.count // 2
    while width:
        lane = lane_of(team.tile, nest.names)
        steps: list[Stmt] = []
        for name, folding in zip(shared, foldings, strict=True):
            there = affine(width * team.step, here)
            one, other = (Elem(name, at, folding.fold.wide) for at in (here, there))
            steps.append(Store(name, here, op(folding.fold.name, one, other)))
        body = within(lane, guard([is_below(team.index(lane), width)], tuple(steps)))
        stmts.append(threads(count, (*lane.before, *body)))
        width //= 2
    lane = lane_of(team.tile, nest.names)
    totals: list[Expr] = [
        Elem(name, here, folding.fold.wide) for name, folding in zip(shared, foldings, strict=True)
    ]
    last = guard([is_below(team.index(lane), 1)], finish(lane, totals))
    stmts.append(threads(count, (*lane.before, *within(lane, last))))
    return tuple(stmts)


def relax(foldings: Sequence[Folding]) -> None:
    """Let folds whose order is fixed in one thread (products of floats) be done in any order by several."""
    for folding in foldings:
        if folding.fold.mode == "ordered":
            folding.fold.mode = "exact"


def declare(nest: LoopNest, foldings: Sequence[Folding], scope: Scope, level: int, carried: bool) -> Block:
    """Return the statements that declare the accumulators of reductions with their initial values."""
    early = [folding for folding in foldings if folding.fold.starts_early]
    begins = dict(zip((f.number for f in early), starts_of(scope, nest, early), strict=True))
    before = scope.take(level)
    declared = [s for f in foldings for s in f.fold.open(begins.get(f.number), carried)]
    return (*before, *declared)


def store_results(
    nest: LoopNest, foldings: Sequence[Folding], scope: Scope, level: int, totals: Sequence[Expr]
) -> Block:
    """Return the statements that store the results of reductions."""
    late = [folding for folding in foldings if not folding.fold.starts_early]
    starts = dict(zip((f.number for f in late), starts_of(scope, nest, late), strict=True))
    for folding, value in zip(foldings, totals, strict=True):
        start = starts.get(folding.number, value)
        scope.store(folding.compute.target, folding.fold.combine(start, value), False)
    return scope.take(level)


@record(frozen=True, slots=True)
class Part:
    """The iterations of a reduced loop that one thread runs: from ``first``, in steps, to before ``stop``."""

    loop: int
    first: Affine
    step: int
    stop: tuple[Affine, ...] = ()
    short: bool = False  # they are so few that their sum needs no compensation


def part_loops(
    nest: LoopNest, parts: Sequence[Part], foldings: Sequence[Folding], limits: Limits
) -> tuple[list[LoopHeader], bool]:
    """Return the headers of the loops over the elements that a thread folds, and whether sums of blocks are
    added with compensation."""
    headers = [
        LoopHeader(f"i{part.loop}", part.first, (*part.stop, *nest.arguments.bounds(part.loop)), part.step)
        for part in parts
    ]
    last, extent = parts[-1], nest.loops.extents[parts[-1].loop]
    block = limits.serial * last.step
    short = last.short or dims.prove_le(extent, block) is True
    if short or not any(folding.fold.mode == "sum" for folding in foldings):
        return headers, short and len(parts) > 1
    inner = headers.pop()
    strip, limit = variable("b1"), affine(block, variable("b1"))
    headers.append(LoopHeader("b1", inner.lower, inner.upper, block))
    headers.append(LoopHeader(inner.var, strip, (limit, *inner.upper), inner.step))
    return headers, True
