"""Products of matrices as systolic arrays: a row of processing elements through which both factors pass.

The result is cut into tiles with one row per processing element and ``columns`` columns, padded with zeros
where the sizes are no multiples of these.  For each tile and each term of the sums, a column of the first
factor is sent through the row of processing elements: each keeps the first element that it gets and passes
the others on.  Then a row of the second factor passes through all of them, and each multiplies every element
of it with the one it has kept.  So a processing element adds to the same accumulator only every ``columns``
cycles, and no addition waits for the previous one.  At the end each passes on the results of those before it
and then sends its own, so that the rows come out in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.ir.nodes import Array, Call, Index, Window
from dcarray.ir.records import record
from dcarray.ir.windows import compose

if TYPE_CHECKING:
    from .nodes import Buffer

#: Columns of a tile, at least: as many cycles as an addition may take.
LEAST_COLUMNS = 16


@record(frozen=True, slots=True)
class Product:
    """A matrix product, or a stack of these, that ``elements`` processing elements compute."""

    call: Call
    number: int
    dtype: np.dtype[Any]
    elements: int

    @property
    def stack(self) -> tuple[int, ...]:
        """The shape of the stack: the axes of the result before the last two."""
        return tuple(self.call.writes[0].shape[:-2])

    @property
    def rows(self) -> int:
        """The number of rows of the result."""
        return int(self.call.writes[0].shape[-2])

    @property
    def width(self) -> int:
        """The number of columns of the result."""
        return int(self.call.writes[0].shape[-1])

    @property
    def terms(self) -> int:
        """The number of products that are summed for an element of the result."""
        return int(self.call.reads[0].shape[-1])

    @property
    def columns(self) -> int:
        """The number of columns of a tile: at least that of processing elements."""
        return max(LEAST_COLUMNS, self.elements)

    @property
    def row_tiles(self) -> int:
        """The number of tiles along the rows of the result."""
        return -(-self.rows // self.elements)

    @property
    def column_tiles(self) -> int:
        """The number of tiles along the columns of the result."""
        return -(-self.width // self.columns)

    @property
    def tiles(self) -> int:
        """The number of tiles of all products of the stack."""
        return prod(self.stack) * self.row_tiles * self.column_tiles

    def factor(self, which: int) -> Window:
        """Return the window of the first (0) or second (1) factor, over the stack's axes and its own two."""
        window = self.call.reads[which]
        rank = len(self.stack)
        ahead = rank - (len(window.shape) - 2)
        amap = [
            Index(0) if count == 1 else Index(0, 1, ahead + axis)
            for axis, count in enumerate(window.shape[:-2])
        ]
        amap += [Index(0, 1, rank), Index(0, 1, rank + 1)]
        return compose(window, tuple(amap), (*self.stack, *window.shape[-2:]))


@record(frozen=True, slots=True)
class Feed:
    """A process that sends the first (``which`` 0) or second (1) factor of a product, tile by tile."""

    name: str
    product: Product
    which: int
    buffer: Buffer
    out: str


@record(frozen=True, slots=True)
class Element:
    """Processing element number ``place`` of the systolic array that computes a matrix product.  It receives
    from the FIFOs ``factors`` and ``before``, passes factors on by ``outs``, and sends results to ``out``."""

    name: str
    product: Product
    place: int
    factors: tuple[str, str]
    before: str | None
    outs: tuple[str, ...]
    out: str

    @property
    def others(self) -> int:
        """The number of processing elements after this one."""
        return self.product.elements - 1 - self.place


@record(frozen=True, slots=True)
class Collect:
    """A process that stores the tiles of a product; first it copies ``base``, if given."""

    name: str
    product: Product
    buffer: Buffer
    source: str
    base: Buffer | None


def can_be_systolic(call: Call, arrays: Mapping[str, Array]) -> bool:
    """Whether a product can be a systolic array: of matrices (or stacks), not boolean or empty."""
    windows = (*call.reads, *call.writes)
    return (
        arrays[call.writes[0].array].dtype.kind != "b"
        and all(len(window.shape) >= 2 for window in windows)
        and all(count > 0 for window in windows for count in window.shape)
    )


#: For each FIFO the first and the last iteration that uses it.
_Uses = dict[str, tuple[int, int]]


def iterations(process: Feed | Element | Collect) -> tuple[int, _Uses, _Uses]:
    """Return the number of iterations of a process, and for each FIFO that it reads, and each that it writes,
    the first and last iteration that uses it."""
    product = process.product
    per_tile = product.terms * product.columns
    match process:
        case Feed(which=0, out=out):
            panel = product.elements * product.terms
            panels = product.tiles // product.column_tiles
            count = panel * (panels + product.tiles)
            return count, {}, {out: (panel, count - 1)}
        case Feed(out=out):
            count = product.tiles * per_tile
            return count, {}, {out: (0, count - 1)}
        case Collect(source=source):
            count = product.tiles * product.elements * product.columns
            return count, {source: (0, count - 1)}, {}
        case Element():
            return _element_iterations(process)


def _element_iterations(element: Element) -> tuple[int, _Uses, _Uses]:
    product = element.product
    per_tile = product.terms * product.columns
    drained = (element.place + 1) * product.columns
    count = product.tiles * (per_tile + drained)
    last = count - 1 - drained
    comes = {element.factors[0]: (0, last - product.columns + 1), element.factors[1]: (0, last)}
    if element.before is not None:
        comes[element.before] = (per_tile, count - 1 - product.columns)
    goes = {element.out: (per_tile, count - 1)}
    if element.outs:
        goes[element.outs[0]] = (1, last - product.columns + 1 + element.others)
        goes[element.outs[1]] = (0, last)
    return count, comes, goes
