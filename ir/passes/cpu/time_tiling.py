"""Time tiling: a chain of statements over the same large arrays runs in skewed tiles, band by band.

Each step of a stencil moves whole arrays through memory.  In bands of a few rows, every statement a little
behind the one before it, an array is loaded once for all of them.  See `skew`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from dcarray.ir import windows
from dcarray.ir.analysis.effects import Reason, computes_of, domain
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.analysis.skew import SkewAnalysis
from dcarray.ir.nodes import Compute, Index, Load, Part, Region, Stmt, TimeTiles, Window
from dcarray.ir.passes.base import Log, Pass
from dcarray.ir.passes.flow import Block, each_block, reads_of, writes_of
from dcarray.ir.records import record


@record(frozen=True, slots=True)
class CacheLimits:
    """The sizes of caches, and the limits within which time tiles pay and fit them."""

    last: int = 32 << 20  # bytes of the last cache: what fits into it needs no tiles
    near: int = 2 << 20  # bytes that the bands of one thread may fill, and, where rows are so long that
    far: int = 12 << 20  # only few statements can share those, of the last cache
    again: int = 3  # how often each array has to be used, on average
    parts: int = 16  # statements of one chain at most
    points: int = 64  # shorter rows are not worth a loop of their own
    tiles: int = 16  # so many tiles are made at most, and each is at least
    sides: int = 4  # so many times as high as the rows at its sides
    threads: int = 1  # those that take the tiles: all are to have equally many
    first: int = (
        0  # bytes of the first cache: bands of a few rows stay in it where statements use other arrays
    )
    height: int = 0  # rows of a band; 0: as many as fit


_MAX_ROWS = 1 << 16  # rows of a band
_MIN_BANDS = 4  # the fewest in a tile, so that tiles of whole bands have about equal work
_MIN_ROWS = 2  # the fewest rows of a band in the first cache
_MIN_STATEMENTS = 5  # statements of a chain that move less than half of what they could


# ---- legality -----------------------------------------------------------------------------------------
def with_rows(stmt: Stmt | None) -> tuple[Part, ...] | Reason:
    """Return a statement whose first domain axis is the rows of its target, or why there is none.  A nest
    within a single row becomes several statements."""
    if not isinstance(stmt, Part):
        return Reason("it is not a computation")
    target = writes_of(stmt)[0]
    if not target.index:
        return Reason(f"{target.array} has no rows", (target,))
    axis = target.index[0].axis
    if axis == 0:
        return (stmt,)
    if axis is not None:
        return Reason(f"{target.array} is not written row by row", (target,))
    return tuple(map(_add_row_axis, computes_of(stmt)))


def _add_row_axis(compute: Compute) -> Compute:
    """Return a statement within one row, with that row as the first axis of its domain."""
    shape = (1, *compute.target.shape)
    amap = tuple(Index(0, 1, axis + 1) for axis in range(len(shape) - 1))

    def led(window: Window) -> Window:
        if window.index and window.index[0].axis is None:
            return replace(window, index=(Index(window.index[0].offset, 1, 0), *window.index[1:]))
        return window

    body = windows.map_loads(
        windows.remap(compute.body, amap, shape),
        lambda load: Load(led(load.window), load.dtype) if isinstance(load, Load) else load,
    )
    return replace(compute, target=led(windows.compose(compute.target, amap, shape)), body=body)


# ---- what it is worth ---------------------------------------------------------------------------------
class _Chain:
    """Statements that may run in time tiles; each is one or more parts."""

    def __init__(self, stmts: Sequence[tuple[Part, ...]], block: Block, hints: SizeHints) -> None:
        self.stmts, self.block, self.hints = stmts, block, hints
        self.parts = tuple(part for parts in stmts for part in parts)
        self.loc = self.parts[-1].loc

    def some(self, start: int, count: int) -> _Chain:
        """Return the chain of some of the statements."""
        return _Chain(self.stmts[start : start + count], self.block, self.hints)

    def sides(self) -> tuple[list[int], Reason | None]:
        """Return, for chains of the first one, two, ... statements, the number of rows at the sides of a
        tile, as far as such a chain can be tiled; and why the next statement cannot be added, or None."""
        facts = self.block.facts
        written = {facts.roots[w.array] for part in self.parts for w in writes_of(part)}
        analysis = SkewAnalysis(facts.roots, written, facts.overlap)
        rows: list[int] = []
        for parts in self.stmts:
            for part in parts:
                if (reason := analysis.add(part)) is not None:
                    return rows, reason
            rows.append(max(skew.ahead + skew.behind for skew in analysis.skews))
        return rows, None

    def used(self, part: Part) -> dict[str, int]:
        """Return for each array the number of its bytes that a statement touches."""
        sizes: dict[str, int] = {}
        for window in (*writes_of(part), *(window for window, _ in reads_of(part))):
            array = self.block.facts.arrays[window.array]
            moved = {ix.axis for ix in window.index if ix.axis is not None}
            points = self.hints.product(window.shape[axis] for axis in moved) if window.index else 1
            size = array.dtype.itemsize * min(points, self.hints.product(array.shape))
            sizes[window.array] = max(size, sizes.get(window.array, 0))
        return sizes

    def bytes(self) -> tuple[int, int]:
        """Return the bytes that the statements touch: each array counted once, and counted for each
        statement."""
        once: dict[str, int] = {}
        total = 0
        for part in self.parts:
            for name, size in self.used(part).items():
                once[name] = max(size, once.get(name, 0))
                total += size
        return sum(once.values()), total

    def rows(self) -> int:
        """Return the largest number of rows of a statement."""
        return max(self.hints(domain(part)[0]) for part in self.parts)

    def __str__(self) -> str:
        names = dict.fromkeys(w.array for part in self.parts for w in writes_of(part))
        return f"{len(self.parts)} statements on {', '.join(names)}"


def worth_tiling(chain: _Chain, limits: CacheLimits) -> Reason | None:
    """Return why time tiles for a chain are not profitable; None if they are."""
    once, total = chain.bytes()
    if total < limits.again * once:
        return Reason("they use each array too few times")
    if once <= limits.last:
        return Reason(f"their {once / 1e6:.1f} MB stay in the cache anyhow")
    longest = max((domain(part) for part in chain.parts), key=chain.hints.product)
    if len(longest) > 1 and chain.hints.product(longest[1:]) < limits.points:
        return Reason(f"rows of {chain.hints.product(longest[1:])} points are too short")
    return None


# ---- action -------------------------------------------------------------------------------------------
def _sweep(block: Block, log: Log, hints: SizeHints, limits: CacheLimits) -> bool:
    changed = False
    for start, stmts in _runs(block):
        whole = _Chain(stmts, block, hints)
        once, total = whole.bytes()
        if once <= limits.last:  # then this holds for each part of it
            if len(stmts) > 1 and total >= limits.again * once:
                log.refused(
                    "time_tiling", f"{whole}: {once / 1e6:.1f} MB stay in the cache anyhow", whole.loc
                )
            continue
        at = 0
        while at < len(stmts):
            rest = whole.some(at, len(stmts))
            sides, ended = rest.sides()
            count = max(1, len(sides))
            if count > 1:
                changed |= _divide(rest.some(0, count), sides, start + at, log, limits, ended)
            at += count
    return changed


def _runs(block: Block) -> list[tuple[int, list[tuple[Part, ...]]]]:
    """Return the maximal sequences of statements with rows: their positions and statements."""
    runs: list[tuple[int, list[tuple[Part, ...]]]] = []
    following = False
    for position, stmt in enumerate(block.stmts):
        parts = with_rows(stmt)
        if isinstance(parts, Reason):
            following = False
            continue
        if not following:
            runs.append((position, []))
        runs[-1][1].append(parts)
        following = True
    return runs


def _divide(
    chain: _Chain, sides: Sequence[int], at: int, log: Log, limits: CacheLimits, ended: Reason | None
) -> bool:
    """Split a chain into pieces that fit into the cache, and tile each that is worth it."""
    size, room = _pieces(chain, sides, limits)
    changed = False
    for start in range(0, len(sides), size):
        piece = chain.some(start, size)
        reason = worth_tiling(piece, limits)
        tiles: TimeTiles | Reason = reason if reason is not None else _tile(piece, room, limits)
        if isinstance(tiles, Reason):
            why = f"{tiles.text}; {ended.text}" if ended is not None else tiles.text
            log.refused("time_tiling", f"{piece} do not run in bands: {why}", piece.loc)
            continue
        for position in range(at + start, at + start + len(piece.stmts)):
            chain.block.replace(position, None)
        chain.block.replace(at + start, tiles)
        log.done(
            "time_tiling", f"{piece} run in bands of {tiles.height} rows, {tiles.tile} rows a tile", piece.loc
        )
        changed = True
    return changed


def _pieces(chain: _Chain, sides: Sequence[int], limits: CacheLimits) -> tuple[int, int]:
    """Return the number of statements of a chain in one piece, and the number of their rows that the cache
    holds."""
    row = max(1, chain.bytes()[0] // max(1, chain.rows()))
    for room in (limits.near // row, limits.far // row):
        fitting = (side + max(1, limits.height) <= room for side in sides[: limits.parts])
        most = max(1, len(list(takewhile(bool, fitting))))
        if most >= min(_MIN_STATEMENTS, len(sides)):
            break
    count = -(-len(sides) // most)
    return -(-len(sides) // count), room


def _tile(chain: _Chain, room: int, limits: CacheLimits) -> TimeTiles | Reason:
    """Return the statements of a chain in time tiles, or why not; the cache has room for ``room`` rows."""
    sides, rows = max(chain.sides()[0]), chain.rows()
    height = limits.height or _height(chain, room - sides, limits)
    count = max(1, min(limits.tiles, rows // max(limits.sides * sides, height)))
    if count > limits.threads:
        count -= count % limits.threads
    if count < 2 and not limits.height:
        return Reason(f"{rows} rows are too few")
    firsts = [w.index[0].offset for part in chain.parts for w in writes_of(part)[:1] if w.index]
    total = rows + sides + max((first for first in firsts if type(first) is int), default=0)
    tile = _whole(total, count, height)
    while count > limits.threads and -(-total // tile) != count:  # they got too high
        count -= limits.threads
        tile = _whole(total, count, height)
    return TimeTiles(chain.parts, height, max(tile, -(-sides // height) * height), chain.loc)


def _whole(rows: int, count: int, height: int) -> int:
    """Return the rows of a tile, a multiple of ``height``, when ``rows`` rows are cut into ``count``
    tiles."""
    return -(-rows // (count * height)) * height


def _height(chain: _Chain, room: int, limits: CacheLimits) -> int:
    """Return the number of rows of a band, at most ``room``.  Where statements use different arrays, a band
    must also stay in the first-level cache until the next statement uses the same array."""
    row = max(1, chain.bytes()[0] // max(1, chain.rows()))
    if limits.first >= _MIN_ROWS * row and len({frozenset(chain.used(part)) for part in chain.parts}) > 1:
        room = min(room, limits.first // row)
    room = min(room, chain.rows() // (_MIN_BANDS * max(2, limits.threads)))
    height = 1
    while 2 * height <= min(room, _MAX_ROWS):
        height *= 2
    return height


def _is_part(stmt: Stmt) -> bool:
    return isinstance(stmt, Part)


def time_tiling(limits: CacheLimits) -> Pass:
    """Return the pass for a machine with these caches and threads."""

    def run(region: Region, log: Log) -> Region:
        hints = SizeHints(region)
        return each_block(region, lambda block: _sweep(block, log, hints, limits), _is_part)

    return Pass("time_tiling", run)
