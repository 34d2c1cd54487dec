"""NumPy's loops over large arrays, called at once: the same bits, warnings and errors."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.core.native import BUILT
from dcarray.core.ufunc_loops import UFUNCS
from dcarray.tiering import eager_period

pytestmark = pytest.mark.skipif(not BUILT, reason="in C alone")

N = 70_001
R = np.random.default_rng(5)
ODD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -2.5, 1e300, 5e-324])


def sample(kind: str, n: int = N) -> np.ndarray:
    """Values of all kinds, the odd ones anywhere."""
    if kind == "?":
        return R.random(n) < 0.5
    if kind in "fd":
        a = (R.normal(size=n) * 10.0 ** R.integers(-3, 4, n)).astype(kind)
        with np.errstate(over="ignore"):
            a[R.integers(0, n, 200)] = R.choice(ODD, 200).astype(kind)
        return a
    if kind in "FD":
        return (sample("d", n) + 1j * sample("d", n)).astype(kind)
    return R.integers(0, 120, n).astype(kind) - (0 if kind in "BHILQ" else 60)  # type: ignore[no-any-return]


@pytest.fixture
def at_once() -> Iterator[None]:
    """NumPy does at once whatever is asked for."""
    with dc.options(eager_below=16384):
        assert eager_period.begin(60.0)
        yield
        eager_period.end()


def rested() -> None:
    """A loop that has raised a flag is not called for some time: have that be over."""
    x = dc.asarray(np.full(3, 2.0))
    for _ in range(70):
        assert all(len(y) == 3 for y in (x + x, np.sqrt(x), x < x, 2.0 * x, -x, x / x))


def same_bits(found: Any, expected: np.ndarray) -> None:
    assert type(found) is dc.ndarray and found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_array_equal(np.asarray(found), expected)
    if expected.dtype.kind == "f":
        signs = np.signbit(expected) == np.signbit(np.asarray(found))
        assert np.all(signs | np.isnan(expected))


@pytest.mark.parametrize("name", sorted(UFUNCS))
def test_the_same_bits(name: str, at_once: None) -> None:
    ufunc = UFUNCS[name]
    if ufunc.nout != 1 or ufunc.nin > 2 or ufunc.signature is not None:
        pytest.skip("has no such loop")
    with np.errstate(all="ignore"):
        for kind in "?bBhHiIlLfdFD":
            given = [sample(kind) for _ in range(ufunc.nin)]
            try:
                expected = ufunc(*given)
            except (TypeError, ValueError):
                continue
            for _ in range(2):
                same_bits(ufunc(*map(dc.asarray, given)), expected)
            if ufunc.nin == 2:
                number = 0.5 if kind in "fdFD" else 3
                with_number = ufunc(given[0], number)
                same_bits(ufunc(dc.asarray(given[0]), number), with_number)
            square = [a[:70_000].reshape(200, 350) for a in given]
            same_bits(ufunc(*map(dc.asarray, square)), ufunc(*square))
            far = [sample(kind, 3 * N)[::-3] for _ in given]
            same_bits(ufunc(*[dc.asarray(a.base)[::-3] for a in far]), ufunc(*far))


def test_floating_point_errors_are_numpys(at_once: None) -> None:
    rested()
    a = np.abs(R.normal(size=N)) + 1.0
    b = a.copy()
    b[N // 2] = 0.0
    x, y = dc.asarray(a.copy()), dc.asarray(b.copy())
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide"):
            found = x / y
        with np.errstate(all="ignore"):
            same_bits(found, a / b)
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
            x / y
        with warnings.catch_warnings(), np.errstate(all="warn"):
            warnings.simplefilter("error")
            same_bits(x * y, a * b)
