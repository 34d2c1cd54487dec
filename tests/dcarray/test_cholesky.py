"""The Cholesky factor by LAPACK on rows: NumPy's up to rounding, and its errors."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.lowering.runtime import openblas


def matrix(n: int, dtype: str, seed: int = 0) -> Any:
    r = np.random.default_rng(seed)
    x = r.normal(size=(n, n)) + (1j * r.normal(size=(n, n)) if dtype in "FD" else 0)
    a = x @ x.conj().T + n * np.eye(n)
    return a.astype(dtype)


@given(
    st.integers(2, 70), st.sampled_from("fdFD"), st.booleans(), st.integers(0, 9),
    st.sampled_from(["C", "F", "window", "junk"]),
)  # fmt: skip
@settings(max_examples=24, deadline=None)
def test_factors(n: int, dtype: str, upper: bool, seed: int, kind: str) -> None:
    a = matrix(n, dtype, seed)
    if kind == "F":
        a = np.asfortranarray(a)
    elif kind == "window":
        a = np.pad(a, 2)[2:-2, 2:-2]
    elif kind == "junk":  # in the triangle that does not count
        a = a + (np.tril(np.full((n, n), 7, dtype), -1) if upper else np.triu(np.full((n, n), 7, dtype), 1))
    want, before = np.linalg.cholesky(a, upper=upper), a.copy()
    with dc.options(jit="eager", eager_below=0):
        got = np.linalg.cholesky(dc.asarray(a), upper=upper)
        assert type(got) is dc.ndarray and got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-3 if dtype in "fF" else 1e-9, atol=1e-5)
        rest = np.tril(np.asarray(got), -1) if upper else np.triu(np.asarray(got), 1)
        assert not rest.any()
    np.testing.assert_array_equal(a, before)


def test_it_is_served_by_lapack(monkeypatch: pytest.MonkeyPatch) -> None:
    a = matrix(40, "d")
    if openblas.cholesky("d") is None:
        pytest.skip("no OpenBLAS beside NumPy")
    with dc.options(jit="eager", eager_below=0):
        x = dc.asarray(a)
        monkeypatch.setattr(np.linalg._linalg._umath_linalg, "cholesky_lo", None)
        x[:] = np.linalg.cholesky(x) + np.triu(x, k=1)
        monkeypatch.undo()
        np.testing.assert_allclose(
            np.asarray(x), np.linalg.cholesky(matrix(40, "d")) + np.triu(matrix(40, "d"), 1)
        )


@pytest.mark.parametrize("change", ["negative", "nan", "infinite", "oblong", "integers", "stack"])
def test_others_are_numpys(change: str) -> None:
    a = matrix(20, "d")
    if change == "negative":
        a[7, 7] = -1
    elif change == "nan":
        a[7, 7] = np.nan
    elif change == "infinite":
        a[9, 3] = a[3, 9] = np.inf
    elif change == "oblong":
        a = a[:-1]
    elif change == "integers":
        a = np.eye(20, dtype=int) * 4
    else:
        a = np.stack([a, a * 2])

    def outcome(x: Any) -> Any:
        try:
            with np.errstate(all="ignore"):
                return np.asarray(np.linalg.cholesky(x))
        except np.linalg.LinAlgError as error:
            return str(error)

    want = outcome(a)
    with dc.options(jit="eager", eager_below=0):
        got = outcome(dc.asarray(a))
    if isinstance(want, str):
        assert got == want
    else:
        np.testing.assert_allclose(got, want)
