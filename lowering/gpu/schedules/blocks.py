"""Loop nests on blocks of threads: the threads of a block form a rectangle, the blocks are numbered.

The threads of a block lie along the innermost loop, so that neighbouring threads access neighbouring
elements; where that loop is short, they are a rectangle over it and another one.  Blocks are numbered along
all loops that are distributed; each block computes its coordinates from its number, once for all threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Protocol

import numpy as np

from dcarray.ir.nodes import Dim
from dcarray.ir.records import record
from dcarray.lowering.kernel import nodes as k
from dcarray.lowering.nest.access import scale, total
from dcarray.lowering.nest.body import Names, Scope, all_of, literal
from dcarray.lowering.nest.loop_nest import Block, LoopNest, variable

BLOCK, LANE = "block", "lane"  # the number of a block, and of a thread in it
INT, BOOL = np.dtype(np.int64), np.dtype(np.bool_)


@record(frozen=True, slots=True)
class Limits:
    """The constants of device schedules, and the reason for each.

    `docs/decisions.md` has the figures for those that were measured; ``python -m benchmarks npbench_device``
    measures the effect of a change.

    Attributes
    ----------
    threads : int
        Threads in a block, a power of two: eight warps of 32, of which a multiprocessor holds several blocks.
    narrow : int
        The least number of threads that access neighbouring elements in one transaction: a warp.
    blocks : int
        The least number of blocks that occupy a device: about two per multiprocessor of the largest devices.
    busy : int
        The least number of blocks if each thread computes a strip of elements: four times ``blocks``, so that
        the last blocks do not leave most of the device idle.
    serial : int
        The number of elements that a thread adds up before their sum is added with compensation; this takes
        four additions, an eighth of the work.
    least : int
        Like ``serial``, if the device would otherwise be partly idle: compensation is up to half of the work.
    short : int
        The length of rows that one thread folds: a cache line of 128 bytes of doubles.
    tile : int
        Rows and columns of a tile of a matrix product: each of 16 by 16 threads has 4 by 4 results in
        registers, and two slices of 16 in depth take 17 of the 32 kB of memory that a block shares.
    cheap : int
        The work per element, in additions, up to which a test of bounds costs noticeable time (measured).
    strip : int
        The most elements that a thread computes one after the other, if there are enough of them, so that a
        block is worth its start (measured).
    moved : int
        The most bytes per array that a thread accesses in a strip: those of the widest load instruction.
    vector : int
        For processors, the number of elements that a core computes together; 0 for devices of parallel
        threads.
    pieces : int
        For processors, the least number of blocks in a row: with fewer, too many blocks have masked accesses.
    """

    threads: int = 256
    narrow: int = 32
    blocks: int = 256
    busy: int = 1024
    serial: int = 32
    least: int = 8
    short: int = 16
    tile: int = 64
    cheap: int = 128
    strip: int = 8
    moved: int = 16
    vector: int = 0
    pieces: int = 16

    @property
    def square(self) -> int:
        """The number of threads along each side of a square block."""
        return floor_power(isqrt(self.threads))


LIMITS = Limits()
PROCESSOR = Limits(least=32, cheap=32, moved=1 << 10, busy=64, vector=16)
"""For processors, whose cores do the threads of a block in turns, some at once by vector instructions: sums
are whole, a test of a place keeps a loop from being vectors, a thread's strip is in its cache, and there are
fewer cores."""


@record(frozen=True, slots=True)
class Tile:
    """The threads of a block as a rectangle: ``width`` along loop ``across``, ``height`` along ``down``.

    A block has ``strip`` such rectangles, which its threads do one after the other: along ``down``, or else
    along ``across``.
    """

    width: int
    height: int
    across: int | None
    down: int | None = None
    strip: int = 1

    @property
    def threads(self) -> int:
        """The number of threads of a block."""
        return self.width * self.height

    def size(self, loop: int) -> int:
        """Return the number of iterations of a loop that a block runs."""
        size = self.width if loop == self.across else self.height if loop == self.down else 1
        return size * self.strip if loop == (self.across if self.down is None else self.down) else size


@record(frozen=True, slots=True)
class Lane:
    """The column and row of a thread in its block, as expressions, and the statements that compute them."""

    before: Block
    column: k.Affine
    row: k.Affine

    def in_strip(self, tile: Tile, number: k.Affine) -> Lane:
        """Return the thread's column and row in rectangle ``number`` of a strip."""
        if tile.down is None:
            return Lane(self.before, k.affine(0, self.column, scale(tile.width, number)), self.row)
        return Lane(self.before, self.column, k.affine(0, self.row, scale(tile.height, number)))


def lane_of(tile: Tile, names: Names) -> Lane:
    """Return the column and row of a thread in a tile."""
    lane = variable(LANE)
    if tile.height == 1:
        return Lane((), lane, k.affine())
    if tile.width == 1:
        return Lane((), k.affine(), lane)
    column, row = names("x"), names("y")
    before = (
        k.Let(column, k.Op("bitwise_and", (k.Index(lane), literal(tile.width - 1, INT)), INT)),
        k.Let(row, k.Op("right_shift", (k.Index(lane), literal(tile.width.bit_length() - 1, INT)), INT)),
    )
    return Lane(before, variable(column), variable(row))


@record(frozen=True, slots=True)
class Grid:
    """The blocks of a phase: their number, and a block's coordinates with the statements that compute
    them."""

    before: Block
    coordinates: tuple[k.Affine, ...]
    count: Dim
    extent: k.Affine


def grid_of(nest: LoopNest, counts: Sequence[Dim]) -> Grid:
    """Return the grid of blocks with ``counts`` blocks along each coordinate, the last one fastest."""
    arguments = nest.arguments
    before: list[k.Stmt] = []
    places: list[k.Affine] = []
    rest = variable(BLOCK)
    for number, count in reversed(list(enumerate(counts))):
        if number == 0:
            places.append(rest)
            break
        if type(count) is int and count == 1:
            places.append(k.affine())
            continue
        extent = arguments.integer(count, "blocks", number)
        quotient, remainder = nest.names("q"), nest.names("r")
        before.append(k.Let(quotient, k.Op("floor_divide", (k.Index(rest), k.Index(extent)), INT)))
        taken = (k.Term(-t.coef, t.arg, quotient) for t in extent.terms)
        before.append(k.Let(remainder, k.Index(k.affine(-extent.const, rest, *taken))))
        places.append(variable(remainder))
        rest = variable(quotient)
    whole = total(counts)
    return Grid(tuple(before), tuple(reversed(places)), whole, arguments.integer(whole, "grid"))


class KeptLoops(Protocol):
    """The *kept* loops of a nest, which are not reduced, and which of their iterations each thread has."""

    @property
    def kept(self) -> Sequence[int]:
        """The numbers of the loops."""

    @property
    def tile(self) -> Tile:
        """The threads of a block, as a rectangle."""

    @property
    def piece(self) -> k.Affine:
        """The number of the piece of the reduced loops that this block has."""

    def variables(self, lane: Lane) -> dict[int, k.Affine]:
        """Return the value of each kept loop's variable for a thread of the block."""

    def depths(self, level: int) -> dict[int, int]:
        """Return the level that opens each kept loop: that of the block, or of threads (``level``)."""

    def guard(self, lane: Lane, body: Block) -> Block:
        """Return the statements ``body`` under the condition that the thread's indices are in bounds."""


@dataclass(slots=True)
class Spread:
    """Kept loops (`KeptLoops`) distributed over blocks and threads: a block has a tile of them."""

    nest: LoopNest
    kept: Sequence[int]
    tile: Tile
    grid: Grid
    piece: k.Affine

    def variables(self, lane: Lane) -> dict[int, k.Affine]:
        """Return the value of each kept loop's variable for a thread of the block."""
        values = {}
        for loop, place in zip(self.kept, self.grid.coordinates, strict=False):
            size, at = self.tile.size(loop), k.affine()
            if loop == self.tile.across:
                at = lane.column
            elif loop == self.tile.down:
                at = lane.row
            values[loop] = k.affine(0, scale(size, place), at)
        return values

    def depths(self, level: int) -> dict[int, int]:
        """Return the level that opens each kept loop: that of the block, or of threads (``level``)."""
        return {loop: level if self.in_tile(loop) else 1 for loop in self.kept}

    def in_tile(self, loop: int) -> bool:
        """Whether a loop's iterations are those of threads."""
        return loop in (self.tile.across, self.tile.down)

    def guard(self, lane: Lane, body: Block, otherwise: Block = ()) -> Block:
        """Return ``body`` for threads whose indices are in bounds, and ``otherwise`` for the others."""
        values = self.variables(lane)
        inside = [
            k.Op("less", (k.Index(values[loop]), k.Index(self.nest.arguments.extent(loop))), BOOL)
            for loop in self.kept
            if self.in_tile(loop)
        ]
        return guard(inside, body, otherwise)


def spread(nest: LoopNest, kept: Sequence[int], tile: Tile, pieces: Dim | None = None) -> Spread:
    """Return the kept loops distributed over blocks with a tile each; ``pieces`` is the number of pieces of
    the reduced loops, each of which has its own blocks."""
    counts = [
        nest.loops.extents[loop] if (size := tile.size(loop)) == 1
        else nest.block_count(nest.loops.extents[loop], size)
        for loop in kept
    ]  # fmt: skip
    grid = grid_of(nest, [*counts, *([] if pieces is None else [pieces])])
    return Spread(nest, kept, tile, grid, k.affine() if pieces is None else grid.coordinates[-1])


def guard(conditions: Iterable[k.Expr], body: Block, otherwise: Block = ()) -> Block:
    """Return the statement that runs ``body`` if all conditions hold, and ``otherwise`` if not."""
    conditions = list(conditions)
    if not conditions or not body:
        return body
    return (k.If(all_of(conditions), body, otherwise),)


def is_below(value: k.Affine, limit: int) -> k.Expr:
    """Return the condition that a number is below a limit."""
    return k.Op("less", (k.Index(value), literal(limit, INT)), BOOL)


def threads(count: int, body: Block) -> k.Threads:
    """Return the statement in which ``count`` threads of a block each run ``body``."""
    return k.Threads(LANE, count, body)


def scope_at(
    nest: LoopNest, values: Mapping[int, k.Affine], depths: Mapping[int, int], level: int, hoist: bool
) -> Scope:
    """Return the scope of statements at depth ``level`` of the kernel's loops; ``values`` has the loops whose
    index is not the variable ``iK``, ``depths`` the level at which each loop is opened."""
    scope = nest.scope([depths.get(loop, 0) for loop in range(len(nest.loops.axes))], level, hoist)
    scope.variables = [values.get(loop, own) for loop, own in enumerate(nest.variables)]
    return scope


def add_blocks(
    nest: LoopNest, grid: Grid, count: int, body: Block, pre: tuple[k.Let, ...], work: Dim
) -> None:
    """Add a phase to the kernel with the blocks of ``grid``, of ``count`` threads and ``work`` each."""
    phase = k.Phase(BLOCK, grid.extent, "blocks", (*grid.before, *body), pre, count)
    nest.add_phase(phase, grid.count, work)


def floor_power(number: int) -> int:
    """Return the largest power of two that is at most ``number``, and at least 1."""
    return 1 << (max(1, number).bit_length() - 1)


def ceil_power(number: int) -> int:
    """Return the least power of two that is at least ``number``."""
    return 1 << max(0, number - 1).bit_length()


def width_along(extent: int, limits: Limits) -> int:
    """Return the largest number of threads along a loop of ``extent`` iterations with which few threads are
    idle, and few blocks have idle threads."""
    width = limits.threads
    while width > limits.narrow and not (is_filled(extent, width) and is_mostly_whole(extent, width)):
        width //= 2
    return min(width, max(1, ceil_power(extent)))


def is_filled(extent: int, size: int) -> bool:
    """Whether blocks of ``size`` iterations exceed a loop of ``extent`` iterations by a quarter at most."""
    return -(-extent // size) * size * 4 <= extent * 5


def is_mostly_whole(extent: int, size: int) -> bool:
    """Whether at least three quarters of the blocks of ``size`` iterations have all their iterations."""
    return 4 * (extent // size) >= 3 * -(-extent // size)
