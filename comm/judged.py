"""What ways to deal out a product cost the ranks by whom they are judged, worked out axis by axis.

How much a rank needs of an axis, and has of that, is the same in all ways that deal the axis out alike.  What
travels of an array is a product of such numbers, so that many ways are weighed without a layout of any.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from .axes import Axis, BlockAxis
from .grid import ProcessGrid
from .layout import Layout, Spec, Whole, part_of
from .meet import met
from .portions import some
from .product import Product

__all__ = ["FLOPS_PER_BYTE", "Judges"]

# What a rank computes while it would receive one byte.  It decides where fewer bytes would mean more work: a
# product of copies made by every rank against one made in parts and sent round.
FLOPS_PER_BYTE = 8

_WHOLE = Whole()


class Share(NamedTuple):
    """How much a rank needs of an axis, and of that has in the factors and is to have in the result."""

    needs: int
    of_a: int
    of_b: int
    of_out: int


class Judges:
    """A few ranks that tell what a product costs them.

    Parameters
    ----------
    product : Product
    a, b : Layout
        Of the factors as they are, bare.
    out : Layout or None
        Where the result is wanted, bare; None: wherever it is made.
    itemsizes : tuple of int
        Bytes of an element of the factors and of the result.
    """

    def __init__(
        self, product: Product, a: Layout, b: Layout, out: Layout | None, itemsizes: tuple[int, int, int]
    ) -> None:
        self.product, self.itemsizes, self.out = product, itemsizes, out
        # Ranks in the middle mostly receive most: the others are asked only about what is cheap for these.
        size = a.grid.size
        self.ranks = sorted(some(size), key=lambda rank: abs(2 * rank - size))
        self._arrays = [(product.a, a), (product.b, b), (product.out, out)]
        self._had: dict[int, tuple[dict[str, _Part], ...]] = {}
        # For each grid and rank by the product's axis: where it is whole; with an axis of the grid where it
        # is dealt out over that; and, the other way round, where a sum is.
        self._shares: dict[ProcessGrid, dict[int, dict[Any, Share]]] = {}

    def cost(
        self,
        grid: ProcessGrid,
        cut: Mapping[str, Spec],
        summed: Layout | Mapping[str, Spec] | None,
        most: float = math.inf,
    ) -> float:
        """What the rank with most to receive and to compute receives, and its work, in bytes.

        Parameters
        ----------
        grid : ProcessGrid
        cut : mapping of str to Spec
            How axes of the product are dealt out over it; the others are whole.
        summed : Layout, mapping of str to Spec, or None
            Where parts of the result are added up, if there are any: where it is wanted, as it is made but
            for some axes that are then cut like this, or on every rank that has parts.
        most : float
            Of what costs so much or more it is only said that it does.
        """
        found, shares = 0.0, self._shares.setdefault(grid, {})
        for rank in self.ranks:
            if rank not in shares:
                shares[rank] = {}
            found = max(found, self._of(rank, shares[rank], grid, cut, summed))
            if found >= most:
                break
        return found

    def _of(
        self,
        rank: int,
        known: dict[Any, Share],
        grid: ProcessGrid,
        cut: Mapping[str, Spec],
        summed: Layout | Mapping[str, Spec] | None,
    ) -> float:
        of = self.product
        need_a = stay_a = need_b = stay_b = made = there = points = parts = 1
        ending = summed if isinstance(summed, Mapping) else {}
        end = end_there = 1  # of the sum, where it lies as it is made but for some axes
        for x, _ in of.extents:
            spec = cut.get(x, _WHOLE)
            key: Any = x if isinstance(spec, Whole) else (x, spec.grid_axis)
            share = known.get(key)
            if share is None:
                share = known[key] = self._share(rank, grid, x, spec)
            if x in of.a:
                need_a *= share.needs
                stay_a *= share.of_a
            if x in of.b:
                need_b *= share.needs
                stay_b *= share.of_b
            if x in of.out:
                made *= share.needs
                there *= share.of_out
                points *= share.needs
                if x in ending:
                    last_spec = ending[x]
                    key = x if isinstance(last_spec, Whole) else (last_spec.grid_axis, x)
                    share = known.get(key)
                    if share is None:
                        share = known[key] = self._share(rank, grid, x, last_spec)
                end *= share.needs
                end_there *= share.of_out
            elif x in of.inner:
                points *= share.needs
                if not isinstance(spec, Whole):
                    parts *= grid.shape[spec.grid_axis]
        extra, last = 0.0, 0
        if summed is None:
            extra = 2 * (parts - 1) / parts * made
            last = 0 if self.out is None else self._wanted(rank) - there
        elif isinstance(summed, Layout):
            extra = float(parts * self._wanted(rank) - there)
        else:
            extra = float(parts * end - end)
            last = 0 if self.out is None else self._wanted(rank) - end_there
        size_a, size_b, size_out = self.itemsizes
        come = (need_a - stay_a) * size_a + (need_b - stay_b) * size_b
        return come + (extra + last) * size_out + 2 * points / FLOPS_PER_BYTE

    def _wanted(self, rank: int) -> int:
        """The elements of the result that a rank is to have."""
        return math.prod(part.size for part in self._had[rank][2].values())

    def _share(self, rank: int, grid: ProcessGrid, x: str, spec: Spec) -> Share:
        if rank not in self._had:
            self._had[rank] = tuple(
                {}
                if layout is None
                else {
                    letter: _Part(axis, c)
                    for letter, axis, c in zip(letters, layout.parts, layout.place(rank), strict=True)
                }
                for letters, layout in self._arrays
            )
        c = 0 if isinstance(spec, Whole) else grid.coords(rank)[spec.grid_axis]
        part = _Part(part_of(self.product.extent[x], spec, grid), c)
        a, b, out = self._had[rank]
        return Share(
            part.size,
            part.meets(a[x]) if x in a else 1,
            part.meets(b[x]) if x in b else 1,
            part.meets(out[x]) if x in out else 1,
        )


class _Part:
    """A part of an axis; of one in blocks where it lies."""

    def __init__(self, axis: Axis, part: int) -> None:
        self.axis, self.part = axis, part
        self.span: tuple[int, int] | None = None
        if isinstance(axis, BlockAxis):
            self.span = axis.low(part), axis.high(part)
        self.size = axis.size(part) if self.span is None else self.span[1] - self.span[0]

    def meets(self, other: _Part) -> int:
        """How many indices both have."""
        if self.span is None or other.span is None:
            return met(self.axis, self.part, other.axis, other.part)
        return max(0, min(self.span[1], other.span[1]) - max(self.span[0], other.span[0]))
