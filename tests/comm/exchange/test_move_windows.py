"""Copies between windows of distributed arrays: results, matching plans, and no needless messages."""

import numpy as np
from comm_layouts import layouts, scatter
from hypothesis import given, settings
from hypothesis import strategies as st

from dcarray.comm.exchange.exchange_plan import start_exchanges
from dcarray.comm.exchange.plan_matching import steps, verify
from dcarray.comm.exchange.redistribute import Side, move
from dcarray.comm.layout.axes import BlockAxis, CyclicAxis, WindowAxis
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.transport import simulated_ranks
from dcarray.ir.nodes import Index
from dcarray.ir.numpy_views import geometry, view


@st.composite
def windows(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[tuple[int, ...], list[Index]]:
    """An array with a window of some shape: strided, reversed, with axes in another order."""
    order = draw(st.permutations(range(len(shape))))
    extents, index = [], []
    for axis in order:
        n, stride = shape[axis], draw(st.sampled_from([1, 1, 1, 2, 3, -1, -2]))
        span = abs(stride) * (n - 1) + 1 if n else 0
        before, after = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        extents.append(before + span + after)
        index.append(Index(before + (span - 1 if stride < 0 and n else 0), stride, axis))
    return tuple(extents), index


@st.composite
def sides(draw: st.DrawFn, shape: tuple[int, ...], ranks: int) -> tuple[Layout, list[Index]]:
    extents, index = draw(windows(shape))
    layout = draw(layouts(extents, ranks))
    for ix, part in zip(index, layout.parts, strict=True):
        if isinstance(part, CyclicAxis) and (ix.offset, ix.stride, shape[ix.axis]) != (0, 1, part.extent):
            return Layout(extents, layout.grid, Layout.copies(extents, layout.grid).axes), index
    return layout, index


@st.composite
def moves(draw: st.DrawFn) -> tuple:
    shape = tuple(draw(st.lists(st.integers(0, 7), min_size=1, max_size=3)))
    ranks = draw(st.integers(1, 12))
    return shape, ranks, draw(sides(shape, ranks)), draw(sides(shape, ranks))


@settings(max_examples=24, derandomize=True, deadline=None)
@given(moves())
def test_moves(drawn) -> None:
    shape, ranks, (source, read), (target, written) = drawn
    whole = np.arange(np.prod(source.shape), dtype=float).reshape(source.shape)
    want = np.full(target.shape, -2.0)
    triples = [[(ix.offset, ix.stride, ix.axis) for ix in index] for index in (read, written)]
    if 0 not in shape:
        view(want, geometry(target.shape, shape, triples[1]))[...] = view(
            whole, geometry(source.shape, shape, triples[0])
        )
    sides = Side(source, read, shape), Side(target, written, shape)
    plans = [move(*sides, rank) for rank in range(ranks)]
    verify([steps(plan, 8) for plan in plans])

    def live(comm) -> np.ndarray:
        here, there = (
            scatter(whole, source, comm.rank),
            scatter(np.full(target.shape, -2.0), target, comm.rank),
        )
        start_exchanges(
            comm, [(plans[comm.rank], here.transpose(sides[0].view), there.transpose(sides[1].view))]
        ).finish()
        return there

    found = simulated_ranks.run(ranks, lambda: live(simulated_ranks.rank_of_thread()))
    for rank, there in enumerate(found):
        assert np.array_equal(there, scatter(want, target, rank))


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.data())
def test_window_axes(data) -> None:
    """The parts of an aligned axis are those of its formula."""
    extent, parts, n = (data.draw(st.integers(1, 9)) for _ in range(3))
    sizes = None
    if data.draw(st.booleans()):
        cuts = sorted(data.draw(st.lists(st.integers(0, extent), min_size=parts - 1, max_size=parts - 1)))
        sizes = tuple(int(k) for k in np.diff([0, *cuts, extent]))
    base = BlockAxis(extent, parts, sizes)
    axis = WindowAxis(n, base, data.draw(st.integers(-4, 9)), data.draw(st.sampled_from([1, 2, 3, -1, -2])))
    owners = []
    for t in range(n):
        place = axis.offset + axis.stride * t
        owners.append(0 if place < 0 else parts - 1 if place >= extent else base.owner(place))
    assert [axis.owner(t) for t in range(n)] == owners
    for part in range(parts):
        assert list(range(axis.low(part), axis.high(part))) == [t for t in range(n) if owners[t] == part]
    assert axis.smallest() <= min(owners.count(part) for part in range(parts))
    assert axis.stride < 0 or sum(axis.size(part) for part in range(parts)) == n
