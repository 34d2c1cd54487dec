"""The schedule of statements that run row by row: a block for each row, or a thread if rows are short.

A block runs one statement after the other, with its threads along the row; after the barrier between two
statements, all threads see what the others have stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dcarray.ir.nodes import Dim
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.nodes import Affine, Binding, Expr, For, Index, Kernel, Op, Phase, Stmt, affine
from dcarray.lowering.nest.access import total
from dcarray.lowering.nest.fold import Folding, accumulate, foldings_of
from dcarray.lowering.nest.loop_nest import (
    Block,
    LoopHeader,
    LoopNest,
    assemble_kernel,
    build_loops,
    evaluate_statements,
    variable,
)

from .blocks import (
    BLOCK,
    BOOL,
    LANE,
    Lane,
    Limits,
    Tile,
    ceil_power,
    guard,
    is_below,
    lane_of,
    scope_at,
    threads,
    width_along,
)
from .reductions import LEVEL, reduce_parts, tile_of
from .teams import Part, declare, part_loops, store_results

ROW = 0  # the loop over rows
MIN_POINTS = 64  # points for each thread of a row from which on statements do few rows better on their own


def schedule_rows(nests: Sequence[LoopNest], limits: Limits) -> tuple[Kernel, Binding]:
    """Return the kernel, and its binding, of statements that run row by row.

    Raises
    ------
    Unsupported
        If a statement reduces over the rows, or if there are too few rows to occupy a device.
    """
    first = nests[0]
    if any(ROW in nest.loops.folded for nest in nests):
        raise Unsupported("a reduction over the rows beside statements that run row by row")
    hints, work = first.hints, 0
    rows = first.loops.extents[ROW]
    longest = max(hints(total(nest.loops.extents[1:])) for nest in nests)
    if hints(rows) * 8 < limits.blocks and longest > MIN_POINTS * limits.threads:
        raise Unsupported("the rows are too few")
    work = sum((total(nest.loops.extents[1:]) * nest.cost() for nest in nests), start=0)
    count: Dim = rows
    if longest <= limits.short and hints(rows) > limits.threads:
        count = first.block_count(rows, limits.threads)
        phase = _by_threads(nests, count, limits)
    else:
        width = min(limits.threads, max(limits.narrow, ceil_power(longest)))
        phase = _by_blocks(nests, replace(limits, threads=width))
    return assemble_kernel(nests, [phase], [(count, work)])


# ---- a block for each row --------------------------------------------------------------------------
def _by_blocks(nests: Sequence[LoopNest], limits: Limits) -> Phase:
    """Return the phase in which each block runs all statements for one row."""
    body: list[Stmt] = []
    for nest in nests:
        body.extend(along_row(nest, limits))
    extent = nests[0].arguments.extent(ROW)
    return Phase(BLOCK, extent, "blocks", tuple(body), (), limits.threads)


def along_row(nest: LoopNest, limits: Limits) -> Block:
    """Return the statements with which the threads of a block run a nest for one row, or for all elements if
    the nest has no rows."""
    return _reduced_row(nest, limits) if any(nest.folds) else _row(nest, limits)


def _inside(nest: LoopNest) -> range:
    """Return the numbers of the loops within a row."""
    return range(1 if nest.row_axes else 0, len(nest.loops.axes))


def _row(nest: LoopNest, limits: Limits) -> Block:
    """Return the statements with which a block runs an element-wise nest along a row."""
    tile = _row_tile(nest, limits)
    lane = lane_of(tile, nest.names)
    headers = []
    for loop in _inside(nest):
        place = lane.column if loop == tile.across else lane.row if loop == tile.down else affine()
        header = LoopHeader(f"i{loop}", place, nest.arguments.bounds(loop), tile.size(loop))
        headers.append(header)
    before, body = _elementwise(nest, variable(BLOCK), 1, headers)
    if not headers:
        body = guard([is_below(variable(LANE), 1)], body)
    return (*before, threads(limits.threads, (*lane.before, *body)))


def _elementwise(nest: LoopNest, row: Affine, depth: int, headers: list[LoopHeader]) -> tuple[Block, Block]:
    """Return the definitions before the threads, and a thread's statements; ``depth`` is the row's level."""
    depths = {ROW: depth, **{loop: LEVEL + 1 + number for number, loop in enumerate(_inside(nest))}}
    scope = scope_at(nest, {ROW: row} if nest.row_axes else {}, depths, LEVEL + len(headers), nest.nonempty)
    scope.announce(nest.values, [compute.target for compute in nest.computes])
    evaluate_statements(nest, scope, None)
    body = build_loops(scope, LEVEL, headers, "serial")
    return (*scope.take(0), *scope.take(1)), body


def _row_tile(nest: LoopNest, limits: Limits) -> Tile:
    """Return the threads of a block along the axes of a row."""
    *others, inner = _inside(nest) or [ROW]
    sizes = [nest.hints(extent) for extent in nest.loops.extents]
    width = width_along(sizes[inner], limits) if others else limits.threads
    if width == limits.threads:
        return Tile(width, 1, inner)
    return Tile(width, limits.threads // width, inner, max(others, key=lambda loop: sizes[loop]))


@dataclass(slots=True)
class RowLoops:
    """The loops of a row that are not reduced; a block's threads go through them together, tile by tile."""

    nest: LoopNest
    kept: Sequence[int]
    tile: Tile

    @property
    def piece(self) -> Affine:
        """The number of the piece of the reduced loops: 0, since rows are not cut into pieces."""
        return affine()

    def variables(self, lane: Lane) -> dict[int, Affine]:
        """Return the value of each kept loop's variable for a thread of the block."""
        values = {ROW: variable(BLOCK)} if self.nest.row_axes else {}
        for loop in self.kept:
            at = affine()
            if loop == self.tile.across:
                at = lane.column
            elif loop == self.tile.down:
                at = lane.row
            values[loop] = affine(0, variable(f"w{loop}"), at)
        return values

    def depths(self, level: int) -> dict[int, int]:
        """Return the level of the kernel's loops at which each kept loop is opened."""
        return {ROW: 1, **{loop: level for loop in self.kept}}

    def guard(self, lane: Lane, body: Block) -> Block:
        """Return the statements ``body`` under the condition that the thread's indices are in bounds."""
        values = self.variables(lane)
        inside: list[Expr] = [
            Op("less", (Index(values[loop]), Index(bound)), BOOL)
            for loop in self.kept
            if loop in (self.tile.across, self.tile.down)
            for bound in self.nest.arguments.bounds(loop)
        ]
        return guard(inside, body)

    def around(self, body: Block) -> Block:
        """Return the loops over the tiles of the row, around ``body``."""
        for loop in reversed(self.kept):
            bounds = self.nest.arguments.bounds(loop)
            body = (For(f"w{loop}", affine(), bounds, self.tile.size(loop), "serial", body),)
        return body


def _reduced_row(nest: LoopNest, limits: Limits) -> Block:
    """Return the statements with which a block runs a nest with reductions along a row."""
    foldings, kept, folded = _loops(nest)
    sizes = {loop: nest.hints(extent) for loop, extent in enumerate(nest.loops.extents)}
    tile = tile_of(sizes, kept, folded, len(nest.loops.axes) - 1, limits)
    loops = RowLoops(nest, kept, tile)
    parts = {loop: Part(loop, affine(), tile.size(loop)) for loop in folded}
    outside, body = reduce_parts(nest, foldings, loops, parts, limits, None)
    return (*outside, *loops.around(body))


def _loops(nest: LoopNest) -> tuple[list[Folding], list[int], list[int]]:
    """Return the reductions of a nest, its kept loops within a row, and its folded (reduced) loops."""
    loops = _inside(nest)
    folded = [loop for loop in loops if loop in nest.loops.folded]
    return foldings_of(nest), [loop for loop in loops if loop not in folded], folded


# ---- a thread for each row -------------------------------------------------------------------------
def _by_threads(nests: Sequence[LoopNest], count: Dim, limits: Limits) -> Phase:
    """Return the phase in which each thread runs all statements for one row."""
    first = nests[0]
    row = affine(0, variable(LANE), *(replace(t, coef=limits.threads) for t in variable(BLOCK).terms))
    body: list[Stmt] = []
    for nest in nests:
        if any(nest.folds):
            body.extend(_reduced_alone(nest, row, limits))
        else:
            headers = [nest.whole_loop(loop) for loop in range(1, len(nest.loops.axes))]
            before, stmts = _elementwise(nest, row, LEVEL, headers)
            body.extend((*before, *stmts))
    inside: Expr = Op("less", (Index(row), Index(first.arguments.extent(ROW))), BOOL)
    work = threads(limits.threads, guard([inside], tuple(body)))
    return Phase(BLOCK, first.arguments.integer(count, "grid"), "blocks", (work,), (), limits.threads)


def _reduced_alone(nest: LoopNest, row: Affine, limits: Limits) -> Block:
    """Return the statements with which one thread runs a nest with reductions along a row."""
    foldings, kept, folded = _loops(nest)
    level = LEVEL + len(kept)
    parts = [Part(loop, affine(), 1) for loop in folded]
    headers, carried = part_loops(nest, parts, foldings, limits)
    depths = {ROW: LEVEL, **{loop: LEVEL + 1 + number for number, loop in enumerate(kept)}}
    ends = scope_at(nest, {ROW: row}, depths, level, False)
    declared = declare(nest, foldings, ends, level, carried)
    names = {header.var: level + 1 + number for number, header in enumerate(headers)}
    depths |= {loop: names[f"i{loop}"] for loop in folded}
    main = scope_at(nest, {ROW: row}, depths, level + len(headers), nest.nonempty)
    accumulate(nest, foldings, main, headers, carried)
    loops = build_loops(main, level, headers, "serial")
    stores = store_results(nest, foldings, ends, level, [f.fold.result() for f in foldings])
    main.absorb(ends)
    main.put(level, (*declared, *loops, *stores))
    body = build_loops(main, LEVEL, [nest.whole_loop(loop) for loop in kept], "serial")
    return (*main.take(0), *main.take(1), *body)
