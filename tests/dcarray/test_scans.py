"""Cumulative sums, products and extrema, against NumPy's: the same bits."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc

R = np.random.default_rng(21)
KINDS = "?bhilqBHILQefdFD"
UFUNCS = (
    np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.fmin, np.logical_and, np.logical_or,
    np.logical_xor, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.subtract, np.hypot,
)  # fmt: skip
FUNCTIONS = [getattr(np, name) for name in ("cumsum", "cumprod", "nancumsum", "nancumprod")]
STANDARD = [getattr(np, name) for name in ("cumulative_sum", "cumulative_prod") if hasattr(np, name)]


def drawn(kind: str, shape: tuple[int, ...], odd: bool = False) -> np.ndarray:
    a = np.asarray(R.normal(size=shape) * 9)
    if odd and kind in "efdFD":
        a[R.random(shape) < 0.1] = np.nan
        a[R.random(shape) < 0.2] = -0.0
    return np.asarray(np.abs(a) if kind in "BHILQ" else a).astype(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_arguments(same, kind):
    with np.errstate(all="ignore"):
        many = ((7,), (4, 6), (2, 3, 4))[KINDS.index(kind) % 3]  # in turn: `test_the_same_bits` mixes them
        for shape in (many, (3, 0), (5, 1), ()):
            a = drawn(kind, shape)
            for f in FUNCTIONS:
                for axis in (None, 0, -1, 1, 5, (0,)):
                    same(f, a, axis)
                same(f, a.T, 0)
                same(f, a, dtype=np.float32)
                same(f, a, 0, np.int16)
            for f in STANDARD:
                for initial in (False, True):
                    same(f, a, include_initial=initial)
                    same(f, a, axis=-1, include_initial=initial)
                    same(f, a, axis=0, dtype=np.float64, include_initial=initial)
            for f in UFUNCS:
                same(f.accumulate, a)
                same(f.accumulate, a, -1)
                same(f.accumulate, a, axis=1)
                same(f.accumulate, a, dtype=np.float64)
        a = drawn(kind, (4, 6))
        for out in (np.zeros((4, 6), a.dtype), np.zeros((4, 6)), np.zeros((4, 6), int), np.zeros((6, 4))):
            same(np.cumsum, a, 0, out=out)
            same(lambda x, out: np.cumsum(x, 1, out=out) is out, a, out)
            same(np.maximum.accumulate, a, 0, None, out)
        same(lambda x: x.cumsum(), a)
        same(lambda x: x.cumprod(axis=1), a)
        same(lambda x: np.maximum.accumulate(x, out=x), a)
        same(lambda x: np.cumsum(x, 0, a.dtype, x), a)


@settings(derandomize=True, deadline=None, max_examples=32)
@given(st.data())
def test_the_same_bits(data):
    kind = data.draw(st.sampled_from("?bhiqBHIQfd"))
    shape = tuple(data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=3)))
    a = drawn(kind, shape, data.draw(st.booleans()))
    a = data.draw(st.sampled_from((a, a.T, a[..., ::-1], np.asfortranarray(a))))
    axis = data.draw(st.integers(0, a.ndim - 1))
    ufunc = data.draw(st.sampled_from(UFUNCS[:9]))
    before = data.draw(
        st.sampled_from((lambda x: x, lambda x: np.exp(x * 0.1), lambda x: np.where(x > 1, x, 2)))
    )
    after = data.draw(
        st.sampled_from((lambda x: x, lambda x: np.sqrt(abs(x)), lambda x: x[..., 1:] == x[..., :-1]))
    )
    jit = data.draw(st.sampled_from(("off", "eager", "eager")))
    with warnings.catch_warnings(), np.errstate(all="ignore"), dc.options(eager_below=0, jit=jit, debug=True):
        warnings.simplefilter("ignore")
        want = after(ufunc.accumulate(before(a), axis))
        got = np.asarray(after(ufunc.accumulate(before(dc.asarray(a)), axis)))
    assert got.dtype == want.dtype
    assert np.array_equal(got, want, equal_nan=want.dtype.kind == "f")
    assert want.dtype.kind != "f" or np.array_equal(np.signbit(got)[want == 0], np.signbit(want)[want == 0])


@pytest.mark.one_process("running sums along an axis that is cut are added in another order")
@pytest.mark.parametrize(
    "shape", [(9, 3000), (3000, 9), (5, 40, 2100), (2100, 5, 40), (40, 2100, 5), (50_000,)]
)
def test_large(shape):
    a = R.normal(size=shape)
    for threads in (1, 3):
        with dc.options(eager_below=0, jit="eager", strict=True, threads=threads):
            x = dc.asarray(a)
            for axis in range(a.ndim):
                assert np.array_equal(np.cumsum(x * x, axis=axis), np.cumsum(a * a, axis=axis))
                twice = np.cumsum(np.cumsum(x, axis=axis), axis=0) - x
                assert np.array_equal(twice, np.cumsum(np.cumsum(a, axis=axis), axis=0) - a)


@pytest.mark.one_process("running sums along an axis that is cut are added in another order")
def test_in_place_and_into_parts():
    a = R.normal(size=(30, 40))
    with dc.options(eager_below=0, jit="eager"):
        for axis in (0, 1):
            x, b = dc.asarray(a.copy()), a.copy()
            np.cumsum(x, axis=axis, out=x)
            np.cumsum(b, axis=axis, out=b)
            x[1:, 1:] = np.cumsum(x[:-1, :-1] + 1, axis=axis)
            b[1:, 1:] = np.cumsum(b[:-1, :-1] + 1, axis=axis)
            assert np.array_equal(x, b)


@pytest.mark.one_process("how many kernels run")
def test_the_values_are_not_stored():
    a, b = R.normal(size=(2, 300, 400))
    with dc.options(eager_below=0, jit="eager", strict=True):
        x, y = dc.asarray(a), dc.asarray(b)
        before, kernels = dc.report().bytes, dc.report().kernels
        got = np.cumsum(x * y + 1, axis=1)
        dc.evaluate(got)
        assert dc.report().kernels - kernels == 1
        assert dc.report().bytes - before < 3.1 * a.nbytes
    assert np.array_equal(got, np.cumsum(a * b + 1, axis=1))


def test_exceptions_are_numpys():
    a = np.full((20, 30), 1e300)
    with dc.options(eager_below=0, jit="eager"), np.errstate(over="raise"):
        with pytest.raises(FloatingPointError, match="overflow encountered in accumulate"):
            np.asarray(np.cumprod(dc.asarray(a), axis=0))
        with pytest.raises(FloatingPointError, match="overflow encountered in accumulate"):
            np.asarray(np.cumsum(dc.asarray(a) * 1e8, axis=1))
