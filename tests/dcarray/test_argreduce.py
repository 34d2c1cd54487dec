"""The places of extrema, against NumPy's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc

R = np.random.default_rng(11)
KINDS = "?bhilqBHILQefdFD"
BOTH = (np.argmax, np.argmin)


def drawn(kind: str, shape: tuple[int, ...], odd: int) -> np.ndarray:
    a = np.asarray(np.round(R.normal(size=shape) * 9))
    if odd and kind in "efdFD":
        a[R.random(shape) < 0.2] = (0, np.nan, -np.inf)[odd]
        a[(R.random(shape) < 0.5) & np.isfinite(a)] *= 0.0
    return np.abs(a).astype(kind) if kind in "BHILQ" else a.astype(kind)


@pytest.mark.parametrize("f", BOTH, ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_arguments(same, f, kind):
    for shape in ((7,), (4, 6), (2, 3, 4), (3, 0), ()):
        for odd in (0, 1, 2):
            a = drawn(kind, shape, odd)
            for axis in (None, 0, -1, 1, 5, (0,), "x"):
                same(f, a, axis)
                same(f, a.T, axis=axis, keepdims=True)
    a = drawn(kind, (4, 6), 0)
    same(f, a, 0, np.zeros(6, int))
    same(f, a, 0, out=np.zeros(6, int), keepdims=False)
    same(f, a, 0, out=np.zeros(6, np.int8))
    same(lambda x: x.argmax(1), a)
    same(lambda x: x.argmin(keepdims=True), a)


@settings(derandomize=True, deadline=None, max_examples=24)
@given(st.data())
def test_against_numpy(data):
    kind = data.draw(st.sampled_from("?bhiqBHIQfd"))
    shape = tuple(data.draw(st.lists(st.integers(1, 50), min_size=1, max_size=3)))
    a = drawn(kind, shape, data.draw(st.integers(0, 2)))
    a = data.draw(st.sampled_from((a, a.T, a[..., ::-1], np.asfortranarray(a))))
    axis = data.draw(st.sampled_from([None, *range(a.ndim)]))
    f = data.draw(st.sampled_from(BOTH))
    change = data.draw(st.sampled_from((lambda x: x, lambda x: x ^ True if kind == "?" else x * 2 + x)))
    jit = data.draw(st.sampled_from(("off", "eager")))
    with np.errstate(all="ignore"), dc.options(eager_below=0, jit=jit):
        want, got = f(change(a), axis=axis), f(change(dc.asarray(a)), axis=axis)
    assert np.asarray(got).dtype == np.asarray(want).dtype
    assert np.array_equal(np.asarray(got), want)


def test_long_rows_and_many_threads():
    a = R.normal(size=(3, 200_000))
    a[1, 150_000:] = a.max()
    a[2, 77_777] = np.nan
    for threads in (1, 2, 5):
        with dc.options(eager_below=0, jit="eager", strict=True, threads=threads):
            x = dc.asarray(a)
            for f in BOTH:
                assert np.array_equal(f(x, axis=1), f(a, axis=1))
                assert f(x) == f(a) == 2 * 200_000 + 77_777
                assert f(x[:2] + 1) == f(a[:2] + 1)


def test_the_values_are_not_stored():
    a, b = R.normal(size=(2, 300, 400))
    with dc.options(eager_below=0, jit="eager", strict=True):
        x, y = dc.asarray(a), dc.asarray(b)
        before = dc.report().bytes
        got = np.argmax(x * y + 1, axis=1)
        dc.evaluate(got)
        assert dc.report().bytes - before < 3 * a.nbytes  # both read once, row by row
    assert np.array_equal(got, np.argmax(a * b + 1, axis=1))


def test_nothing_is_raised_for_nan():
    a = np.array([1.0, np.nan, 3.0] * 40)
    with np.errstate(all="raise"), dc.options(eager_below=0, jit="eager"):
        assert np.argmax(dc.asarray(a)) == 1
        assert np.array_equal(np.argmin(dc.asarray(a).reshape(40, 3), axis=1), [1] * 40)
