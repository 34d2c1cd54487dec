"""The schedule of time-tiled statements: one kernel that is launched for the tiles and then for the gaps
between them.

`skew` has its legality.  Each iteration of the kernel's phase is a tile: a loop over its bands, and in a band
for each statement the loops over its rows in the band and the tile.  Long rows are strip-mined, and all rows
of a band run strip by strip.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dcarray.ir import dims
from dcarray.ir.analysis.effects import Reason, reads
from dcarray.ir.analysis.skew import skews, time_tile_conflict
from dcarray.ir.nodes import Dim, Region, TimeTiles
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.nodes import Affine, Binding, For, Kernel, Let, Phase, Stmt, Term, affine
from dcarray.lowering.nest.access import scale, total
from dcarray.lowering.nest.loop_nest import (
    LoopHeader,
    LoopNest,
    assemble_kernel,
    build_loops,
    scope_of_statements,
    variable,
)

_FAR = 1 << 40  # rows to where no array reaches
NEAREST = 24 << 10  # bytes that a statement finds again in the first cache
_VECTORS = 64  # elements: strips are whole vectors


def schedule_time_tiles(stmt: TimeTiles, region: Region) -> tuple[Kernel, Binding]:
    """Return the kernel of time-tiled statements and its binding, or raise `Unsupported`."""
    all_skews = skews(stmt.body, region)
    reason = all_skews if isinstance(all_skews, Reason) else time_tile_conflict(stmt, region)
    if isinstance(all_skews, Reason) or reason is not None:
        raise Unsupported(str(reason))
    nests: list[LoopNest] = []
    for part in stmt.body:
        nests.append(LoopNest(part, region, 1, nests[0] if nests else None))
    first, ahead = nests[0], max(skew.ahead for skew in all_skews)
    sides = max(skew.ahead + skew.behind for skew in all_skews)
    ends = first.largest(*(dims.simplify(s.first + s.count + s.behind) for s in all_skews))
    tiles = first.block_count(ends + ahead, stmt.tile)
    between: dict[int, Any] = {}  # the integers that the second launch has others of

    def integer(tile: Dim, gap: Dim, what: str) -> Affine:
        name = first.arguments.integer(tile, what)
        between[len(first.arguments.ints) - 1] = gap
        return name

    count = integer(tiles, dims.simplify(tiles - 1), "tiles")
    tile = integer(stmt.tile, stmt.tile, "tile")
    begin = integer(-ahead, stmt.tile - ahead, "begin")
    rows = integer(stmt.tile, sides, "rows")
    low, high = integer(0, -_FAR, "low"), integer(_FAR, 0, "high")
    start = affine(0, begin, *(Term(1, term.arg, "c0") for term in tile.terms))
    pre: list[Let] = []
    body: list[Stmt] = []
    for nest, skew in zip(nests, all_skews, strict=True):
        own = affine(0, start, scale(-1, nest.arguments.number(skew.first)))  # the row of the statement there
        band, side = affine(-skew.behind, own, variable("b0")), affine(skew.ahead, own)
        upper = (nest.arguments.extent(0), affine(stmt.height, band), affine(0, side, high))
        headers = [
            LoopHeader("i0", affine(), upper, floors=(band, affine(0, side, low))),
            *(nest.whole_loop(loop) for loop in range(1, len(nest.loops.axes))),
        ]
        if width := _strip(nest):
            headers[1] = nest.loop_from(1, variable("b1"), affine(width))
            headers.insert(0, nest.strip_loop(1, "b1", width))
        scope = scope_of_statements(nest, "c0", headers, {})
        body += build_loops(scope, 1, headers, "vector")
        pre += scope.preamble()
    bands = For("b0", affine(), (rows,), stmt.height, "serial", tuple(body))
    row = sum(nest.cost() * total(nest.loops.extents[1:]) for nest in nests)
    phase = Phase("c0", count, "serial", (bands,), tuple(pre))
    kernel, binding = assemble_kernel(nests, (phase,), ((tiles, dims.simplify(row * stmt.tile)),))
    if not sides:
        return kernel, binding
    ints = tuple(between.get(number, value) for number, value in enumerate(binding.ints))
    then = replace(
        binding, ints=ints, extents=(dims.simplify(tiles - 1),), work=(dims.simplify(row * sides),)
    )
    return kernel, replace(binding, then=then)


def _strip(nest: LoopNest) -> int:
    """Return the width of strips of the first loop within rows for which elements that several rows of a band
    read stay in the first-level cache; 0 for whole rows."""
    if len(nest.loops.axes) < 2:
        return 0
    lines = {
        (window.array, window.index[0].offset): nest.memory.arrays[window.array].dtype.itemsize
        for compute in nest.computes
        for window in (*reads(compute), compute.target)
        if window.index
    }
    width = NEAREST // max(1, sum(lines.values()) * nest.hints.product(nest.loops.extents[2:]))
    width -= width % _VECTORS if width > _VECTORS else 0
    return width if 2 * nest.hints(nest.loops.extents[1]) > 3 * width else 0
