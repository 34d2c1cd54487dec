"""Distributed products on simulated ranks: results against NumPy, and the messages sent for them."""

import itertools
from typing import Any

import numpy as np
import pytest
from comm_layouts import layouts, scatter
from comm_random_products import cases
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dcarray.comm import choose_grid
from dcarray.comm.algorithms.contraction_plan import Contraction, _plan_panel, _plan_panels, panels
from dcarray.comm.algorithms.product_axes import parse, sum_dtype
from dcarray.comm.algorithms.product_layouts import choose
from dcarray.comm.layout.axes import BlockAxis
from dcarray.comm.layout.derived_layouts import simplify
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Block, Cyclic, Layout, Whole
from dcarray.comm.transport import simulated_ranks
from dcarray.comm.transport.errors import LayoutError
from dcarray.comm.transport.protocol import Array, Counts


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    # Small integers: their products are exact in every dtype, whatever the order of sums.
    return rng.integers(-3 if np.dtype(dtype).kind in "ifc" else 0, 4, shape).astype(dtype)


def run(subscripts: str, a: Layout, b: Layout, wanted: Layout | None, first: Array, second: Array) -> Any:
    """A product on simulated ranks: its layout, the block of each rank, and the counts of each."""
    of = parse(subscripts, a.shape, b.shape)
    dtype = np.matmul.resolve_dtypes((first.dtype, second.dtype, None))[2]
    between = sum_dtype(first.dtype, second.dtype)
    sizes = (first.itemsize, second.itemsize, between.itemsize, dtype.itemsize)
    scheme = choose(of, a, b, wanted, (sizes[0], sizes[1], sizes[2]))

    def live() -> tuple[Array, Counts]:
        comm = simulated_ranks.rank_of_thread()
        mine = Contraction(scheme, comm.rank)
        out = np.full(scheme.out.local_shape(comm.rank), 77, dtype)
        mine.run(comm, scatter(first, a, comm.rank, 0), scatter(second, b, comm.rank, 0), out)
        assert comm.counts == mine.counts(sizes)
        return out, comm.counts

    return scheme, simulated_ranks.run(a.grid.size, live)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(cases(), st.integers(0, 2**32 - 1))
def test_products_are_numpys(case: tuple[Any, ...], seed: int) -> None:
    subscripts, a, b, wanted, *dtypes = case
    rng = np.random.default_rng(seed)
    first, second = values(rng, a.shape, dtypes[0]), values(rng, b.shape, dtypes[1])
    scheme, found = run(subscripts, a, b, wanted, first, second)
    dtype = np.matmul.resolve_dtypes((first.dtype, second.dtype, None))[2]
    if dtype.kind == "b":
        want = np.einsum(subscripts, first.astype(int), second.astype(int)) > 0
    else:
        want = np.einsum(subscripts, first.astype(dtype), second.astype(dtype))
    if wanted is not None:
        assert scheme.out.shape == wanted.shape and scheme.out.grid == wanted.grid
    for rank, (got, _) in enumerate(found):
        layout = wanted or scheme.out
        np.testing.assert_array_equal(got, scatter(np.asarray(want).astype(dtype), layout, rank, 0))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_messages_of_all_panels_are_those_of_each(data: st.DataObject) -> None:
    """The messages of the whole axis, cut at panels, are those of the panels' own layouts."""
    ranks, shape = (
        data.draw(st.integers(1, 12)),
        data.draw(st.lists(st.integers(0, 12), min_size=1, max_size=3)),
    )
    source = simplify(data.draw(layouts(tuple(shape), ranks)))
    target = simplify(data.draw(layouts(tuple(shape), ranks)))
    axis = data.draw(st.integers(0, len(shape) - 1))
    assume(isinstance(source.parts[axis], BlockAxis) and shape[axis])
    axes = [*target.axes[:axis], Whole(), *target.axes[axis + 1 :]]
    target = Layout(shape, target.grid, axes)
    inner = data.draw(st.sets(st.integers(1, shape[axis] - 1))) if shape[axis] > 1 else set()
    ends = sorted({0, shape[axis], *inner})
    cuts = list(itertools.pairwise(ends))
    for rank in range(ranks):
        each = [_plan_panel(source, target, axis, low, high, rank) for low, high in cuts]
        assert _plan_panels(source, target, axis, cuts, rank) == each


@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.integers(1, 12), st.booleans(), st.integers(0, 3))
def test_panels(ranks: int, in_turn: bool, lead: int) -> None:
    """Long sums, so that there are several panels."""
    m, n, k = 5, 6, 700 + lead
    grid = choose_grid((k, k), ranks)
    kind = (lambda g: Cyclic(g, 16)) if in_turn else Block
    a = Layout((m, k), grid, [kind(0), kind(1)])
    b = Layout((k, n), grid, [kind(0), kind(1)])
    rng = np.random.default_rng(lead)
    first, second = rng.random(a.shape), rng.random(b.shape)
    out = Layout.blocks((m, n), grid)
    _, found = run("mk,kn->mn", a, b, out, first, second)
    for rank, (got, _) in enumerate(found):
        np.testing.assert_allclose(got, scatter(first @ second, out, rank), rtol=1e-13)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("in_turn", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_panels_of_the_result(ranks: int, in_turn: bool, turned: bool) -> None:
    """Where one factor alone is sent, nothing is summed: parts of the result are complete products."""
    m, n, k = 250, 201, 6
    grid = ProcessGrid((ranks,))
    a = Layout((m, k), grid, [Block(0), Whole()])
    b = Layout((k, n), grid, [Whole(), Cyclic(0, 16) if in_turn else Block(0)])
    out = Layout((m, n), grid, [Block(0), Whole()])
    rng = np.random.default_rng(ranks)
    first, second = rng.integers(-9, 9, a.shape) * 1.0, rng.integers(-9, 9, b.shape) * 1.0
    want = first @ second
    if turned:
        a, b, out = (Layout(x.shape[::-1], grid, x.axes[::-1]) for x in (b, a, out))
        first, second, want = second.T.copy(), first.T.copy(), want.T
    subscripts = "mk,kn->mn"
    scheme = choose(parse(subscripts, a.shape, b.shape), a, b, out)
    letter, cuts = panels(scheme)
    assert letter == ("m" if turned else "n") and len(cuts) >= 2
    _, found = run(subscripts, a, b, out, first, second)
    for rank, (got, _) in enumerate(found):
        np.testing.assert_array_equal(got, scatter(want, out, rank))


def test_copies_are_equal_bit_for_bit() -> None:
    grid = ProcessGrid((2, 3))
    a = Layout((8, 900), grid, [Whole(), Block(1)])
    b = Layout((900, 7), grid, [Block(0), Whole()])
    out = Layout((8, 7), grid, [Block(0), Whole()])
    rng = np.random.default_rng(0)
    for wanted in (out, Layout.copies((8, 7), grid)):
        _, found = run("mk,kn->mn", a, b, wanted, rng.random(a.shape), rng.random(b.shape))
        for rank, (got, _) in enumerate(found):
            same = found[wanted.owner([0, 0]) if wanted is not out else rank // 3 * 3][0]
            assert got.tobytes() == same.tobytes()


# ---- what travels ------------------------------------------------------------------------------------
def counts(subscripts: str, a: Layout, b: Layout, rank: int, out: Layout | None = None) -> Counts:
    return Contraction(choose(parse(subscripts, a.shape, b.shape), a, b, out), rank).counts((8, 8, 8, 8))


@pytest.mark.parametrize("p", [1, 2, 3, 6, 36])
@pytest.mark.parametrize("q", [1, 2, 5, 36])
def test_a_matrix_product_moves_what_summa_does(p: int, q: int) -> None:
    n = 180 * 8
    grid = ProcessGrid((p, q))
    layout = Layout.blocks((n, n), grid)
    summa = 8 * ((q - 1) * n * n // (p * q) + (p - 1) * n * n // (p * q))
    for rank in {0, p * q // 2, p * q - 1}:
        found = counts("mk,kn->mn", layout, layout, rank, layout)
        assert found.bytes_received <= 1.001 * summa and found.bytes_sent <= 1.001 * summa
        assert found.collectives == 0
        if min(p, q) > 1:
            assert found.bytes_received == summa
        if p == q:
            assert found.messages_sent == found.messages_received == p - 1 + q - 1


def test_what_moves_fewer_bytes_is_done() -> None:
    grid = ProcessGrid((4, 4))
    square, thin = Layout.blocks((1600, 1600), grid), Layout.blocks((1600, 16), grid)
    scheme = choose(parse("mk,kn->mn", square.shape, thin.shape), square, thin, thin)
    assert scheme.sum_axes and scheme.need_a == square  # the square matrix stays
    found = counts("mk,kn->mn", square, thin, 5, thin)
    assert found.bytes_received < 8 * 3 * 1600 * 1600 // 16 / 10
    back = choose(parse("mk,kn->mn", thin.shape[::-1], square.shape), Layout.blocks((16, 1600), grid), square)
    assert back.sum_axes and back.need_b == square


# ---- bad input ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(("subscripts", "text"), [
    ("mk,kn", "not of the form"), ("mk,kn,np->mp", "not of the form"),
    ("mkk,kn->mn", "does not name the axes"), ("mm,kn->mn", "does not name the axes"),
    ("mk,kn->mp", "no factor has"), ("mk,kn->mm", "twice"), ("mk,pn->mn", "in one factor only"),
    ("mk,mn->mn", "has 4 elements and 5"),
])  # fmt: skip
def test_letters_that_mean_nothing(subscripts: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        parse(subscripts, (4, 5), (5, 6))


def test_layouts_that_do_not_fit() -> None:
    of = parse("mk,kn->mn", (4, 5), (5, 6))
    grid = ProcessGrid((2, 2))
    a, b = Layout.blocks((4, 5), grid), Layout.blocks((5, 6), grid)
    with pytest.raises(LayoutError, match="where the product has one"):
        choose(of, b, b)
    with pytest.raises(LayoutError, match="over 4 and 3 ranks"):
        choose(of, a, Layout.chosen((5, 6), 3))
    with pytest.raises(LayoutError, match="where the product has one"):
        choose(of, a, b, a)


def test_dtypes_without_a_product() -> None:
    with pytest.raises(TypeError):
        sum_dtype(np.dtype("M8[s]"), np.dtype("f8"))
