"""The schedule of element-wise statements: a thread for each element."""

from __future__ import annotations

from dcarray.ir import windows
from dcarray.ir.nodes import Load
from dcarray.lowering.nest.loop_nest import LoopNest, evaluate_statements, variable

from .blocks import (
    LANE,
    Limits,
    Tile,
    add_blocks,
    guard,
    is_below,
    lane_of,
    scope_at,
    spread,
    threads,
    width_along,
)

LEVEL = 2  # of the threads of a block


def schedule_elementwise(nest: LoopNest, limits: Limits) -> None:
    """Add the phase of element-wise statements."""
    tile = tile_of(nest, limits)
    kept = list(range(len(nest.loops.axes)))
    blocks = spread(nest, kept, tile)
    lane = lane_of(tile, nest.names)
    scope = scope_at(nest, blocks.variables(lane), blocks.depths(LEVEL), LEVEL, True)
    scope.announce(nest.values, [compute.target for compute in nest.computes])
    evaluate_statements(nest, scope, None)
    body = scope.take(LEVEL)
    inside = guard([is_below(variable(LANE), 1)], body) if not kept else blocks.guard(lane, body)
    before = scope.take(1)
    whole = (*before, threads(tile.threads, (*lane.before, *inside)))
    add_blocks(nest, blocks.grid, tile.threads, whole, scope.preamble(), tile.threads * nest.cost())


def tile_of(nest: LoopNest, limits: Limits) -> Tile:
    """Return the threads of a block of element-wise statements."""
    rank, extents = len(nest.loops.axes), [nest.hints(extent) for extent in nest.loops.extents]
    if rank < 2:
        return Tile(limits.threads, 1, rank - 1 if rank else None)
    inner = rank - 1
    turned = _contiguous_elsewhere(nest)
    if turned is not None and min(extents[inner], extents[turned]) >= limits.square:
        width = limits.square
        return Tile(width, limits.threads // width, inner, turned)
    width = width_along(extents[inner], limits)
    if width == limits.threads:
        return Tile(width, 1, inner)
    height = limits.threads // width
    down = inner - 1 if extents[inner - 1] >= height else max(range(inner), key=lambda loop: extents[loop])
    return Tile(width, height, inner, down)


def _contiguous_elsewhere(nest: LoopNest) -> int | None:
    """Return a loop along which an access is contiguous that is not so along the innermost one."""
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
