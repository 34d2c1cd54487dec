"""Redistributions: results, plans that match across ranks, and planning by formula."""

import math
from itertools import product

import numpy as np
import pytest
from comm_layouts import layouts, scatter
from hypothesis import given, settings
from hypothesis import strategies as st

from dcarray.comm.exchange.exchange_plan import Exchange
from dcarray.comm.exchange.plan_matching import steps, verify
from dcarray.comm.exchange.redistribute import redistribute
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Block, Cyclic, Layout, Whole
from dcarray.comm.transport import simulated_ranks
from dcarray.comm.transport.errors import LayoutError


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Layout, Layout]:
    source = draw(layouts())
    return source, draw(layouts(source.shape, source.grid.size))


def _plans(source: Layout, target: Layout) -> list[Exchange]:
    return [redistribute(source, target, rank) for rank in range(source.grid.size)]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(pairs())
def test_every_element_arrives_once_and_all_plans_fit(pair: tuple[Layout, Layout]) -> None:
    source, target = pair
    plans = _plans(source, target)
    verify([steps(plan, 8) for plan in plans])
    whole = np.arange(math.prod(source.shape)).reshape(source.shape)

    def move() -> None:
        comm = simulated_ranks.rank_of_thread()
        here = scatter(whole, source, comm.rank)
        there = np.full(target.local_shape(comm.rank), -1)
        plans[comm.rank].run(comm, here, there)
        assert np.array_equal(there, scatter(whole, target, comm.rank))
        assert comm.counts == plans[comm.rank].counts(8)

    simulated_ranks.run(source.grid.size, move)
    for rank, plan in enumerate(plans):
        came = sum(t.elements for t in plan.receives)
        stayed = sum(math.prod(run.size for run in box) for box, _ in plan.local_copies)
        assert came + stayed == target.elements(rank)
        assert all(t.elements and t.peer != rank for t in plan.sends + plan.receives)


@settings(max_examples=24, deadline=None, derandomize=True)
@given(layouts())
def test_nothing_travels_to_the_same_layout(layout: Layout) -> None:
    assert all(not plan.sends and not plan.receives for plan in _plans(layout, layout))


@settings(max_examples=24, deadline=None, derandomize=True)
@given(layouts())
def test_nothing_travels_from_copies(layout: Layout) -> None:
    copies = Layout.copies(layout.shape, layout.grid)
    assert all(not plan.sends for plan in _plans(copies, layout))


def test_layouts_that_cannot_become_each_other() -> None:
    four = Layout.blocks((8,), ProcessGrid((4,)))
    with pytest.raises(LayoutError, match="of shape"):
        redistribute(four, Layout.blocks((9,), ProcessGrid((4,))), 0)
    with pytest.raises(LayoutError, match="from 4 ranks to 2"):
        redistribute(four, Layout.blocks((8,), ProcessGrid((2,))), 0)


N = 100_000


def _cases(p: int) -> dict[str, tuple[Layout, Layout]]:
    """Redistributions over a grid of p x p in which every rank exchanges elements with few others."""
    grid = ProcessGrid((p, p))
    rows = Layout((N, N), grid, [Block(0), Block(1)])
    sizes = [N // p + (1 if part % 2 else -1) for part in range(p)]
    sizes[-1] += N - sum(sizes)
    return {
        "other sizes": (rows, Layout((N, N), grid, [Block(0, tuple(sizes)), Block(1)])),
        "row copies to column copies": (Layout((N,), grid, [Block(0)]), Layout((N,), grid, [Block(1)])),
        "a row's copies to all": (Layout((N,), grid, [Block(0)]), Layout((N,), grid, [Whole()])),
        "a row's copies to a line": (Layout((N,), grid, [Block(0)]), Layout.chosen((N,), p * p)),
        "a column's copies to a line": (Layout((N,), grid, [Block(1)]), Layout.chosen((N,), p * p)),
        "cyclic": (
            Layout((N, N), grid, [Cyclic(0, 64), Block(1)]),
            Layout((N, N), grid, [Cyclic(0, 96), Block(1)]),
        ),
    }


@pytest.mark.parametrize("name", list(_cases(2)))
def test_only_ranks_that_exchange_something_are_looked_at(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = _cases(36)[name]
    looked = 0
    real = ProcessGrid.rank

    def counted(grid: ProcessGrid, coords: tuple[int, ...]) -> int:
        nonlocal looked
        looked += 1
        return real(grid, coords)

    monkeypatch.setattr(ProcessGrid, "rank", counted)
    plan = redistribute(source, target, 615)
    assert looked <= len(plan.sends) + len(plan.receives) + 2


def test_fewest_bytes_for_a_matrix_that_is_dealt_out_again() -> None:
    shape, grid = (24, 36), ProcessGrid((2, 3))
    source = Layout(shape, grid, [Cyclic(0, 2), Cyclic(1, 3)])
    target = Layout(shape, grid, [Cyclic(0, 3), Cyclic(1, 2)])
    moved = 0
    for rank in range(6):
        sent = redistribute(source, target, rank).counts(8)
        assert sent.messages_sent <= 5
        moved += sent.bytes_sent
    stay = sum(
        source.owner(index) == target.owner(index) for index in product(range(shape[0]), range(shape[1]))
    )
    assert moved == 8 * (24 * 36 - stay)
