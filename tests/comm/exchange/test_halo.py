"""Halo exchange against the padded whole array."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from comm_layouts import layouts, scatter
from hypothesis import given, settings
from hypothesis import strategies as st

from dcarray.comm.exchange.exchange_plan import start_exchanges
from dcarray.comm.exchange.halo import halo_exchange
from dcarray.comm.exchange.plan_matching import steps, verify
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Block, Cyclic, Layout
from dcarray.comm.transport import simulated_ranks
from dcarray.comm.transport.errors import LayoutError
from dcarray.comm.transport.protocol import Array

EMPTY = -1


def expected(
    whole: Array,
    layout: Layout,
    rank: int,
    widths: Any,
    periodic: Sequence[bool],
    corners: bool,
    rim: float = math.inf,
) -> Array:
    """A rank's memory after the exchange: each element of the halo read from the whole array."""
    memory = scatter(whole, layout, rank, EMPTY)
    own = layout.owned(rank)
    if any(s.start == s.stop for s in own):
        return memory
    first = [runs[0].start for runs in layout.runs(rank)]
    for place in np.ndindex(*memory.shape):
        index, outside = [], 0
        for axis, p in enumerate(place):
            i = first[axis] + p - own[axis].start
            if not own[axis].start <= p < own[axis].stop:
                outside += 1
                before, after = widths[axis]
                if not own[axis].start - before <= p < own[axis].stop + after:
                    break
                if periodic[axis]:
                    i %= layout.shape[axis]
                elif not 0 <= i < layout.shape[axis]:
                    break
            index.append(i)
        else:
            near = any(i < rim or i >= n - rim for i, n in zip(index, layout.shape, strict=True))
            if near and outside and (corners or outside == 1):
                memory[place] = whole[tuple(index)]
    return memory


def blocks_only(layout: Layout) -> bool:
    """Whether the elements of every rank are an interval along each axis."""
    return all(len(runs) <= 1 for rank in range(layout.grid.size) for runs in layout.runs(rank))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(layouts().filter(blocks_only), st.data())
def test_halos_hold_what_neighbours_have(layout: Layout, data: st.DataObject) -> None:
    widths = [(data.draw(st.integers(0, b)), data.draw(st.integers(0, a))) for b, a in layout.halo]
    rim = data.draw(st.sampled_from([math.inf, math.inf, 0, 1, 2, 5]))
    periodic = [rim == math.inf and data.draw(st.booleans()) for _ in layout.shape]
    corners = data.draw(st.booleans())
    ranks = range(layout.grid.size)
    plans = [halo_exchange(layout, r, widths, periodic=periodic, corners=corners, rim=rim) for r in ranks]
    verify([steps(plan, 8) for plan in plans])
    whole = np.arange(math.prod(layout.shape)).reshape(layout.shape)
    if any(isinstance(spec, Cyclic) for spec in layout.axes):
        rim = math.inf  # all is sent where an axis is dealt out in turn

    def fill() -> None:
        comm = simulated_ranks.rank_of_thread()
        memory = scatter(whole, layout, comm.rank, EMPTY)
        plans[comm.rank].run(comm, memory, memory)
        assert np.array_equal(memory, expected(whole, layout, comm.rank, widths, periodic, corners, rim))
        assert comm.counts == plans[comm.rank].counts(8)

    simulated_ranks.run(layout.grid.size, fill)
    for plan in plans:
        assert len({t.peer for t in plan.sends}) == len(plan.sends)  # one message for each neighbour


def test_fewest_bytes_and_messages_of_a_five_point_stencil() -> None:
    layout = Layout.blocks((30, 30), ProcessGrid((3, 3)), halo=1)
    middle = halo_exchange(layout, 4, corners=False).counts(8)
    assert (middle.messages_sent, middle.bytes_sent) == (4, 4 * 10 * 8)
    corner = halo_exchange(layout, 0, corners=False).counts(8)
    assert (corner.messages_sent, corner.bytes_sent) == (2, 2 * 10 * 8)
    assert halo_exchange(layout, 4).counts(8).bytes_sent == (4 * 10 + 4) * 8


def test_several_arrays_travel_in_one_message() -> None:
    layout = Layout.blocks((9, 8), ProcessGrid((3,)), halo=((2, 1), 0))
    narrow = Layout.blocks((9, 8), ProcessGrid((3,)), halo=(1, 0))

    def fill() -> tuple[int, int]:
        comm = simulated_ranks.rank_of_thread()
        items = []
        for k, its in enumerate([layout, narrow, layout]):
            whole = np.arange(72.0).reshape(9, 8) + 100 * k
            items.append((its, whole, scatter(whole, its, comm.rank)))
        plans = [(halo_exchange(its, comm.rank), a, a) for its, _, a in items]
        start_exchanges(comm, plans).finish()
        for its, whole, a in items:
            wanted = expected(whole, its, comm.rank, its.halo, (False, False), True)
            assert np.array_equal(a, wanted)
        return comm.counts.messages_sent, comm.counts.bytes_sent

    assert simulated_ranks.run(3, fill) == [(1, 5 * 64), (2, 8 * 64), (1, 3 * 64)]


def test_where_axes_are_dealt_out_in_turn_all_is_sent() -> None:
    layout = Layout((8, 8), ProcessGrid((2, 2)), [Block(0), Cyclic(1, 2)], halo=[(1, 1), (0, 0)])
    for rank in range(4):
        assert halo_exchange(layout, rank, rim=1) == halo_exchange(layout, rank)


def test_halos_that_do_not_exist() -> None:
    layout = Layout.blocks((8, 8), ProcessGrid((2,)), halo=1)
    with pytest.raises(LayoutError, match=r"a halo of \(2, 2\) is wanted on axis 0"):
        halo_exchange(layout, 0, 2)
    with pytest.raises(LayoutError, match="periodic or not"):
        halo_exchange(layout, 0, periodic=(True,))
    with pytest.raises(LayoutError, match="no ends"):
        halo_exchange(layout, 0, periodic=True, rim=1)
    with pytest.raises(LayoutError, match="wider than a block"):
        Layout.blocks((8, 8), ProcessGrid((8,)), halo=2)
    with pytest.raises(LayoutError, match="wider than axis 1"):
        halo_exchange(Layout.blocks((8, 2), ProcessGrid((2,)), halo=3), 0, periodic=True)
