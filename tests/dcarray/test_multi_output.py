"""Ufuncs with two results, against NumPy's: the same bits."""

import numpy as np
import pytest

import dcarray as dc

R = np.random.default_rng(8)
ODD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 2.5, -7.0, 1e300, 5e-324])
PAIRS = np.meshgrid(ODD, ODD)


def bits(a: np.ndarray) -> np.ndarray:
    """With one NaN for all."""
    return np.where(np.isnan(a), np.nan, a).view(f"u{a.itemsize}") if a.dtype.kind == "f" else a


@pytest.mark.parametrize("kind", "?bhiqBHIQefdD")
def test_arguments(same, kind):
    with np.errstate(all="ignore"):
        a = (np.abs(R.normal(size=(4, 6))) * 20).astype(kind)
        for other in (
            a[::-1] + a.dtype.type(1), a[0], 3, -2, 0, -1, 2.5, np.float32(3), np.int64(7), a.T, "x",
        ):  # fmt: skip
            same(np.divmod, a, other)
            same(np.divmod, other, a)
            same(divmod, a, other)
        same(np.modf, a)
        same(np.modf, a, np.zeros((4, 6)))
        same(np.divmod, a, 3, out=(np.zeros((4, 6)), np.zeros((4, 6))))


@pytest.mark.parametrize("kind", "fd")
@pytest.mark.parametrize("jit", ["off", "eager"])
def test_the_same_bits(kind, jit):
    with np.errstate(all="ignore"), dc.options(eager_below=0, jit=jit):
        x = np.concatenate([R.normal(size=500) * 100, PAIRS[0].ravel()]).astype(kind)
        y = np.concatenate([R.normal(size=500) * 3, PAIRS[1].ravel()]).astype(kind)
        for want, got in zip(np.divmod(x, y), np.divmod(dc.asarray(x), dc.asarray(y)), strict=True):
            assert np.array_equal(bits(np.asarray(got)), bits(want))
        for want, got in zip(np.modf(x), np.modf(dc.asarray(x)), strict=True):
            assert np.array_equal(bits(np.asarray(got)), bits(want))
        for want, got in zip(divmod(x * 2, 7), divmod(dc.asarray(x) * 2, 7), strict=True):
            assert np.array_equal(bits(np.asarray(got)), bits(want))


def test_nothing_is_raised_for_infinity():
    with np.errstate(all="raise"), dc.options(eager_below=0, jit="eager"):
        part, whole = np.modf(dc.asarray(ODD))
        assert np.array_equal(np.asarray(part)[2:4], [0, 0])
        assert np.array_equal(whole, np.modf(ODD)[1], equal_nan=True)
