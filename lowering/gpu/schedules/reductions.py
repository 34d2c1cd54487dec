"""The schedules of reductions on devices: a block folds a whole result, or pieces that are folded afterwards.

Results are folded in trees whose shapes depend on sizes alone, so that they do not depend on how many blocks
run at a time.  The schedules build kernel IR, which `dcarray.lowering.c_family.device_kernels` prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from dcarray.ir import dims
from dcarray.ir.nodes import Dim
from dcarray.lowering.kernel.nodes import Affine, Elem, Expr, If, Index, Op, Stmt, Store, affine
from dcarray.lowering.nest.access import product, total
from dcarray.lowering.nest.fold import Fold, Folding, accumulate, foldings_of
from dcarray.lowering.nest.loop_nest import Block, LoopHeader, LoopNest, build_loops, variable

from .blocks import (
    BOOL,
    KeptLoops,
    Lane,
    Limits,
    Spread,
    Tile,
    add_blocks,
    ceil_power,
    floor_power,
    scope_at,
    spread,
    width_along,
)
from .teams import Part, declare, fold_together, part_loops, relax, store_results, team_of

LEVEL = 2  # of the threads of a block
WAVES = 4  # blocks for each that a device runs at a time
PIECES = -1  # the number of the loop over pieces


def schedule_reduction(nest: LoopNest, limits: Limits) -> None:
    """Add the phases of a nest with reductions to the nest's kernel."""
    foldings = foldings_of(nest)
    rank = len(nest.loops.axes)
    kept = [loop for loop in range(rank) if loop not in nest.loops.folded]
    folded = [loop for loop in range(rank) if loop in nest.loops.folded]
    sizes = {loop: nest.hints(extent) for loop, extent in enumerate(nest.loops.extents)}
    tile = tile_of(sizes, kept, folded, rank - 1, limits)
    points = total(nest.loops.extents[loop] for loop in folded)
    if not _cut(sizes, kept, folded, tile, limits):
        blocks = spread(nest, kept, tile)
        parts = {loop: _part(tile, loop) for loop in folded}
        before, body = reduce_parts(nest, foldings, blocks, parts, limits, None)
        add_blocks(nest, blocks.grid, tile.threads, (*before, *body), (), points * nest.cost())
        return
    relax(foldings)
    longest = max(folded, key=lambda loop: sizes[loop])
    height = _height(sizes, kept, folded, tile, longest, limits)
    size = affine(height) if len(folded) == 1 else nest.arguments.integer(height, "height")
    count = nest.block_count(nest.loops.extents[longest], height)
    blocks = spread(nest, kept, tile, count)
    start = product(size, blocks.piece)
    parts = {loop: _part(tile, loop) for loop in folded}
    few = len(folded) == 1 and height <= tile.size(longest) * limits.serial
    parts[longest] = replace(_part(tile, longest), first=start, stop=(affine(0, start, size),), short=few)
    inside = rank - 1 in folded  # the results of a row lie beside each other, else those of a piece
    places = [
        nest.arguments.scratch(f.fold.wide, count * total(nest.loops.extents[k] for k in kept))
        for f in foldings
    ]
    own = [replace(f, fold=_another(f.fold, nest)) for f in foldings]
    before, body = reduce_parts(nest, own, blocks, parts, limits, (places, count, inside))
    work = dims.simplify(points * nest.cost() // nest.largest(count, 1))
    add_blocks(nest, blocks.grid, tile.threads, (*before, *body), (), work)
    sizes[PIECES] = nest.hints(count)
    order = PIECES if inside else rank - 1
    final = tile_of(sizes, kept, [PIECES], order, limits)
    blocks = spread(nest, kept, final)
    body = _combine(nest, foldings, blocks, places, count, inside)
    add_blocks(nest, blocks.grid, final.threads, body, (), count * 8)


def _another(fold: Fold, nest: LoopNest) -> Fold:
    """Return a new accumulator for the operation and dtype of another one."""
    another = Fold(fold.name, fold.dtype, nest.names)
    another.mode = fold.mode
    return another


def tile_of(
    sizes: dict[int, int], kept: Sequence[int], folded: Sequence[int], inner: int, limits: Limits
) -> Tile:
    """Return the tile of threads of a block for a reduction; ``sizes`` has plausible extents by loop,
    ``inner`` is the innermost loop."""
    most = limits.threads
    rows = max(reversed(kept), key=lambda loop: sizes[loop], default=None)
    other = max((loop for loop in folded if loop != inner), key=lambda loop: sizes[loop], default=None)
    columns = prod(sizes[loop] for loop in kept)
    if limits.vector and inner in folded and columns >= limits.busy:
        most = 1  # a core of a processor folds a row sooner than it waits for others
    if inner in folded:
        down = other if rows is None or (other is not None and columns < limits.blocks) else rows
        if down is None:
            return Tile(most, 1, inner)
        width = floor_power(sizes[inner] // 4)
        if sizes[inner] <= limits.short and down in kept and columns >= most:
            width = 1
        if down in folded:
            width = ceil_power(sizes[inner])
        height = min(max(1, most // width), floor_power(sizes[down]))
        return Tile(most // height, height, inner, down if height > 1 else None)
    width = width_along(sizes[inner], limits)
    many = columns >= most * limits.blocks
    down = max(folded, key=lambda loop: sizes[loop])
    if many or sizes[down] * width < most:
        down = max((*kept[:-1], down), key=lambda loop: sizes[loop] * (loop in kept or not many))
    if width == most or (down in folded and sizes[down] * width < most):
        return Tile(most, 1, inner)
    return Tile(width, most // width, inner, down)


def _part(tile: Tile, loop: int) -> Part:
    """Return the iterations of a folded loop that each thread runs, without the thread's own offset."""
    return Part(loop, affine(), tile.size(loop))


def _placed(part: Part, tile: Tile, lane: Lane) -> Part:
    """Return the iterations of a folded loop that the thread ``lane`` runs."""
    if part.loop == tile.across:
        return replace(part, first=affine(0, part.first, lane.column))
    if part.loop == tile.down:
        return replace(part, first=affine(0, part.first, lane.row))
    return part


def _cut(
    sizes: dict[int, int], kept: Sequence[int], folded: Sequence[int], tile: Tile, limits: Limits
) -> bool:
    """Whether the folded loops are cut into pieces, since there are few blocks otherwise."""
    each = _tiles(sizes, folded, tile)
    return _tiles(sizes, kept, tile) < limits.blocks and each > 2 * limits.least


def _tiles(sizes: dict[int, int], loops: Sequence[int], tile: Tile) -> int:
    """Return the number of tiles that cover loops."""
    return prod(-(-sizes[loop] // tile.size(loop)) for loop in loops)


def _height(
    sizes: dict[int, int],
    kept: Sequence[int],
    folded: Sequence[int],
    tile: Tile,
    longest: int,
    limits: Limits,
) -> int:
    """Return how many iterations of the loop ``longest`` a piece has: more if there would otherwise be so
    many pieces that folding their results takes long."""
    others = max(1, _tiles(sizes, [loop for loop in folded if loop != longest], tile))
    serial, threads = limits.serial, sizes[longest] * _tiles(sizes, kept, tile) // tile.size(longest)
    while serial > limits.least and threads < serial * limits.blocks:
        serial //= 2
    height = tile.size(longest) * max(1, serial // others)
    pieces = _tiles(sizes, kept, tile) * -(-sizes[longest] // height)
    return height * ceil_power(-(-pieces // (WAVES * limits.blocks)))


def reduce_parts(
    nest: LoopNest,
    foldings: Sequence[Folding],
    blocks: KeptLoops,
    parts: dict[int, Part],
    limits: Limits,
    partial: tuple[list[str], Dim, bool] | None,
) -> tuple[Block, Block]:
    """Return the definitions before a block's reduction, and the statements of the reduction.  If its results
    are partial, ``partial`` has the scratch buffers, the number of pieces and the layout; else it is None."""
    tile, outside, own = blocks.tile, list[Stmt](), dict[int, Affine]()
    team = team_of(tile, list(parts))
    if team.count > 1:
        relax(foldings)

    def folded(headers: list[LoopHeader], carried: bool, at: dict[int, Affine]) -> Block:
        names = {header.var: LEVEL + 1 + number for number, header in enumerate(headers)}
        innermost = LEVEL + len(headers)
        levels = {loop: names.get(f"i{loop}", innermost) for loop in parts}
        main = scope_at(nest, {**own, **at}, {**blocks.depths(LEVEL), **levels}, innermost, nest.nonempty)
        accumulate(nest, foldings, main, headers, carried)
        loops = build_loops(main, LEVEL, headers, "serial")
        outside.extend((*main.take(0), *main.take(1)))
        return loops

    def part(lane: Lane) -> Block:
        own.update(blocks.variables(lane))
        placed = [_placed(one, tile, lane) for one in parts.values()]
        headers, carried = part_loops(nest, placed, foldings, limits)
        values, depths = blocks.variables(lane), blocks.depths(LEVEL)
        begin = scope_at(nest, values, depths, LEVEL, False)
        declared = declare(nest, foldings, begin, LEVEL, carried)
        outside.extend((*begin.take(0), *begin.take(1)))
        (one, *more) = parts.values()
        loops = folded(headers, carried, {})
        if partial is not None and not more and tile.across == one.loop and tile.down is None:
            # A piece inside of the domain has bounds that are the same for all threads: a processor does
            # their iterations together, without masks.
            headers, _ = part_loops(nest, [one], foldings, limits)
            ends = len(nest.arguments.bounds(one.loop))
            headers = [replace(header, upper=header.upper[:-ends]) for header in headers]
            headers[-1] = replace(headers[-1], var="u0")
            last, extent = affine(-1, one.stop[0]), nest.arguments.extent(one.loop)
            inside = Op("less", (Index(last), Index(extent)), BOOL)
            at = {one.loop: affine(0, variable("u0"), lane.column)}
            loops = (If(inside, folded(headers, carried, at), loops),)
        return (*declared, *loops)

    def finish(lane: Lane, totals: list[Expr]) -> Block:
        values = blocks.variables(lane)
        if partial is not None:
            places, count, inside = partial
            at = partial_place(nest, blocks.kept, values, blocks.piece, count, inside)
            return tuple(Store(place, at, value) for place, value in zip(places, totals, strict=True))
        scope = scope_at(nest, values, blocks.depths(LEVEL), LEVEL, False)
        stores = store_results(nest, foldings, scope, LEVEL, totals)
        outside.extend((*scope.take(0), *scope.take(1)))
        return stores

    body = fold_together(nest, foldings, team, blocks.guard, part, finish)
    return tuple(outside), body


def partial_place(
    nest: LoopNest, kept: Sequence[int], values: dict[int, Affine], piece: Affine, count: Dim, inside: bool
) -> Affine:
    """Return the index of a piece's partial result in the scratch buffer; ``inside``: the partial results
    that belong to one result are neighbours."""
    extents, arguments = nest.loops.extents, nest.arguments
    parts = []
    for number, loop in enumerate(kept):
        step = dims.simplify((count if inside else 1) * total(extents[k] for k in kept[number + 1 :]))
        by = affine(1) if type(step) is int and step == 1 else arguments.integer(step, "partial", loop)
        parts.append(product(by, values[loop]))
    if inside:
        return affine(0, piece, *parts)
    width = total(extents[k] for k in kept)
    return affine(0, product(arguments.integer(width, "partials"), piece), *parts)


def _combine(
    nest: LoopNest,
    foldings: Sequence[Folding],
    blocks: Spread,
    places: Sequence[str],
    count: Dim,
    inside: bool,
) -> Block:
    """Return the body of the phase that folds the partial results of all pieces."""
    tile, outside = blocks.tile, list[Stmt]()
    team = team_of(tile, [PIECES])

    def part(lane: Lane) -> Block:
        values, depths = blocks.variables(lane), blocks.depths(LEVEL)
        begin = scope_at(nest, values, depths, LEVEL, False)
        declared = declare(nest, foldings, begin, LEVEL, True)
        first = _placed(Part(PIECES, affine(), 1), tile, lane).first
        header = LoopHeader("b0", first, (nest.arguments.integer(count, "pieces"),), tile.size(PIECES))
        main = scope_at(nest, values, depths, LEVEL + 1, False)
        at = partial_place(nest, blocks.kept, values, variable("b0"), count, inside)
        for folding, place in zip(foldings, places, strict=True):
            for stmt in folding.fold.add_partial(Elem(place, at, folding.fold.wide)):
                main.add(stmt)
        loops = build_loops(main, LEVEL, [header], "serial")
        outside.extend((*begin.take(0), *begin.take(1)))
        return (*declared, *loops)

    def finish(lane: Lane, totals: list[Expr]) -> Block:
        scope = scope_at(nest, blocks.variables(lane), blocks.depths(LEVEL), LEVEL, False)
        stores = store_results(nest, foldings, scope, LEVEL, totals)
        outside.extend((*scope.take(0), *scope.take(1)))
        return stores

    body = fold_together(nest, foldings, team, blocks.guard, part, finish)
    return (*outside, *body)
