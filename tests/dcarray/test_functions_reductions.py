"""Sums, extrema, means and their NaN-aware sisters."""

import gc
import warnings
import weakref

import numpy as np
import pytest

import dcarray as dc

R = np.random.default_rng(5)
M = R.normal(size=(4, 6))
N = np.where(R.random((4, 6)) < 0.3, np.nan, M)
N[2] = np.nan
ARRAYS = [
    M, M.astype(np.float32), M.astype(np.float16), (M * 9).astype(np.int8), (M * 9).astype(np.uint16), M > 0,
    M + 1j * M[::-1], N, M.T, M[:0], M[0], np.array(2.5), R.normal(size=(2, 3, 4)), M.astype(object),
]  # fmt: skip
AXES = (None, 0, 1, -1, (0, 1), (), 3, (0, 0))
PLAIN = (np.sum, np.prod, np.max, np.min, np.amax, np.amin, np.any, np.all, np.mean, np.std, np.var, np.ptp)
NAN = (np.nansum, np.nanprod, np.nanmax, np.nanmin, np.nanmean, np.nanvar, np.nanstd)
SERVED = (np.argmax, np.argmin, np.cumsum, np.cumprod, np.median, np.nanmedian, np.sort, np.argsort)


@pytest.mark.parametrize("a", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
@pytest.mark.parametrize("f", (*PLAIN, *NAN, np.count_nonzero), ids=lambda f: f.__name__)
def test_axes(same, f, a):
    with np.errstate(all="ignore"):
        for axis in AXES:
            same(f, a, axis=axis)
            same(f, a, axis=axis, keepdims=True)


@pytest.mark.parametrize("a", ARRAYS[:-1], ids=lambda a: f"{a.dtype}{a.shape}")
def test_other_arguments(same, a):
    with np.errstate(all="ignore"):
        for f in (np.sum, np.prod, np.mean, np.std, np.var, np.nansum, np.nanmean, np.nanvar, np.trace):
            # where products overflow depends on their order, which is another one on ranks
            b = a % 7 if f is np.prod and a.dtype.kind == "u" else a
            same(f, b, dtype=np.float32)
            same(f, b, dtype=np.complex128)
        for f in (np.sum, np.max, np.mean, np.any, np.nansum, np.nanmax, np.std, np.nanmean):
            same(f, a, where=np.abs(a) > 0.5, **({"initial": 0} if f in (np.max, np.nanmax) else {}))
            # whose sums are of the operand's dtype, so that their last bits depend on the order
            kind = a.dtype if f is np.std and a.dtype == np.float32 else np.float64
            same(lambda x, out, f=f: f(x, axis=-1, out=out), a, np.zeros(a.shape[:-1], kind))
            same(lambda x, out, f=f: f(x, 0, out=out), a, np.zeros(a.shape[1:], np.float32))
            same(lambda x, out, f=f: f(x, 0, out=out), a, np.zeros(9))
        for f in (np.sum, np.prod, np.max, np.min, np.nansum):
            same(f, a, initial=2)
        for f in (np.var, np.std, np.nanvar, np.nanstd):
            for ddof in (1, 0.5, 4, 100):
                same(f, a, 0, ddof=ddof)
            same(f, a, 0, mean=np.zeros((1, 6)))
            same(f, a, 0, correction=1)
        same(np.average, a)
        for w in (np.arange(6.0), np.ones((4, 6)), np.arange(4), np.zeros(4), 2):
            for axis in (None, 0, 1, -1):
                same(np.average, a, axis, w)
                same(np.average, a, axis, w, keepdims=True)
        same(np.average, a, returned=True)
        same(np.sum, a, "x")


@pytest.mark.parametrize("a", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
@pytest.mark.parametrize("f", SERVED, ids=lambda f: f.__name__)
def test_numpys_own(same, f, a):
    for axis in (None, 0, -1, 2):
        same(f, a, axis=axis)


@pytest.mark.parametrize("f", (*PLAIN, *NAN[:5]), ids=lambda f: f.__name__)
def test_large_arrays_fuse_without_a_fallback(f):
    a = R.normal(size=(150, 200))
    with dc.options(strict=True, jit="off"):
        x = dc.asarray(a.copy())
        dc.report(reset=True)
        np.testing.assert_allclose(np.asarray(f(x, axis=0)), f(a, axis=0), rtol=1e-12)
        np.testing.assert_allclose(f(x), f(a), rtol=1e-12)
        assert dc.report().fallbacks == ()


def test_two_reductions_of_columns_compile_as_one():
    a = R.normal(size=(40, 50))
    with dc.options(eager_below=0, jit="eager", cache_dir=None), warnings.catch_warnings():
        warnings.simplefilter("error")
        x = dc.asarray(a.copy())
        got = np.add.reduce(x * 2, 0) + np.add.reduce(x, 0)
        np.testing.assert_allclose(np.asarray(got), 3 * a.sum(0), rtol=1e-12)


def test_what_raises_holds_nothing():
    """NumPy's own ``ufunc.reduce`` would never let go of an array of ours that raises in it."""
    held = []
    for f in (np.sum, np.mean, np.max, np.any, np.linalg.norm):
        for size in (10, 20_000):
            for _ in range(3):
                x = dc.asarray(np.ones(size))
                held.append((f.__name__, size, weakref.ref(x)))
                with pytest.raises(np.exceptions.AxisError):
                    f(x, axis=5)
                del x
    gc.collect()
    assert not [(name, size) for name, size, ref in held if ref() is not None]


def test_what_raised_in_a_sum_raises_once():
    x = np.zeros(20_000)
    with dc.options(jit="eager", eager_below=0):
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="reciprocal"):
            np.sum(np.reciprocal(dc.asarray(x)))
        assert float(np.sum(dc.asarray(x) + 1)) == x.size


@pytest.mark.parametrize("f", (*PLAIN, *NAN, np.count_nonzero, np.average), ids=lambda f: f.__name__)
def test_axes_that_are_none(same, f):
    """NumPy's reductions take no list, and nothing true or false, for an axis."""
    for axis in ([0], [0, 1], True, np.True_, (0, True), (0, 1.0), 1.0, np.array([0, 1]), {0}, "0"):
        same(f, M, axis)
    same(f, M, 2)


def test_a_list_of_axes_in_a_loop():
    def total(a):
        s = 0.0
        for k in range(len(a)):
            s += a[k].sum(axis=[0, 1])
        return s

    with dc.options(jit="eager"), pytest.raises(TypeError, match="'list' object cannot be interpreted"):
        dc.accelerate(total)(np.ones((50, 3, 4)))


def test_deviations_that_are_no_integers_warn_once(same):
    """What comes before NumPy refuses the root is done once."""
    for dtype in (int, np.int8, bool):
        same(np.std, M * 1j, dtype=dtype)
        same(np.std, M, 1, dtype)
    with dc.options(eager_below=0, jit="off"), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with pytest.raises(TypeError, match="sqrt"):
            np.std(dc.asarray(M * 1j) + 1, 1, int)
    assert len(said) == 1
