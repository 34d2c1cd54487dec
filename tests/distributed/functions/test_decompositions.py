"""Decompositions of NumPy's functions on distributed arrays: NumPy's results, and nothing is gathered."""

import random
from types import SimpleNamespace

import pytest
import rank_decompositions
from hypothesis import given, settings
from hypothesis import strategies as st
from launching import launch, needs_mpi
from simulated import on_ranks

import dcarray as dc


@pytest.mark.parametrize("name", rank_decompositions.GROUPS)
@settings(max_examples=5, deadline=None, derandomize=True)
@given(ranks=st.integers(1, 7), seed=st.integers(0, 10**6))
def test_as_numpy(name: str, ranks: int, seed: int) -> None:
    dc.comm.run(ranks, lambda: rank_decompositions.group(random.Random(seed), name))


@pytest.mark.parametrize("name", rank_decompositions.GROUPS)
@on_ranks(3)
def test_nothing_is_gathered(name: str) -> None:
    with dc.options(distribute_above=0, eager_below=0, jit="off", strict=True):
        plain = rank_decompositions.arrays(random.Random(1), small=False)
        given = SimpleNamespace(**{key: dc.distribute(a) for key, a in plain.items()})
        dc.evaluate(rank_decompositions.GROUPS[name](given))  # strict: what is gathered raises


@needs_mpi
def test_under_mpi() -> None:
    done = launch(3, "-m", "rank_decompositions", timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ended") == 3
