"""Costs of distributed products, axis by axis, against the costs of their layouts."""

import math
from typing import Any

from comm_layouts import axes
from comm_random_products import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from dcarray.comm.algorithms import product_layouts
from dcarray.comm.algorithms.product_axes import parse
from dcarray.comm.algorithms.product_cost import FLOPS_PER_BYTE, LowerBounds, ProductCosts
from dcarray.comm.algorithms.product_layouts import Scheme, choose, summand_layouts
from dcarray.comm.layout.axes import Axis
from dcarray.comm.layout.axis_overlap import overlap, overlap_size, overlapping_range
from dcarray.comm.layout.derived_layouts import received_elements, sample_ranks, simplify


def by_layouts(scheme: Scheme, sizes: tuple[int, int, int]) -> float:
    """The cost of a scheme for the rank that has most of it, from its layouts."""
    found = 0.0
    for rank in sample_ranks(scheme.a.grid.size):
        come = (
            received_elements(scheme.a, scheme.need_a, rank) * sizes[0]
            + received_elements(scheme.b, scheme.need_b, rank) * sizes[1]
        )
        extra = 0.0
        if scheme.sum_layout is not None:
            extra = float(received_elements(*summand_layouts(scheme), rank))
        elif scheme.sum_axes:
            parts = math.prod(scheme.arrangement.grid.shape[g] for g in scheme.sum_axes)
            extra = 2 * (parts - 1) / parts * scheme.out_parts.elements(rank)
        last = received_elements(scheme.sum_layout or scheme.out_parts, scheme.out, rank)
        of = scheme.product
        points = scheme.arrangement.layout(of.out + of.inner, of.extent).elements(rank)
        found = max(found, come + (extra + last) * sizes[2] + 2 * points / FLOPS_PER_BYTE)
    return found


@settings(max_examples=60, deadline=None, derandomize=True)
@given(cases(), st.sampled_from([(8, 8, 8), (4, 8, 16), (1, 2, 4)]))
def test_ways_cost_what_their_layouts_say(case: tuple[Any, ...], sizes: tuple[int, int, int]) -> None:
    subscripts, first, second, wanted, *_ = case
    of = parse(subscripts, first.shape, second.shape)
    a, b, out = simplify(first), simplify(second), None if wanted is None else simplify(wanted)
    judges, costs = ProductCosts(of, a, b, out, sizes), []
    ways = [
        (grid, cut, LowerBounds(judges, grid, ways.choices))
        for grid, ways in product_layouts._grids(of, a, b, out)
        for _, cut in sorted([*ways.full, *ways.others])
    ]
    for grid, cut, bounds in ways:
        here = []
        for summed in product_layouts._sum_layouts(of, grid, cut, out):
            found = judges.best(grid, cut, [summed])
            assert found is not None and found[1] is summed
            scheme = product_layouts._scheme(
                of, a, b, product_layouts.Arrangement(grid, tuple(cut.items())), summed, out
            )
            assert found[0] == by_layouts(scheme, sizes)
            assert judges.best(grid, cut, [summed], found[0]) is None
            here.append((found[0], scheme))
        least = min(cost for cost, _ in here)
        several = [n for n in grid.shape if n > 1]
        assert bounds.least(cut) <= least and (
            len(cut) == len(several) or bounds.least_with_idle_axis() <= least
        )
        together = judges.best(grid, cut, product_layouts._sum_layouts(of, grid, cut, out))
        assert together is not None and together[0] == least
        costs += here
    least, scheme = min(costs, key=lambda one: one[0])
    assert choose(of, first, second, wanted, sizes) == scheme
    assert product_layouts.cost(of, first, second, wanted, sizes) == least


@settings(max_examples=120, deadline=None, derandomize=True)
@given(st.data())
def test_what_parts_of_axes_have_in_common(data: st.DataObject) -> None:
    a: Axis = data.draw(axes())
    b: Axis = data.draw(axes(a.extent))
    for one in range(a.parts):
        span = overlapping_range(a, one, b)
        for other in range(b.parts):
            assert overlap_size(a, one, b, other) == sum(run.size for run in overlap(a, one, b, other))
            assert other in span or not overlap_size(a, one, b, other)
