"""Reductions with a mask, an initial value or a place for the result, against NumPy's."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc

R = np.random.default_rng(3)
SHAPE = (6, 5)
MASK = R.random(SHAPE) < 0.5
NAMES = ("sum", "prod", "max", "min", "any", "all", "mean")
NAMES += ("nansum", "nanprod", "nanmax", "nanmin", "nanmean")
BARE = ("any", "all", "mean", "nanmean")
ARRAYS = [(R.normal(size=SHAPE) * 5).astype(d) for d in ("?", "b", "i", "q", "B", "Q", "e", "f", "d", "D")]
ARRAYS += [np.where(R.random(SHAPE) < 0.3, np.nan, ARRAYS[8]), ARRAYS[8].T.copy().T, ARRAYS[8][:0]]
MASKS = [MASK, MASK[:1], MASK[:, :1], MASK[0], np.ones((), bool), MASK & False, MASK.astype(int), MASK[None]]


@pytest.mark.parametrize("a", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
@pytest.mark.parametrize("name", NAMES)
def test_where(same, name, a):
    f = getattr(np, name)
    with np.errstate(all="ignore"):
        for axis in (None, 0, -1, (0, 1), (), 7):
            for mask in MASKS:
                same(f, a, axis=axis, where=mask)
                if name not in BARE:
                    same(f, a, axis=axis, where=mask, initial=2, keepdims=True)


@pytest.mark.parametrize("a", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
@pytest.mark.parametrize("name", [name for name in NAMES if name not in BARE])
def test_initial_and_out(same, name, a):
    f = getattr(np, name)
    with np.errstate(all="ignore"):
        for initial in (0, -1.5, True, np.float32(7), 1j, 1 << 80, None, "x"):
            for axis in (None, 1):
                same(f, a, axis=axis, initial=initial)
        for out in (np.zeros(5, a.dtype), np.zeros(5), np.zeros((1, 5), a.dtype), np.zeros(3, a.dtype)):
            same(lambda x, out: f(x, axis=0, out=out) is out, a, out)
            same(lambda x, out: f(x, axis=0, out=out), a, out)
        same(lambda x: f(x, axis=0, out=x[0]), a)


def test_zeros_keep_the_sign_that_numpy_gives_them():
    a = np.full(SHAPE, -0.0)
    calls = ({"where": MASK | True}, {"where": MASK & False}, {"initial": -0.0}, {"initial": 0})
    with dc.options(eager_below=0):
        x = dc.asarray(a)
        for axis in (None, 0):
            for given_ in calls:
                want = np.sum(a, axis=axis, **given_)
                got = np.sum(x, axis=axis, **given_)
                assert np.array_equal(np.signbit(got), np.signbit(want)), (axis, given_)


@pytest.mark.one_process("how many kernels run")
def test_one_kernel_and_no_fallback():
    a = R.normal(size=(300, 200))
    with dc.options(eager_below=0, jit="eager", strict=True):
        x = dc.asarray(a)
        before = dc.report().kernels
        got = np.sum(x * 2 + 1, axis=1, where=x > 0.5)
        dc.evaluate(got)
        assert dc.report().kernels == before + 1
    np.testing.assert_allclose(np.asarray(got), np.sum(a * 2 + 1, axis=1, where=a > 0.5))


@settings(derandomize=True, deadline=None, max_examples=24)
@given(st.data())
def test_against_numpy(data):
    name = data.draw(st.sampled_from(("sum", "max", "min", "any", "all", "prod")))
    kind = data.draw(st.sampled_from("?bhiqBHIQ" + ("fd" if name != "prod" else "")))
    shape = tuple(data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=3)))
    axis = data.draw(st.sampled_from([None, *range(len(shape))]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    a = np.round(rng.normal(size=shape) * 9).astype(kind)  # sums of whole numbers are exact
    mask = rng.random(shape) < data.draw(st.sampled_from((0.0, 0.1, 0.9, 1.0)))
    more = {} if name in ("any", "all") else {"initial": data.draw(st.integers(0, 5))}
    f = getattr(np, name)
    jit = data.draw(st.sampled_from(("off", "eager")))
    with warnings.catch_warnings(), dc.options(eager_below=0, jit=jit):
        warnings.simplefilter("ignore")
        want = f(a, axis=axis, where=mask, **more)
        got = f(dc.asarray(a), axis=axis, where=dc.asarray(mask), **more)
    assert np.asarray(got).dtype == want.dtype
    assert np.array_equal(np.asarray(got), want)
