"""The cost model that compares distributions of a product over ranks by bytes received and work.

A rank's share of an axis is the same in all distributions that cut the axis in the same way.  The number of
elements that a rank receives follows from products of such shares, so that many distributions can be compared
without making their layouts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from dcarray.comm.layout.axes import Axis, BlockAxis, CyclicAxis
from dcarray.comm.layout.axis_overlap import overlap_size
from dcarray.comm.layout.derived_layouts import sample_ranks
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Block, Layout, Spec, Whole, axis_of

from .product_axes import Product

__all__ = ["FLOPS_PER_BYTE", "Choices", "LowerBounds", "ProductCosts", "Sum"]

# The operations of a rank while it receives one byte.  It decides where fewer bytes mean more work: a
# product of copies made by every rank against one made in parts and sent round.
FLOPS_PER_BYTE = 8

#: The layout in which parts of a product are summed: the wanted one; the one of the parts, with some axes cut
#: in addition; or None: on every rank that has parts, also where there are none.
Sum = Layout | Mapping[str, Spec] | None

#: For each axis of a grid the axes of the product that it may distribute, or None.
Choices = Sequence[Sequence[tuple[str, Spec] | None]]

_WHOLE = Whole()
_ROUNDED = 1 - 1e-9  # products in another order may round to a larger number


class ProductCosts:
    """The calculator of the costs of distributions of one product, for a few sample ranks.

    Parameters
    ----------
    product : Product
    a, b : Layout
        The layouts of the factors, without halo.
    out : Layout or None
        The wanted layout of the result, without halo; None: any.
    itemsizes : tuple of int
        The item sizes of the factors and of the result.
    """

    def __init__(
        self, product: Product, a: Layout, b: Layout, out: Layout | None, itemsizes: tuple[int, int, int]
    ) -> None:
        self.product, self.sizes = product, itemsizes
        self._arrays = ((product.a, a), (product.b, b), (product.out, out))
        self._had: dict[int, _Holdings] = {}
        self._known: dict[ProcessGrid, list[_RankCosts]] = {}
        # Ranks in the middle mostly receive most: others are asked only if a distribution is cheap for them.
        size = a.grid.size
        self._ranks = sorted(sample_ranks(size), key=lambda rank: abs(2 * rank - size))

    @cached_property
    def first(self) -> _FirstRank:
        """The numbers of elements of rank 0's blocks and of all arrays, and the total work."""
        of, holdings = self.product, self.holdings(0)
        held = [math.prod(part.size for part in parts.values()) for parts in (holdings.a, holdings.b)]
        extent = of.extent
        whole = [math.prod([extent[x] for x in letters]) for letters in (of.a, of.b, of.out)]
        work = 2 * whole[2] * math.prod([extent[x] for x in of.inner]) / FLOPS_PER_BYTE
        return _FirstRank(held[0], held[1], holdings.wanted, whole[0], whole[1], whole[2], work)

    def rank_costs(self, grid: ProcessGrid, k: int) -> _RankCosts:
        """Return the cost calculator of the `k`-th sample rank on a grid."""
        costs = self._known.setdefault(grid, [])
        while k >= len(costs):
            costs.append(_RankCosts(self, grid, self._ranks[len(costs)]))
        return costs[k]

    def best(
        self, grid: ProcessGrid, cut: Mapping[str, Spec], sums: Iterable[Sum], most: float = math.inf
    ) -> tuple[float, Sum] | None:
        """Return the cheapest of several layouts of the sums for one distribution of a product.

        The cost is that of the sample rank for which bytes received plus work, in bytes, are most.

        Parameters
        ----------
        grid : ProcessGrid
        cut : mapping of str to Spec
            The distribution of axes of the product over the grid; the others are whole.
        sums : iterable of Sum
            The layouts in which parts of the result may be summed.
        most : float
            An upper bound of the cost; layouts that cost more are skipped.

        Returns
        -------
        (float, Sum), or None
            The cost and the first of the cheapest layouts; None if all cost more than the bound.
        """
        ways, best = [self.rank_costs(grid, 0).local_product(cut)], None
        if ways[0].least >= most:
            return None
        for summed in sums:
            taken = 0.0
            for k in range(len(self._ranks)):
                rank_costs = self.rank_costs(grid, k)
                if k == len(ways):
                    ways.append(rank_costs.local_product(cut))
                taken = max(taken, rank_costs.cost(ways[k], summed))
                if taken >= most:
                    break
            if taken < most:
                best, most = (taken, summed), taken
        return best

    def holdings(self, rank: int) -> _Holdings:
        """Return the parts of axes that a rank has of the factors, and needs of the result."""
        holdings = self._had.get(rank)
        if holdings is None:
            a, b, out = (
                {}
                if layout is None
                else dict(zip(letters, map(_part, layout.parts, layout.part_indices(rank)), strict=True))
                for letters, layout in self._arrays
            )
            wanted = None if self._arrays[2][1] is None else math.prod(part.size for part in out.values())
            holdings = self._had[rank] = _Holdings(a, b, out, wanted)
        return holdings


class _Part(NamedTuple):
    """A part of an axis: the interval `low` to `high`, or for a cyclic axis that axis and the part's
    number."""

    low: int
    high: int
    turn: tuple[CyclicAxis, int] | None = None

    @property
    def size(self) -> int:
        return self.high - self.low if self.turn is None else self.turn[0].size(self.turn[1])

    def overlap(self, other: _Part | None) -> int:
        """Return the number of indices that two parts share; 1 if `other` is None."""
        if other is None:
            return 1
        if self.turn is None and other.turn is None:
            return max(0, min(self.high, other.high) - max(self.low, other.low))
        return overlap_size(*self.axis, *other.axis)

    @property
    def axis(self) -> tuple[Axis, int]:
        """An axis of which this is a part, and the number of the part."""
        return self.turn or (BlockAxis(self.high, 2, (self.low, self.high - self.low)), 1)


def _even_part(extent: int, parts: int, part: int) -> _Part:
    """Return one of `parts` parts of an axis, of sizes that differ by at most one, the larger ones first."""
    small, larger = divmod(extent, parts)
    low = part * small + min(part, larger)
    return _Part(low, low + small + (part < larger))


def _part(axis: Axis, part: int) -> _Part:
    if isinstance(axis, CyclicAxis):
        return _Part(0, axis.extent, (axis, part))
    return _Part(axis.low(part), axis.high(part))


class _Holdings(NamedTuple):
    """The parts of axes that a rank has of the factors and needs of the result, and how many elements the
    latter are."""

    a: dict[str, _Part]
    b: dict[str, _Part]
    out: dict[str, _Part]
    wanted: int | None


class _FirstRank(NamedTuple):
    """The numbers of elements of rank 0's blocks and of the whole arrays, and the total work in bytes."""

    of_a: int
    of_b: int
    wanted: int | None
    a: int
    b: int
    out: int
    work: float


class LowerBounds:
    """Lower bounds of the cost for rank 0, from the sizes of its parts alone.

    They assume that all elements which the rank has are among those that it needs.  So a few multiplications
    exclude most distributions.  In even blocks, no rank has larger parts than rank 0.

    Parameters
    ----------
    costs : ProductCosts
    grid : ProcessGrid
    choices : sequence
        For each axis of the grid, the axes of the product that it may distribute, and how.
    """

    def __init__(self, costs: ProductCosts, grid: ProcessGrid, choices: Choices) -> None:
        self.costs, self.grid = costs, grid
        extent = costs.product.extent
        self._needs: dict[tuple[str, int], int] = {}
        # Along each axis of the grid, the smallest share of any axis that this rank may need.
        self._least: list[float] = []
        for g, (parts, given) in enumerate(zip(grid.shape, choices, strict=True)):
            least = 1.0
            for one in given:
                if one is not None:
                    x, spec = one
                    n = extent[x]
                    needs = -(-n // parts)
                    least = min(least, needs / n)
                    if not isinstance(spec, Block) or spec.sizes is not None:
                        needs = axis_of(n, spec, grid).size(0)
                        least = min(least, needs / n)
                    self._needs[x, g] = needs
            self._least.append(least)

    def least(self, cut: Mapping[str, Spec]) -> float:
        """Return a lower bound of the cost of a distribution, for any layout of the sums."""
        of, sizes, first = self.costs.product, self.costs.sizes, self.costs.first
        extent, a, b, out, work = of.extent, first.a, first.b, first.out, first.work
        parts, smaller = 1, 1.0
        for x, spec in cut.items():
            assert not isinstance(spec, Whole)
            n, needs = extent[x], self._needs[x, spec.grid_axis]
            work *= needs / n
            if x in of.a:
                a = a // n * needs
            if x in of.b:
                b = b // n * needs
            if x in of.out:
                out = out // n * needs
            else:
                parts *= self.grid.shape[spec.grid_axis]
                smaller *= self._least[spec.grid_axis]
        come = max(0, a - first.of_a) * sizes[0] + max(0, b - first.of_b) * sizes[1]
        wanted = first.wanted
        add = 0.0 if wanted is None else float(max(0, wanted - out))
        if parts > 1:  # on all ranks that have some; as they are made, but cut further; as they are wanted
            add = min(add + 2 * (parts - 1) / parts * out, (parts - 1) * out * smaller)
            add = add if wanted is None else min(add, float((parts - 1) * wanted))
        return (come + add * sizes[2] + work) * _ROUNDED

    def least_with_idle_axis(self) -> float:
        """Return a lower bound of the cost of distributions that do not use a grid axis of several ranks."""
        share = math.prod(self._least)
        several = [least for least, n in zip(self._least, self.grid.shape, strict=True) if n > 1]
        return self.costs.first.work * share / max(several) * _ROUNDED if several and share else 0.0


class _AxisShare(NamedTuple):
    """The size of the part of an axis that a rank needs, and its overlaps with its parts of all three
    arrays."""

    needs: int
    of_a: int
    of_b: int
    of_out: int


class _LocalProduct(NamedTuple):
    """One rank's share of a product, before parts of sums are added up.

    Attributes
    ----------
    cut : mapping of str to Spec
    come : int
        The number of bytes of factors that the rank receives.
    work : float
        The rank's work, in bytes.
    made, there : int
        The number of elements of the result that it computes (or parts of their sums), and how many of these
        it needs in the end.
    parts : int
        The number of ranks with parts of the same elements.
    """

    cut: Mapping[str, Spec]
    come: int
    work: float
    made: int
    there: int
    parts: int

    @property
    def least(self) -> float:
        """The lower bound of the rank's cost: without adding up parts of sums."""
        return self.come + self.work


class _RankCosts:
    """The calculator of the costs of one rank on one grid."""

    def __init__(self, costs: ProductCosts, grid: ProcessGrid, rank: int) -> None:
        self.costs, self.grid, self.rank = costs, grid, rank
        self._shares: dict[str, dict[Any, _AxisShare]] = {x: {} for x, _ in costs.product.extents}

    @cached_property
    def coords(self) -> tuple[int, ...]:
        return self.grid.coords(self.rank)

    def share(self, x: str, spec: Spec) -> _AxisShare:
        """Return the rank's share of an axis in a distribution."""
        known = self._shares[x]
        # Nearly all axes are in even blocks: their key needs no hash of block sizes.
        key: Any = spec.grid_axis if isinstance(spec, Block) and spec.sizes is None else spec
        share = known.get(key)
        if share is None:
            costs = self.costs
            n, holdings = costs.product.extent[x], costs.holdings(self.rank)
            if isinstance(spec, Whole):
                part = _Part(0, n)
            elif key is spec:
                part = _part(axis_of(n, spec, self.grid), self.coords[spec.grid_axis])
            else:
                part = _even_part(n, self.grid.shape[key], self.coords[key])
            share = known[key] = _AxisShare(
                part.size,
                part.overlap(holdings.a.get(x)),
                part.overlap(holdings.b.get(x)),
                part.overlap(holdings.out.get(x)),
            )
        return share

    def local_product(self, cut: Mapping[str, Spec]) -> _LocalProduct:
        """Return the rank's share of the product in a distribution of its axes."""
        of, sizes = self.costs.product, self.costs.sizes
        of_a, of_b, of_out, inner = of.a, of.b, of.out, of.inner
        need_a = stay_a = need_b = stay_b = need_out = there = points = parts = 1
        for x in self._shares:
            spec = cut.get(x, _WHOLE)
            needs, has_a, has_b, has_out = self.share(x, spec)
            if x in of_a:
                need_a *= needs
                stay_a *= has_a
            if x in of_b:
                need_b *= needs
                stay_b *= has_b
            if x in of_out:
                need_out *= needs
                there *= has_out
            elif x in inner:
                points *= needs
                if not isinstance(spec, Whole):
                    parts *= self.grid.shape[spec.grid_axis]
        come = (need_a - stay_a) * sizes[0] + (need_b - stay_b) * sizes[1]
        return _LocalProduct(cut, come, 2 * need_out * points / FLOPS_PER_BYTE, need_out, there, parts)

    def cost(self, way: _LocalProduct, summed: Sum) -> float:
        """Return the cost of a distribution in which parts of sums are added up in the layout `summed`."""
        wanted = self.costs.holdings(self.rank).wanted
        if summed is None:
            more, there = 2 * (way.parts - 1) / way.parts * way.made, way.there
        elif isinstance(summed, Layout):
            assert wanted is not None
            more, there = float(way.parts * wanted - way.there), wanted
        else:
            end = there = 1
            for x in self.costs.product.out:
                share = self.share(x, summed.get(x) or way.cut.get(x, _WHOLE))
                end *= share.needs
                there *= share.of_out
            more = float(way.parts * end - end)
        last = 0 if wanted is None else wanted - there
        return way.come + (more + last) * self.costs.sizes[2] + way.work
