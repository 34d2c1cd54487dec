"""The schedule of element-wise statements: a thread for each element."""

from __future__ import annotations

import math
from dataclasses import replace

from dcarray.ir import windows
from dcarray.ir.nodes import Load
from dcarray.lowering.kernel.nodes import For, Let, affine
from dcarray.lowering.nest.loop_nest import Block, LoopNest, evaluate_statements, variable

from .blocks import (
    LANE,
    Lane,
    Limits,
    Spread,
    Tile,
    add_blocks,
    floor_power,
    guard,
    is_below,
    is_mostly_whole,
    lane_of,
    scope_at,
    spread,
    threads,
    width_along,
)

LEVEL = 2  # of the threads of a block


def schedule_elementwise(nest: LoopNest, limits: Limits) -> None:
    """Add the phase that runs the element-wise statements of a nest to the nest's kernel.

    If elements are cheap, blocks that lie completely within the loops' bounds run another body, in which
    threads do not test bounds, since compilers for processors turn such a test into masked accesses.
    """
    tile = tile_of(nest, limits)
    kept = list(range(len(nest.loops.axes)))
    blocks = spread(nest, kept, tile)
    body, pre = _threads(nest, blocks, tested=True)
    if kept and nest.cost() <= limits.cheap and _are_mostly_whole(nest, tile):
        ends = [affine(tile.size(loop) - 1) for loop in (tile.across, tile.down) if loop is not None]
        last = Lane((), ends[0], ends[-1])
        inner, inner_pre = _threads(nest, blocks, tested=False)
        body, pre = blocks.guard(last, inner, body), (*pre, *inner_pre)
    add_blocks(nest, blocks.grid, tile.threads, body, pre, tile.threads * nest.cost())


def _threads(nest: LoopNest, blocks: Spread, tested: bool) -> tuple[Block, tuple[Let, ...]]:
    """Return the body of a block, and the definitions before all blocks; ``tested``: threads test whether
    their indices are within the loops' bounds."""
    tile, lane = blocks.tile, lane_of(blocks.tile, nest.names)
    number = nest.names("k")
    if tile.strip > 1:
        lane = lane.in_strip(tile, variable(number))
    scope = scope_at(nest, blocks.variables(lane), blocks.depths(LEVEL), LEVEL, True)
    scope.announce(nest.values, [compute.target for compute in nest.computes])
    evaluate_statements(nest, scope, None)
    body = scope.take(LEVEL)
    if not blocks.kept:
        body = guard([is_below(variable(LANE), 1)], body)
    elif tested:
        body = blocks.guard(lane, body)
    if tile.strip > 1:
        body = (For(number, affine(), (affine(tile.strip),), 1, "serial", body),)
    return (*scope.take(1), threads(tile.threads, (*lane.before, *body))), scope.preamble()


def _are_mostly_whole(nest: LoopNest, tile: Tile) -> bool:
    """Whether most blocks lie completely within the bounds of the loops."""
    extents = [nest.hints(extent) for extent in nest.loops.extents]
    return all(is_mostly_whole(extent, tile.size(loop)) for loop, extent in enumerate(extents))


def tile_of(nest: LoopNest, limits: Limits) -> Tile:
    """Return the threads of a block of element-wise statements, with strips where there are many blocks."""
    tile = _rectangle(nest, limits)
    if tile.across is None or nest.cost() > limits.cheap:
        return tile
    run = _run(nest, limits)
    if run is not None:
        return run
    if tile.down is None and tile.across > 0:
        tile = replace(tile, down=tile.across - 1)
    extents = [nest.hints(extent) for extent in nest.loops.extents]
    strip = min(limits.strip, floor_power(limits.moved // _widest(nest))) * limits.threads // tile.threads
    while strip > 1:
        whole = replace(tile, strip=strip)
        blocks = math.prod(-(-extent // whole.size(loop)) for loop, extent in enumerate(extents))
        if blocks >= limits.busy and _are_mostly_whole(nest, whole):
            return whole
        strip //= 2
    return tile if tile.height > 1 else replace(tile, down=None)


def _widest(nest: LoopNest) -> int:
    """Return the largest element size in bytes of the arrays that a nest reads or writes."""
    read = [node.dtype for value in nest.values for node in windows.loads(value)]
    written = [nest.memory.arrays[compute.target.array].dtype for compute in nest.computes]
    return max(dtype.itemsize for dtype in (*read, *written))


def _run(nest: LoopNest, limits: Limits) -> Tile | None:
    """Return the tile of a block for one core of a processor, which goes along a row, vector by vector, so
    that accesses are in the order of memory.

    None for other devices, and if too many blocks would be incomplete, since masked accesses take far longer.
    """
    if not limits.vector or _contiguous_elsewhere(nest) is not None:
        return None
    extents = [nest.hints(extent) for extent in nest.loops.extents]
    strip = limits.strip * limits.threads // limits.vector
    while limits.vector * strip > limits.threads:
        run = Tile(limits.vector, 1, len(extents) - 1, None, strip)
        pieces = extents[-1] // (limits.vector * strip)
        if pieces >= limits.pieces and math.prod(extents[:-1]) * pieces >= limits.busy:
            return run
        strip //= 2
    return None


def _rectangle(nest: LoopNest, limits: Limits) -> Tile:
    """Return the threads of a block of element-wise statements as a rectangle."""
    rank, extents = len(nest.loops.axes), [nest.hints(extent) for extent in nest.loops.extents]
    if rank < 2:
        return Tile(limits.threads, 1, rank - 1 if rank else None)
    inner = rank - 1
    turned = _contiguous_elsewhere(nest)
    if turned is not None and min(extents[inner], extents[turned]) >= limits.square:
        width = limits.square
        return Tile(width, limits.threads // width, inner, turned)
    width = width_along(extents[inner], limits)
    # of a rectangle, compilers for processors do not see what is contiguous
    if width >= limits.narrow and (limits.vector or width == limits.threads):
        return Tile(width, 1, inner)
    height = limits.threads // width
    down = inner - 1 if extents[inner - 1] >= height else max(range(inner), key=lambda loop: extents[loop])
    return Tile(width, height, inner, down)


def _contiguous_elsewhere(nest: LoopNest) -> int | None:
    """Return a loop, not the innermost one, along which some access is contiguous; None if there is none."""
    inner = len(nest.loops.axes) - 1
    accesses = [nest.arguments.access(compute.target) for compute in nest.computes]
    for value in nest.values:
        loads = (load for load in windows.loads(value) if isinstance(load, Load))
        accesses += [nest.arguments.access(load.window) for load in loads]
    for access in accesses:
        steps = [abs(nest.hints(step)) for step in nest.arguments.steps(access)]
        if steps[inner] > 1 and 1 in steps[:inner]:
            return steps.index(1)
    return None
