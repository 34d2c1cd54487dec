"""Distributed sets, medians, quantiles, counts and transforms: NumPy's results, and nothing is gathered."""

import random

import numpy as np
import pytest
import rank_order
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import on_ranks

import dcarray as dc


@pytest.mark.parametrize("name", [*rank_order.EXACT, *rank_order.CLOSE])
@settings(max_examples=10, deadline=None, derandomize=True)
@given(ranks=st.integers(1, 12), seed=st.integers(0, 10**6))
def test_as_numpy(name: str, ranks: int, seed: int) -> None:
    dc.comm.run(ranks, lambda: rank_order.ordered(random.Random(seed), name))


RNG = np.random.default_rng(1)
TABLE, LINE, COUNTS = RNG.random((24, 6)), RNG.random(96) * 9, RNG.integers(0, 9, 96)


@pytest.mark.parametrize("name", [*rank_order.EXACT, *rank_order.CLOSE])
def test_nothing_is_gathered(name: str) -> None:
    call = rank_order.EXACT.get(name) or rank_order.CLOSE[name]

    def program() -> None:
        with dc.options(distribute_above=0, strict=True):
            arrays = [dc.distribute(a) for a in (TABLE, LINE, COUNTS)]
            call(*arrays)  # strict: what is gathered raises
            assert all(a._store.remote is not None and a._store.mem is None for a in arrays)

    dc.comm.run(3, program)


@on_ranks(3)
def test_a_line_sorts_in_place() -> None:
    x = dc.distribute(LINE)
    x.sort()
    assert x._store.remote is not None
    assert np.array_equal(x, np.sort(LINE))
