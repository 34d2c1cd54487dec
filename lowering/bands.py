"""Statements that run band by band: two phases, the tiles and then what is between them.

See ``ir.slants`` for why that is right.  In a phase's iteration, a loop over the bands of a tile; in a band,
the loops of one statement after the other, each over those of its rows that are in the band and the tile.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import dims
from ..ir.effects import Reason
from ..ir.nodes import Bands, Dim, Region
from ..ir.slants import Slant, bands_conflict, slants
from .access import NEAR, total
from .job import Job, Open, assembled, evaluated, nest, variable
from .kernel import Affine, Binding, For, Kernel, Let, Phase, Stmt, Term, affine
from .target import Unsupported


def by_bands(stmt: Bands, region: Region) -> tuple[Kernel, Binding]:
    """The kernel of statements that run in bands; see ``schedule``."""
    found = slants(stmt.body, region)
    reason = found if isinstance(found, Reason) else bands_conflict(stmt, region)
    if isinstance(found, Reason) or reason is not None:
        raise Unsupported(str(reason))
    jobs: list[Job] = []
    for part in stmt.body:
        jobs.append(Job(part, region, 1, jobs[0] if jobs else None))
    first, ahead = jobs[0], max(slant.ahead for slant in found)
    sides = max(slant.ahead + slant.behind for slant in found)
    ends = first.largest(*(dims.simplify(s.first + s.count + s.behind) for s in found))
    tiles = first.blocks(ends + ahead, stmt.tile)
    row: Dim = 0
    for job in jobs:
        row = row + job.cost() * total(job.loops.extents[1:])
    tile = first.arguments.integer(stmt.tile, "tile")
    here = affine(-ahead, *(Term(1, term.arg, "c0") for term in tile.terms))  # where tile c0 begins
    phases = [_phase(jobs, found, tiles, stmt.height, tile, here, False)]
    launches = [(tiles, row * stmt.tile)]
    if sides:
        gaps = dims.simplify(tiles - 1)
        phases.append(_phase(jobs, found, gaps, stmt.height, affine(sides), affine(0, here, tile), True))
        launches.append((gaps, row * sides))
    return assembled(jobs, phases, [(extent, dims.simplify(work)) for extent, work in launches])


def _phase(
    jobs: Sequence[Job],
    found: Sequence[Slant],
    count: Dim,
    height: int,
    rows: Affine,
    start: Affine,
    between: bool,
) -> Phase:
    """A loop over tiles, or, ``between`` them, over what they leave, in each of which there are ``rows`` rows
    from ``start`` on."""
    pre: list[Let] = []
    body: list[Stmt] = []
    for job, slant in zip(jobs, found, strict=True):
        own = affine(0, start, _minus(_known(job, slant.first)))  # the row of the statement there
        low = affine(-slant.behind, own, variable("b0"))
        upper, floors = [job.arguments.extent(0), affine(height, low)], [low]
        (upper if between else floors).append(affine(slant.ahead, own))
        opens = [
            Open("i0", affine(), tuple(upper), floors=tuple(floors)),
            *(job.whole(loop) for loop in range(1, len(job.loops.axes))),
        ]
        scope = evaluated(job, "c0", opens, {})
        body += nest(scope, 1, opens, "vector")
        pre += scope.preamble()
    extent = jobs[0].arguments.integer(count, "tiles")
    band = For("b0", affine(), (rows,), height, "serial", tuple(body))
    return Phase("c0", extent, "serial", (band,), tuple(pre))


def _known(job: Job, row: Dim) -> Affine:
    """A row number: a constant if it is small, so that a slice's bounds do not change the text."""
    return affine(row) if type(row) is int and abs(row) <= NEAR else job.arguments.integer(row, "row")


def _minus(value: Affine) -> Affine:
    return affine(-value.const, *(Term(-term.coef, term.arg, term.var) for term in value.terms))
