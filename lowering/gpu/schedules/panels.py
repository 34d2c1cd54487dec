"""The schedule of matrix products with few rows: each thread computes several rows of one result column.

Threads lie along the columns of the right factor and of the result, so that neighbouring threads access
neighbouring elements, and a block loads nothing twice.  All threads use the same rows of the left factor: a
slice of them is in shared memory or, on a processor, in its cache.
"""

from __future__ import annotations

from collections.abc import Sequence

from dcarray.ir.nodes import Apply
from dcarray.ir.nodes import Expr as Value
from dcarray.ir.windows import loads
from dcarray.lowering.kernel.nodes import (
    Affine,
    Declare,
    Elem,
    Expr,
    For,
    If,
    Let,
    Local,
    Op,
    Stack,
    Stmt,
    Store,
    Update,
    affine,
)
from dcarray.lowering.nest.access import scale
from dcarray.lowering.nest.fold import op
from dcarray.lowering.nest.loop_nest import Block, LoopNest, variable

from .blocks import LANE, Limits, Tile, add_blocks, grid_of, guard, scope_at, threads, width_along
from .products import LEVEL, SLICE, SLICE_NAME, Product, Tiled

MAX_ROWS = 24  # rows of a thread: as many sums are in its registers, twice
MAX_HOST_ROWS = 8  # the same on processors, which have fewer registers
DEPTH = 16  # of the slices that are summed on their own
DEEP_NAME = "k1"
DEEP = variable(DEEP_NAME)  # the place in the inner dimension


def is_panel(nest: LoopNest, product: Product, limits: Limits) -> bool:
    """Whether a product has few rows, and threads along its columns access contiguous memory.  On a processor
    the product may have many rows, since copies to shared memory do not pay there."""
    rows, columns = (nest.hints(nest.loops.extents[loop]) for loop in (product.row, product.column))
    if columns < limits.narrow * 2 or rows < 2 or not (limits.vector or rows <= limits.tile // 2):
        return False
    accesses = [nest.arguments.reach(load) for load in loads(product.right)]
    accesses.append(nest.arguments.access(product.compute.target))
    return all(nest.hints(nest.arguments.steps(access)[product.column]) == 1 for access in accesses)


def schedule_panel(nest: LoopNest, product: Product, limits: Limits) -> None:
    """Add to the kernel the phase of a product with few rows."""
    _Panel(nest, product, limits).add()


class _Panel(Tiled):
    """The maker of the phase of a matrix product with few rows."""

    def __init__(self, nest: LoopNest, product: Product, limits: Limits) -> None:
        self.nest, self.product, self.limits = nest, product, limits
        self.begin()
        extents = nest.loops.extents
        rows, columns = (max(1, nest.hints(extents[loop])) for loop in (product.row, product.column))
        most = (MAX_HOST_ROWS if limits.vector else MAX_ROWS) * 8 // max(8, self.dtype.itemsize)
        self.side = -(-rows // -(-rows // most))
        others = -(-rows // self.side)
        for loop in product.batch:
            others *= nest.hints(extents[loop])
        width = width_along(columns, limits)
        while not limits.vector and width > limits.narrow and -(-columns // width) * others < limits.blocks:
            width //= 2
        self.count = width
        self.threads = Tile(width, 1, product.column)
        tiles = [
            nest.block_count(extents[product.row], self.side),
            nest.block_count(extents[product.column], width),
        ]
        self.grid = grid_of(nest, [*(extents[loop] for loop in product.batch), *tiles])
        *batch, down, across = self.grid.coordinates
        self.places = dict(zip(product.batch, batch, strict=True))
        self.first = {product.row: scale(self.side, down), product.column: scale(width, across)}
        self.depth = DEPTH
        self.before: list[Stmt] = []

    def add(self) -> None:
        """Add the phase to the nest's kernel."""
        nest, product = self.nest, self.product
        column = affine(0, self.first[product.column], variable(LANE))
        points = self.side * self.count * nest.loops.extents[product.inner] * nest.cost()
        body = self.whole(column) if self.limits.vector else self.staged(column)
        add_blocks(nest, self.grid, self.count, (*self.outside, *body), (), points)

    # ---- with the left factor in shared memory ------------------------------------------------------
    def staged(self, column: Affine) -> Block:
        """Return a block's statements with slices of the left factor, padded with zeros, in shared memory."""
        product, names, rows, count = self.product, self.nest.names, range(self.side), self.count
        shared, own = names("s"), names("s")
        within = [self.inside(product.column, column)]
        begin = tuple([Store(own, affine(row), self.fold.identity()) for row in rows])
        load = tuple(self.load(shared, product.left, product.row, self.side))
        extent = self.nest.arguments.extent(product.inner)
        bounds = affine(DEPTH, SLICE), extent
        factors = [Elem(shared, _in_slice(self.side, row), self.dtype) for row in rows]
        parts, add = self.slice(column, bounds, factors)
        total = [
            Store(own, affine(row), op(self.fold.name, Elem(own, affine(row), self.fold.dtype), part))
            for row, part in zip(rows, parts, strict=True)
        ]
        work = threads(count, load), threads(count, guard(within, (*add, *total)))
        finish: list[Stmt] = []
        for row in rows:
            place = {product.row: affine(row, self.first[product.row]), product.column: column}
            inside = [self.inside(product.row, place[product.row])]
            finish += guard(inside, self.stored(place, Elem(own, affine(row), self.fold.dtype)))
        return (
            Stack(shared, self.dtype, DEPTH * self.side),
            Stack(own, self.fold.dtype, self.side, True),
            threads(count, begin),
            For(SLICE_NAME, affine(), (extent,), DEPTH, "serial", work),
            threads(count, guard(within, tuple(finish))),
        )

    # ---- with the left factor where it is -----------------------------------------------------------
    def whole(self, column: Affine) -> Block:
        """Return a block's statements without shared memory; complete blocks do not test bounds."""
        product, count = self.product, self.count
        first, extent = self.first[product.row], self.nest.arguments.extent
        rows = [affine(row, first) for row in range(self.side)]
        last = affine(count - 1, self.first[product.column])
        name = self.nest.names("r")
        row = variable(name)
        one = For(
            name, first, (affine(self.side, first), extent(product.row)), 1, "serial",
            self.rows([row], column),
        )  # fmt: skip
        within = [self.inside(product.column, column)]
        tested = threads(count, guard(within, self.rows(rows, column)))
        rest = threads(count, guard(within, (one,)))
        fast = threads(count, self.rows(rows, column))
        return (
            If(
                self.inside(product.row, rows[-1]),
                (If(self.inside(product.column, last), (fast,), (tested,)),),
                (rest,),
            ),
        )

    def rows(self, rows: list[Affine], column: Affine) -> Block:
        """Return the statements with which a thread computes some rows of its column."""
        product, names = self.product, self.nest.names
        sums = [names("a") for _ in rows]
        declared = [Declare(name, self.fold.identity()) for name in sums]
        extent = self.nest.arguments.extent(product.inner)
        factors = [self.value(product.left, {product.row: row, product.inner: DEEP}) for row in rows]
        parts, add = self.slice(column, (affine(DEPTH, SLICE), extent), factors)
        total = [Update(name, self.fold.name, part) for name, part in zip(sums, parts, strict=True)]
        loop = For(SLICE_NAME, affine(), (extent,), DEPTH, "serial", (*add, *total))
        stmts: list[Stmt] = [*declared, loop]
        for row, name in zip(rows, sums, strict=True):
            place = {product.row: row, product.column: column}
            stmts += self.stored(place, Local(name, self.fold.dtype))
        return tuple(stmts)

    # ---- both ---------------------------------------------------------------------------------------
    def slice(
        self, column: Affine, bounds: tuple[Affine, ...], factors: Sequence[Expr]
    ) -> tuple[list[Expr], Block]:
        """Return the partial sums of a slice, one per factor in ``factors``, and the statements that compute
        them; ``bounds`` end the slice."""
        product, names, fold = self.product, self.nest.names, self.fold
        body = product.compute.body
        assert isinstance(body, Apply)
        parts = [names("a") for _ in factors]
        begin = [Declare(name, fold.identity()) for name in parts]
        value = self.value(product.right, {product.column: column, product.inner: DEEP})
        right = Local(names("v"), self.dtype)
        steps: list[Stmt] = [*self.before, Let(right.name, value)]
        self.before = []
        for name, factor in zip(parts, factors, strict=True):
            steps.append(Update(name, fold.name, Op(body.op, (factor, right), fold.dtype)))
        loop = For(DEEP_NAME, SLICE, bounds, 1, "serial", tuple(steps))
        return [Local(name, fold.dtype) for name in parts], (*begin, loop)

    def value(self, factor: Value, place: dict[int, Affine]) -> Expr:
        """Return an element of a factor; the statements that compute it are added to `before`."""
        depths = {**dict.fromkeys(self.places, 1), **dict.fromkeys(place, LEVEL)}
        scope = scope_at(self.nest, {**self.places, **place}, depths, LEVEL, False)
        scope.announce([factor], [self.product.compute.target])
        element = scope.evaluate(factor)
        self.before += scope.take(LEVEL)
        self.outside += [*scope.take(0), *scope.take(1)]
        return element


def _in_slice(side: int, row: int) -> Affine:
    """Return the index in shared memory of row ``row`` of the slice at the current depth."""
    return affine(row, scale(side, DEEP), scale(-side, SLICE))
