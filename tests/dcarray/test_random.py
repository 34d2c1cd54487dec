"""Streams are NumPy's, arrays are ours."""

import pickle

import numpy as np
import pytest

import dcarray as dc

CALLS = [
    ("random", (5,)), ("normal", (0, 1, (2, 3))), ("integers", (0, 10, 7)),
    ("standard_normal", ((4,), np.float32)),
    ("exponential", (2.0, 3)), ("choice", (10, 4)), ("permutation", (6,)), ("uniform", ([0, 1], [1, 2])),
    ("multivariate_normal", ([0, 0], [[1, 0], [0, 1]], 3)), ("poisson", (3, (2, 2))),
    ("random", ()), ("bytes", (4,)),
]  # fmt: skip


@pytest.mark.parametrize("name, args", CALLS)
def test_generator(name, args):
    want, got = getattr(np.random.default_rng(7), name)(*args), getattr(dc.random.default_rng(7), name)(*args)
    if isinstance(want, np.ndarray):
        assert type(got) is dc.ndarray and got.dtype == want.dtype and np.array_equal(np.asarray(got), want)
    else:
        assert type(got) is type(want) and got == want


def test_arrays_as_arguments():
    a, b = np.random.default_rng(3), dc.random.default_rng(3)
    out = dc.zeros(20000)
    assert b.random(out=out) is out and np.array_equal(np.asarray(out), a.random(20000))
    x, y = np.arange(30000), dc.arange(30000)
    a.shuffle(x)
    b.shuffle(y)
    assert np.array_equal(np.asarray(y), x)
    assert np.array_equal(np.asarray(b.normal(y[:5], 2)), a.normal(x[:5], 2))
    assert np.array_equal(np.asarray(b.permuted(y)), a.permuted(x))


def test_generator_is_numpys():
    g = dc.random.default_rng(5)
    assert isinstance(g, np.random.Generator) and dc.random.default_rng(g) is g
    assert type(g.bit_generator) is np.random.PCG64
    assert type(g.spawn(2)[0]) is type(g)
    assert np.array_equal(g.spawn(1)[0].random(3), np.random.default_rng(5).spawn(3)[2].random(3))
    again = pickle.loads(pickle.dumps(g))
    assert type(again) is type(g) and again.random() == g.random()
    assert np.array_equal(
        np.asarray(dc.random.Generator(dc.random.Philox(1)).random(3)),
        np.random.Generator(np.random.Philox(1)).random(3),
    )


def test_legacy_shares_the_global_state():
    dc.random.seed(4)
    a = dc.random.rand(3)
    np.random.seed(4)
    assert type(a) is dc.ndarray and np.array_equal(np.asarray(a), np.random.rand(3))
    r, s = dc.random.RandomState(9), np.random.RandomState(9)
    assert np.array_equal(np.asarray(r.randn(2, 2)), s.randn(2, 2)) and type(r.rand(2)) is dc.ndarray
    assert set(dir(np.random)) <= set(dir(dc.random))
    with pytest.raises(ValueError):
        dc.random.default_rng(-1)


def test_sequences_are_shuffled_in_place():
    plain, ours = list(range(20)), list(range(20))
    np.random.default_rng(3).shuffle(plain)
    dc.random.default_rng(3).shuffle(ours)
    assert ours == plain != list(range(20))
    arrays = [dc.arange(k) for k in range(6)]
    dc.random.seed(1)
    dc.random.shuffle(arrays)
    np.random.seed(1)
    order = list(range(6))
    np.random.shuffle(order)
    assert [len(a) for a in arrays] == order


def test_seeds_may_be_wrapped():
    for kind in ("PCG64", "MT19937", "SFC64", "Philox"):
        bits = getattr(dc.random, kind)(dc.asarray([1, 2, 3]))
        assert isinstance(bits, getattr(np.random, kind)) and isinstance(bits, getattr(dc.random, kind))
        assert bits.random_raw() == getattr(np.random, kind)([1, 2, 3]).random_raw()
    assert dc.random.PCG64 == np.random.PCG64
