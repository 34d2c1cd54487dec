"""The choice of the distribution of a product of two arrays over ranks, by the bytes to be sent.

Each axis of the grid distributes one axis of the product's iteration space, or none.  If both axes of a grid
distribute axes of the result, the result stays in place and the factors are sent (SUMMA with a stationary C,
van de Geijn and Watts 1997).  If one distributes a summed axis, a factor stays in place and parts of the
result are added up (stationary A or B).  Products with vectors, stacks of products and scalar products are
other cases of the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from heapq import heapify, heappop, heappush
from itertools import product

from dcarray.comm.layout.derived_layouts import nothing_moves, simplify, with_summand_axes
from dcarray.comm.layout.grid import ProcessGrid, choose_grid
from dcarray.comm.layout.layouts import Block, Layout, Spec, Whole
from dcarray.comm.transport.errors import LayoutError

from .product_axes import Product
from .product_cost import Choices, LowerBounds, ProductCosts, Sum

__all__ = ["Arrangement", "Scheme", "choose", "cost", "summand_layouts"]


@dataclass(frozen=True)
class Arrangement:
    """The distribution of the axes of a product over a grid; axes that are not named are whole."""

    grid: ProcessGrid
    cuts: tuple[tuple[str, Spec], ...]

    @cached_property
    def cut(self) -> dict[str, Spec]:
        return dict(self.cuts)

    def layout(self, letters: str, extent: dict[str, int]) -> Layout:
        """Return the layout in which an array with the axes `letters` is needed or computed."""
        return Layout([extent[x] for x in letters], self.grid, [self.cut.get(x, Whole()) for x in letters])

    def grid_axes_of(self, letters: str) -> tuple[int, ...]:
        """Return the axes of the grid that distribute the product's axes `letters`."""
        return tuple(spec.grid_axis for x, spec in self.cuts if x in letters and not isinstance(spec, Whole))


@dataclass(frozen=True)
class Scheme:
    """The plan of a distributed product that all ranks share: distribution of its axes, sums, result.

    Attributes
    ----------
    product : Product
    a, b : Layout
        The layouts of the factors, without halo.
    arrangement : Arrangement
    sum_layout : Layout or None
        The layout in which parts of the result are added up: each rank receives all parts of its own elements
        there.  None if there are no parts, or if one `Allreduce` gives the sums to all ranks with parts.
    out : Layout
        The layout of the result.
    """

    product: Product
    a: Layout
    b: Layout
    arrangement: Arrangement
    sum_layout: Layout | None
    out: Layout

    @cached_property
    def need_a(self) -> Layout:
        """The layout in which the first factor is needed."""
        return self.arrangement.layout(self.product.a, self.product.extent)

    @cached_property
    def need_b(self) -> Layout:
        """The layout in which the second factor is needed."""
        return self.arrangement.layout(self.product.b, self.product.extent)

    @cached_property
    def out_parts(self) -> Layout:
        """The layout in which the result, or parts of its sums, are computed."""
        return self.arrangement.layout(self.product.out, self.product.extent)

    @cached_property
    def sum_axes(self) -> tuple[int, ...]:
        """The axes of the grid along which ranks have parts of the same sums."""
        return self.arrangement.grid_axes_of(self.product.inner)

    def __str__(self) -> str:
        """Return a text that says which factors are sent."""
        both = ((self.a, self.need_a), (self.b, self.need_b))
        first, second = ("stays" if nothing_moves(have, need) else "travels" for have, need in both)
        of = (
            f"{self.product.a},{self.product.b}->{self.product.out} over a grid {self.arrangement.grid.shape}"
        )
        end = ", parts of the result are added up" if self.sum_axes else ""
        return f"{of}: the first factor {first}, the second {second}{end}"


def choose(
    product: Product,
    a: Layout,
    b: Layout,
    out: Layout | None = None,
    itemsizes: tuple[int, int, int] = (8, 8, 8),
) -> Scheme:
    """Return the scheme with the least cost of the rank that has the largest: bytes received, and work.

    Costs are computed for a few sample ranks only.

    Parameters
    ----------
    product : Product
    a, b : Layout
        The layouts of the factors.
    out : Layout, optional
        The layout of the result; by default the one with the least to send.
    itemsizes : tuple of int
        The item sizes of the factors and of the result.

    Returns
    -------
    Scheme

    Raises
    ------
    LayoutError
        If the layouts do not have the shapes of the product, or not the same number of ranks.
    """
    return _best(product, a, b, out, itemsizes)[1]


def cost(
    product: Product,
    a: Layout,
    b: Layout,
    out: Layout | None = None,
    itemsizes: tuple[int, int, int] = (8, 8, 8),
) -> float:
    """Return the cost of the scheme of `choose` for a rank: bytes that it receives, and its work in bytes."""
    return _best(product, a, b, out, itemsizes)[0]


@lru_cache(maxsize=512)
def _best(
    product: Product, a: Layout, b: Layout, out: Layout | None, itemsizes: tuple[int, int, int]
) -> tuple[float, Scheme]:
    given = [(product.a, a), (product.b, b)] + ([(product.out, out)] if out is not None else [])
    for letters, layout in given:
        shape = tuple(product.extent[x] for x in letters)
        if layout.shape != shape:
            raise LayoutError(f"an array of shape {layout.shape} where the product has one of {shape}")
        if layout.grid.size != a.grid.size:
            raise LayoutError(f"arrays over {a.grid.size} and {layout.grid.size} ranks are multiplied")
    a, b = simplify(a), simplify(b)
    wanted = None if out is None else simplify(out)
    costs = ProductCosts(product, a, b, wanted, itemsizes)
    # Best-first search by lower bounds.
    least, best, first = math.inf, None, (-1, 0)
    heap: list[tuple[float, tuple[int, int], LowerBounds, Mapping[str, Spec] | None]] = []
    grids = list(_grids(product, a, b, wanted))
    for number, (grid, ways) in enumerate(grids):
        bounds = LowerBounds(costs, grid, ways.choices)
        heap += [(bounds.least(cut), (number, k), bounds, cut) for k, cut in ways.full]
        heap.append((bounds.least_with_idle_axis(), (number, -1), bounds, None))
    heapify(heap)
    while heap and heap[0][0] <= least:
        _, place, bounds, taken = heappop(heap)
        if taken is None:
            for k, cut in grids[place[0]][1].others:
                heappush(heap, (bounds.least(cut), (place[0], k), bounds, cut))
            continue
        most = least if place > first else math.nextafter(least, math.inf)
        cheapest = costs.best(bounds.grid, taken, _sum_layouts(product, bounds.grid, taken, wanted), most)
        if cheapest is not None:
            least, first = cheapest[0], place
            best = (Arrangement(bounds.grid, tuple(taken.items())), cheapest[1])
    assert best is not None
    return least, _scheme(product, a, b, *best, wanted)


def _scheme(
    of: Product, a: Layout, b: Layout, arrangement: Arrangement, summed: Sum, wanted: Layout | None
) -> Scheme:
    if isinstance(summed, Mapping):
        ended = Arrangement(arrangement.grid, tuple({**arrangement.cut, **summed}.items()))
        summed = ended.layout(of.out, of.extent)
    end = wanted or summed or arrangement.layout(of.out, of.extent)
    return Scheme(of, a, b, arrangement, summed, end)


@dataclass(frozen=True)
class _Assignments:
    """The possible assignments of axes of a product to the axes of a grid.

    Attributes
    ----------
    choices : sequence
        For each axis of the grid the axes of the product that it can distribute, and None at the end (for a
        grid axis of one rank, None alone).
    """

    choices: Choices

    @cached_property
    def full(self) -> list[tuple[int, dict[str, Spec]]]:
        """The assignments that use all grid axes of more than one rank, each with its number among all."""
        return [way for way in self._all if len(way[1]) == self._several]

    @cached_property
    def others(self) -> list[tuple[int, dict[str, Spec]]]:
        """The assignments that do not use all grid axes of more than one rank."""
        return [way for way in self._all if len(way[1]) < self._several]

    @cached_property
    def _several(self) -> int:
        return sum(len(given) > 1 for given in self.choices)

    @cached_property
    def _all(self) -> list[tuple[int, dict[str, Spec]]]:
        ways = []
        for k, taken in enumerate(product(*self.choices)):
            cuts = [one for one in taken if one is not None]
            if len(cut := dict(cuts)) == len(cuts):
                ways.append((k, cut))
        return ways


def _grids(
    product_: Product, a: Layout, b: Layout, out: Layout | None
) -> Iterator[tuple[ProcessGrid, _Assignments]]:
    """Yield the grids over which a product may be computed, each with the assignments of axes to it."""
    terms = [(product_.a, a), (product_.b, b)]
    terms.sort(key=lambda term: -math.prod(term[1].shape))
    if out is not None:
        terms.insert(0, (product_.out, out))
    grids = dict.fromkeys([*(layout.grid for _, layout in terms), ProcessGrid((a.grid.size,))])
    if out is None and product_.out:
        grids[choose_grid([product_.extent[x] for x in product_.out], a.grid.size)] = None
    letters = [x for x, n in product_.extents if n > 1 and (x in product_.out or x in product_.inner)]
    # Where all blocks are even, grids with several ranks along the same axes have the same assignments.
    even = all(
        isinstance(spec, Whole) or (isinstance(spec, Block) and spec.sizes is None)
        for _, layout in terms
        for spec in layout.axes
    )
    known: dict[tuple[bool, ...], _Assignments] = {}
    for grid in grids:
        several = tuple([n > 1 for n in grid.shape])
        ways = known.get(several) if even else None
        if ways is None:
            ways = known[several] = _Assignments(
                [
                    [*((x, _spec(x, g, grid, terms)) for x in letters), None] if more else [None]
                    for g, more in enumerate(several)
                ]
            )
        yield grid, ways


def _spec(letter: str, g: int, grid: ProcessGrid, terms: Sequence[tuple[str, Layout]]) -> Spec:
    """Return the distribution of an axis over grid axis `g`: the one in an array that has it so, else even
    blocks."""
    near: Spec | None = None
    for letters, layout in terms:
        if letter not in letters:
            continue
        spec = layout.axes[letters.index(letter)]
        if isinstance(spec, Whole):
            continue
        if layout.grid == grid and spec.grid_axis == g:
            return spec
        if near is None and layout.grid.shape[spec.grid_axis] == grid.shape[g]:
            near = Block(g, spec.sizes) if isinstance(spec, Block) else replace(spec, grid_axis=g)
    return near or Block(g)


def _sum_layouts(
    of: Product, grid: ProcessGrid, cut: Mapping[str, Spec], wanted: Layout | None
) -> Iterator[Sum]:
    """Yield the layouts in which parts of the result's sums may be added up; None stands for an allreduce."""
    yield None
    over = [spec.grid_axis for x, spec in cut.items() if x in of.inner and not isinstance(spec, Whole)]
    if not over:
        return
    if wanted is not None and not any(wanted.grid.shape[g] > 1 for g in wanted.copy_axes):
        yield wanted
    # Copies of the parts are cut along axes of the result that are whole.
    further: dict[str, Spec] = {}
    whole = {x: of.extent[x] for x in of.out if x not in cut}
    for g in over:
        largest = max(whole, key=whole.__getitem__, default="")
        if whole.pop(largest, 0) < grid.shape[g]:
            return
        further[largest] = Block(g)
    axes = tuple(further.get(x) or cut.get(x, Whole()) for x in of.out)
    if wanted is None or (wanted.grid, wanted.axes) != (grid, axes):
        yield further


def summand_layouts(scheme: Scheme) -> tuple[Layout, Layout]:
    """Return the layouts of the parts of sums, with one more axis for each grid axis that has parts: as they
    are computed, and as they are added up."""
    summed, parts = scheme.sum_layout, with_summand_axes(scheme.out_parts, scheme.sum_axes)
    assert summed is not None
    rest = parts.shape[: len(scheme.sum_axes)]
    return parts, Layout(parts.shape, summed.grid, [*[Whole()] * len(rest), *summed.axes])
