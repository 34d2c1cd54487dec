"""The schedule of element-wise statements whose windows are contiguous along different loops: tiles that are
transposed in the cache.

Both loops are tiled.  A tile of an operand that is not contiguous along the innermost loop is first
transposed into a buffer in the first-level cache, one of a target from a buffer afterwards; a copy needs no
buffer.
"""

from __future__ import annotations

from dataclasses import replace

from dcarray.ir import windows
from dcarray.ir.nodes import Dim, Load, Window
from dcarray.ir.records import record
from dcarray.lowering.kernel.nodes import Affine, DType, For, Let, Phase, Stack, Stmt, TransposeTile, affine
from dcarray.lowering.nest.access import Access, Spot, equal, scale, total
from dcarray.lowering.nest.loop_nest import (
    MIN_PARALLEL,
    Block,
    LoopHeader,
    LoopNest,
    build_loops,
    scope_of_statements,
    variable,
)

# A tile: its iterations along the innermost loop, and its bytes along the other one.  Consecutive cache lines
# are prefetched by the hardware; one line from each of many rows is not, and where rows are a power of two
# bytes apart, such lines evict each other.
WIDE = 128
TALL = 512
NARROW = 8  # the shortest loop that is tiled
TILES = 4  # the most tiles that stay in the cache


@record(frozen=True, slots=True)
class Tiling:
    """The loop ``across``, not the innermost, and the windows that are contiguous along it."""

    across: int
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]


def find_tiling(nest: LoopNest) -> Tiling | None:
    """Return the tiling of a nest, or None if that does not pay."""
    extents, family = nest.loops.extents, nest.memory.family
    if len(extents) < 2 or nest.hints(extents[-1]) < NARROW:
        return None
    every = [load for value in nest.values for load in windows.loads(value)]
    loads = dict.fromkeys(load.window for load in every if isinstance(load, Load))
    targets = [compute.target for compute in nest.computes]
    read = {family(load.window.array) for load in every}
    written = [family(target.array) for target in targets]
    reads = [w for w in loads if family(w.array) not in written]
    writes = [t for t, f in zip(targets, written, strict=True) if f not in read and written.count(f) == 1]

    def contiguous(window: Window, loop: int) -> bool:
        steps = nest.arguments.steps(nest.arguments.access(window))
        return equal(steps[loop], 1) and abs(nest.hints(steps[-1])) > 1

    for loop in range(len(extents) - 1):
        some, others = ([w for w in ws if contiguous(w, loop)] for ws in (reads, writes))
        if 0 < len(some) + len(others) <= TILES and nest.hints(extents[loop]) >= NARROW:
            return Tiling(
                loop, tuple(map(nest.arguments.access, some)), tuple(map(nest.arguments.access, others))
            )
    return None


def schedule_transposed(nest: LoopNest, tiling: Tiling) -> None:
    """Add the phase of tiled element-wise statements."""
    tiles = _Tiles(nest, tiling)
    body = tiles.copy()
    pre: tuple[Let, ...] = ()
    if body is None:
        before, spots, after = tiles.buffers()
        first, second = tiles.pieces()
        headers = [*tiles.headers, replace(first, before=before, after=after), second]
        scope = scope_of_statements(nest, tiles.phase, headers, spots)
        body, pre = build_loops(scope, 1, headers, "vector"), scope.preamble()
    phase = Phase(tiles.phase, tiles.extent, "serial", body, pre)
    nest.add_phase(phase, nest.unless_empty(tiles.launch), tiles.share * nest.cost())


@record(frozen=True, slots=True)
class _Place:
    """A tile of an array or buffer in memory: its first element, and its strides along the loops."""

    buffer: str
    at: Affine
    steps: dict[int, Affine]


class _Tiles:
    """The maker of the loops around and in a tile, and of the copies that transpose it."""

    def __init__(self, nest: LoopNest, tiling: Tiling) -> None:
        self.nest, self.tiling = nest, tiling
        extents, arguments = nest.loops.extents, nest.arguments
        self.across, self.inner = tiling.across, len(extents) - 1
        large = max(access.array.dtype.itemsize for access in (*tiling.reads, *tiling.writes))
        self.size = {self.across: max(2, TALL // large), self.inner: WIDE}
        count = {loop: nest.block_count(extents[loop], size) for loop, size in self.size.items()}
        first, second = sorted(self.size, key=lambda loop: -nest.hints(count[loop]))
        others = [loop for loop in range(self.inner) if loop != self.across]
        longest = max(others, key=lambda loop: nest.hints(extents[loop]), default=None)
        self.begin = {second: variable("b1")}
        strips = [nest.strip_loop(second, "b1", self.size[second])]
        if longest is None or nest.hints(count[first]) >= min(MIN_PARALLEL, nest.hints(extents[longest])):
            self.phase, self.launch = "b0", count[first]
            self.extent = arguments.integer(self.launch, "blocks", first)
            self.begin[first] = variable("b0", self.size[first])
            self.share: Dim = self.size[first] * total(n for k, n in enumerate(extents) if k != first)
        else:
            others.remove(longest)
            self.phase, self.launch = f"i{longest}", extents[longest]
            self.extent = arguments.extent(longest)
            self.begin[first] = variable("b0")
            strips.insert(0, nest.strip_loop(first, "b0", self.size[first]))
            self.share = total(n for k, n in enumerate(extents) if k != longest)
        self.headers = [*map(nest.whole_loop, others), *strips]

    def pieces(self) -> tuple[LoopHeader, LoopHeader]:
        """Return the headers of the two loops over a tile's elements."""
        one, two = (
            self.nest.loop_from(k, self.begin[k], affine(self.size[k])) for k in (self.across, self.inner)
        )
        return one, two

    def place(self, access: Access) -> _Place:
        """Return the current tile of a window."""
        corner = [self.begin.get(loop, var) for loop, var in enumerate(self.nest.variables)]
        steps = {loop: self.nest.arguments.slope(access, loop) for loop in self.size}
        return _Place(*self.nest.arguments.address(access, corner), steps)

    def transposing(self, to: _Place, source: _Place, rows: int, dtype: DType) -> TransposeTile:
        """Return the statement that transposes a tile into ``to``, contiguous along the loop ``rows``."""
        (cols,) = (loop for loop in self.size if loop != rows)
        left = {
            loop: (affine(size), affine(0, self.nest.arguments.extent(loop), scale(-1, self.begin[loop])))
            for loop, size in self.size.items()
        }
        across, along = to.steps[cols], source.steps[rows]
        return TransposeTile(
            to.buffer, to.at, across, source.buffer, source.at, along, left[rows], left[cols], dtype
        )

    def buffers(self) -> tuple[Block, dict[Spot, Spot], Block]:
        """Return the copies to buffers before a tile, the addresses in buffers that replace windows, and the
        copies from buffers after the tile."""
        nest, before, after = self.nest, list[Stmt](), list[Stmt]()
        down, right = (
            affine(0, nest.variables[loop], scale(-1, self.begin[loop])) for loop in (self.across, self.inner)
        )
        at = affine(0, scale(WIDE, down), right)
        spots: dict[Spot, Spot] = {}
        for number, access in enumerate((*self.tiling.reads, *self.tiling.writes)):
            name, dtype = f"x{number}", access.array.dtype
            spots[nest.arguments.address(access, nest.variables)] = name, at
            tile = _Place(name, affine(), {self.across: affine(WIDE), self.inner: affine(1)})
            before.append(Stack(name, dtype, self.size[self.across] * WIDE))
            if number < len(self.tiling.reads):
                before.append(self.transposing(tile, self.place(access), self.inner, dtype))
            else:
                after.append(self.transposing(self.place(access), tile, self.across, dtype))
        return tuple(before), spots, tuple(after)

    def copy(self) -> Block | None:
        """Return the whole body of a statement that only copies elements; None for others."""
        nest, value, target = self.nest, self.nest.values[0], self.nest.computes[0].target
        if len(nest.computes) > 1 or not isinstance(value, Load):
            return None
        source, to = (nest.arguments.access(window) for window in (value.window, target))
        plain, rows = (to, self.inner) if self.tiling.reads else (source, self.across)
        if (self.tiling.reads and self.tiling.writes) or not equal(nest.arguments.steps(plain)[-1], 1):
            return None
        body: Block = (self.transposing(self.place(to), self.place(source), rows, value.dtype),)
        for head in reversed(self.headers):
            body = (For(head.var, head.lower, head.upper, head.step, "serial", body, 0, head.floors),)
        return body
