"""Products of matrices as systolic arrays: a row of processing elements through which both factors pass.

The result is cut into tiles of a row for each processing element and of ``columns`` columns; where the sizes
are no multiples of these, zeros are multiplied and what comes of them is dropped.  For each tile and each
term of the sums, the first factor's elements of the tile's column go down the row of processing elements,
each of which takes the first that it gets and hands on the others.  The second factor's elements of the
tile's row go by, each of which is multiplied with the element that was taken.  So a processing element adds
to the same accumulator only every ``columns`` cycles: no addition waits for the one before it.  In the end
each hands on the results of those before it and then its own: rows come out in their order.
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
    """``c = a @ b`` by so many processing elements; axes before the last two are those of a stack."""

    call: Call
    number: int
    dtype: np.dtype[Any]
    elements: int

    @property
    def stack(self) -> tuple[int, ...]:
        """The shape of a stack of products."""
        return tuple(self.call.writes[0].shape[:-2])

    @property
    def rows(self) -> int:
        """Rows of the result."""
        return int(self.call.writes[0].shape[-2])

    @property
    def width(self) -> int:
        """Columns of the result."""
        return int(self.call.writes[0].shape[-1])

    @property
    def terms(self) -> int:
        """Products that are added up for an element."""
        return int(self.call.reads[0].shape[-1])

    @property
    def columns(self) -> int:
        """Columns of a tile; not less than the processing elements, as their elements go by meanwhile."""
        return max(LEAST_COLUMNS, self.elements)

    @property
    def row_tiles(self) -> int:
        """Tiles below each other."""
        return -(-self.rows // self.elements)

    @property
    def column_tiles(self) -> int:
        """Tiles beside each other."""
        return -(-self.width // self.columns)

    @property
    def tiles(self) -> int:
        """All tiles."""
        return prod(self.stack) * self.row_tiles * self.column_tiles

    def factor(self, which: int) -> Window:
        """The first factor (0) or the second one (1), over the stack's axes and its own two."""
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
    """Sends the first factor (``which`` 0) or the second one of a product, tile by tile."""

    name: str
    product: Product
    which: int
    buffer: Buffer
    out: str


@record(frozen=True, slots=True)
class Element:
    """Processing element number ``place`` of a product; ``outs`` are of the factors, none of the last one."""

    name: str
    product: Product
    place: int
    factors: tuple[str, str]
    before: str | None
    outs: tuple[str, ...]
    out: str

    @property
    def others(self) -> int:
        """How many processing elements are behind it."""
        return self.product.elements - 1 - self.place


@record(frozen=True, slots=True)
class Collect:
    """Stores the tiles of a product, after it has copied ``base`` if that is given."""

    name: str
    product: Product
    buffer: Buffer
    source: str
    base: Buffer | None


def can_be_systolic(call: Call, arrays: Mapping[str, Array]) -> bool:
    """Whether a product is of matrices or stacks of them, of numbers, with at least one term."""
    windows = (*call.reads, *call.writes)
    return (
        arrays[call.writes[0].array].dtype.kind != "b"
        and all(len(window.shape) >= 2 for window in windows)
        and all(count > 0 for window in windows for count in window.shape)
    )
