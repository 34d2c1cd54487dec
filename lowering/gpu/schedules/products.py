"""The schedule of matrix products: tiles of both factors in shared memory, a tile of the result in registers.

A block computes a square tile of the result.  For each slice of the inner dimension its threads load a tile
of each factor, zeros beyond the ends, and each adds up the products for its own elements of the result.  The
sums of slices are added one after the other, so that errors grow with the number of slices.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcarray.ir.nodes import Apply, Compute, Load
from dcarray.ir.nodes import Expr as Value
from dcarray.ir.records import record
from dcarray.ir.windows import loads
from dcarray.lowering.kernel.nodes import (
    Affine,
    Declare,
    Elem,
    Expr,
    For,
    If,
    Index,
    Let,
    Local,
    Op,
    Stack,
    Stmt,
    Store,
    Update,
    affine,
)
from dcarray.lowering.nest.access import equal, scale
from dcarray.lowering.nest.body import all_of, literal
from dcarray.lowering.nest.fold import Fold, op
from dcarray.lowering.nest.loop_nest import Block, LoopNest, variable

from .blocks import (
    BOOL,
    Grid,
    Limits,
    Tile,
    add_blocks,
    ceil_power,
    grid_of,
    guard,
    is_below,
    lane_of,
    scope_at,
    threads,
)

LEVEL = 2  # of the threads of a block
SLICE_NAME = "k0"
SLICE = variable(SLICE_NAME)  # where a slice of the inner dimension begins


@record(frozen=True, slots=True)
class Product:
    """A sum of products of two factors, and the loops over rows, columns and the inner dimension."""

    compute: Compute
    left: Value
    right: Value
    row: int
    column: int
    inner: int
    batch: tuple[int, ...]


def product_of(nest: LoopNest) -> Product | None:
    """Return a nest's statement as a matrix product; None if the nest is not a product of two matrices."""
    if len(nest.computes) > 1 or len(nest.loops.folded) != 1:
        return None
    (compute,), (inner,) = nest.computes, nest.loops.folded
    body = compute.body
    names = (compute.combine, body.op) if isinstance(body, Apply) else ()
    if names not in (("add", "multiply"), ("logical_or", "logical_and")) or body.dtype.char == "e":
        return None
    assert isinstance(body, Apply)
    left, right = body.args
    moves = _moving(nest, left), _moving(nest, right)
    if moves[0] is None or moves[1] is None or inner not in moves[0] & moves[1]:
        return None
    rest = [loop for loop in range(len(nest.loops.axes)) if loop != inner]
    sizes = [nest.hints(extent) for extent in nest.loops.extents]
    rows = [loop for loop in rest if loop in moves[0] - moves[1]]
    columns = [loop for loop in rest if loop in moves[1] - moves[0]]
    if not rows or not columns:
        return None
    row, column = (max(loops, key=lambda loop: sizes[loop]) for loops in (rows, columns))
    if column < row and rest[-1] in rows:  # threads go along the innermost loop
        left, right, row, column = right, left, column, row
    batch = tuple(loop for loop in rest if loop not in (row, column))
    return Product(compute, left, right, row, column, inner, batch)


def _moving(nest: LoopNest, factor: Value) -> set[int] | None:
    """Return the loops along which a factor's address changes; None if the factor is not a plain load."""
    loops: set[int] = set()
    some = list(loads(factor))
    if not some or not _is_plain(factor):
        return None
    for load in some:
        steps = nest.arguments.steps(nest.arguments.reach(load))
        loops |= {loop for loop, step in enumerate(steps) if not equal(step, 0)}
    return loops


def _is_plain(factor: Value) -> bool:
    """Whether a factor is a load, perhaps cast to another dtype or conjugated."""
    return isinstance(factor, Load) or (
        isinstance(factor, Apply) and factor.op in ("cast", "conjugate") and _is_plain(factor.args[0])
    )


def has_tiles(nest: LoopNest, product: Product, limits: Limits) -> bool:
    """Whether the rows, columns and inner dimension of a product are long enough for tiles."""
    loops = product.row, product.column, product.inner
    return min(nest.hints(nest.loops.extents[loop]) for loop in loops) >= max(2, limits.tile // 4)


def schedule_product(nest: LoopNest, product: Product, limits: Limits) -> None:
    """Add the phase of a matrix product to the nest's kernel."""
    Tiled(nest, product, limits).add()


class Tiled:
    """The maker of the phase of a matrix product in tiles."""

    def __init__(self, nest: LoopNest, product: Product, limits: Limits) -> None:
        self.nest, self.product, self.count = nest, product, limits.threads
        self.begin()
        width = limits.square
        wide = product.left.dtype.itemsize > 8
        self.side = max(limits.tile // 2 if wide else limits.tile, limits.threads // width)
        self.depth = max(2, self.side // 4)
        self.threads = Tile(width, limits.threads // width, product.column, product.row)
        extents = nest.loops.extents
        tiles = [nest.block_count(extents[loop], self.side) for loop in (product.row, product.column)]
        self.grid: Grid = grid_of(nest, [*(extents[loop] for loop in product.batch), *tiles])
        *batch, down, across = self.grid.coordinates
        self.places = dict(zip(product.batch, batch, strict=True))
        self.first = {product.row: scale(self.side, down), product.column: scale(self.side, across)}

    def begin(self) -> None:
        """Set the attributes that `Tiled` and its subclasses have in common."""
        compute, nest = self.product.compute, self.nest
        assert compute.combine is not None
        self.dtype = self.product.left.dtype
        self.fold = Fold(compute.combine, nest.memory.arrays[compute.target.array].dtype, nest.names)
        if self.fold.mode == "ordered":
            self.fold.mode = "exact"
        self.outside: list[Stmt] = []

    def add(self) -> None:
        """Add the phase to the nest's kernel."""
        nest, product, count = self.nest, self.product, self.count
        lead = self.side + 1  # so that a column of a tile lies in several banks
        tiles = [nest.names("s"), nest.names("s")]
        own = nest.names("s")
        size = -(-self.side // self.threads.height) * -(-self.side // self.threads.width)
        begin = tuple(Store(own, affine(k), self.fold.identity()) for k in range(size))
        load: list[Stmt] = []
        for name, factor, loop in (
            (tiles[0], product.left, product.row),
            (tiles[1], product.right, product.column),
        ):
            load += self.load(name, factor, loop, lead)
        extent = nest.arguments.extent(product.inner)
        work = (threads(count, tuple(load)), threads(count, tuple(self.multiply(tiles, own, lead))))
        stacks: list[Stmt] = [Stack(name, self.dtype, self.depth * lead) for name in tiles]
        body = (
            *stacks,
            Stack(own, self.fold.dtype, size, True),
            threads(count, begin),
            For(SLICE_NAME, affine(), (extent,), self.depth, "serial", work),
            threads(count, tuple(self.store(own))),
        )
        points = self.side * self.side * nest.loops.extents[product.inner] * nest.cost()
        add_blocks(nest, self.grid, count, (*self.outside, *body), (), points)

    def load(self, name: str, factor: Value, loop: int, lead: int) -> Iterator[Stmt]:
        """Yield the statements that load a tile of a factor to shared memory."""
        nest, inner = self.nest, self.product.inner
        steps = nest.arguments.steps(nest.arguments.reach(next(iter(loads(factor)))))
        along = abs(nest.hints(steps[inner])) <= abs(nest.hints(steps[loop]))
        width = min(ceil_power(self.depth if along else self.side), self.count)
        tile = Tile(width, self.count // width, None)
        lane = lane_of(tile, nest.names)
        yield from lane.before
        columns, rows = (self.depth, self.side) if along else (self.side, self.depth)
        for right in range(0, columns, tile.width):
            for down in range(0, rows, tile.height):
                column, row = affine(right, lane.column), affine(down, lane.row)
                depth, other = (column, row) if along else (row, column)
                stmts = self.element(name, factor, loop, depth, other, lead)
                fits = columns % tile.width == 0 and rows % tile.height == 0
                yield from stmts if fits else guard([is_below(column, columns), is_below(row, rows)], stmts)

    def element(self, name: str, factor: Value, loop: int, depth: Affine, other: Affine, lead: int) -> Block:
        """Return the statements that store one element of a factor in the tile ``name``; beyond the factor's
        end they store zero.  ``depth`` and ``other`` are the element's place along the inner loop and along
        ``loop``; a row of the tile has ``lead`` elements."""
        nest, inner = self.nest, self.product.inner
        place = {loop: affine(0, self.first[loop], other), inner: affine(0, SLICE, depth)}
        depths = {**dict.fromkeys(self.places, 1), loop: LEVEL, inner: LEVEL}
        scope = scope_at(nest, {**self.places, **place}, depths, LEVEL, False)
        scope.announce([factor], [self.product.compute.target])
        value = scope.evaluate(factor)
        at = _at(lead, depth, other)
        inside = all_of(self.inside(k, where) for k, where in place.items())
        stored = (*scope.take(LEVEL), Store(name, at, value))
        self.outside += [*scope.take(0), *scope.take(1)]
        return (If(inside, stored, (Store(name, at, literal(0, self.dtype)),)),)

    def inside(self, loop: int, where: Affine) -> Expr:
        """Return the condition that ``where`` is less than the number of iterations of a loop."""
        return Op("less", (Index(where), Index(self.nest.arguments.extent(loop))), BOOL)

    def elements(self) -> Iterator[tuple[int, int, int]]:
        """Yield the elements that a thread computes: number, and row and column relative to its first one."""
        number = 0
        for down in range(0, self.side, self.threads.height):
            for across in range(0, self.side, self.threads.width):
                yield number, down, across
                number += 1

    def multiply(self, tiles: list[str], own: str, lead: int) -> Iterator[Stmt]:
        """Yield the statements that add the products of a slice to the sums of all elements of a thread."""
        nest, dtype = self.nest, self.fold.dtype
        lane = lane_of(self.threads, nest.names)
        yield from lane.before
        partial = {number: nest.names("a") for number, _, _ in self.elements()}
        zero = self.fold.identity()
        yield from (Declare(name, zero) for name in partial.values())
        depth = variable("k1")
        values: dict[tuple[int, int], Local] = {}
        body: list[Stmt] = []
        for side, (size, step, at) in enumerate(
            ((self.side, self.threads.height, lane.row), (self.side, self.threads.width, lane.column))
        ):
            for place in range(0, size, step):
                local = values[side, place] = Local(nest.names("v"), self.dtype)
                body.append(
                    Let(local.name, Elem(tiles[side], _at(lead, depth, affine(place, at)), self.dtype))
                )
        product = self.product.compute.body
        assert isinstance(product, Apply)
        for number, down, across in self.elements():
            value = Op(product.op, (values[0, down], values[1, across]), dtype)
            body.append(Update(partial[number], self.fold.name, value))
        yield For("k1", affine(), (affine(self.depth),), 1, "serial", tuple(body))
        for number, name in partial.items():
            at = affine(number)
            yield Store(own, at, op(self.fold.name, Elem(own, at, dtype), Local(name, dtype)))

    def store(self, own: str) -> Iterator[Stmt]:
        """Yield the statements that store the elements of a thread."""
        product = self.product
        lane = lane_of(self.threads, self.nest.names)
        yield from lane.before
        for number, down, across in self.elements():
            place = {
                product.row: affine(down, self.first[product.row], lane.row),
                product.column: affine(across, self.first[product.column], lane.column),
            }
            inside = [self.inside(loop, where) for loop, where in place.items()]
            value = Elem(own, affine(number), self.fold.dtype)
            yield from guard(inside, self.stored(place, value))

    def stored(self, place: dict[int, Affine], total: Expr) -> Block:
        """Return the statements that store an element of the result, given its sum ``total``."""
        nest, compute = self.nest, self.product.compute
        depths = {**dict.fromkeys(self.places, 1), **dict.fromkeys(place, LEVEL)}
        scope = scope_at(nest, {**self.places, **place}, depths, LEVEL, False)
        start = nest.start(compute)
        scope.announce([start], [compute.target])
        begin = scope.evaluate(start)
        value = self.fold.combine(begin, total)
        if self.fold.idempotent:
            value = op(self.fold.name, begin, value)
        scope.store(compute.target, value, False)
        self.outside += [*scope.take(0), *scope.take(1)]
        return scope.take(LEVEL)


def _at(lead: int, row: Affine, column: Affine) -> Affine:
    """Return the index of an element in a tile with ``lead`` elements per row."""
    return affine(0, scale(lead, row), column)
