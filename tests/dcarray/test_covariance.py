"""Covariances and correlations: NumPy's, but for the order of sums."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dcarray as dc

RNG = np.random.default_rng(4)
X = RNG.normal(size=(7, 40)) + np.arange(7)[:, None]
RECORDED: dict[str, Any] = {"eager_below": 0, "jit": "eager"}


@pytest.mark.parametrize("kind", ["f8", "f4", "i4", "u1"])
@pytest.mark.parametrize(
    "options", [{}, {"rowvar": False}, {"bias": True}, {"ddof": 3}, {"ddof": 0, "rowvar": False}]
)
def test_covariances(kind: str, options: dict[str, Any]) -> None:
    m = (X * 9).astype(kind)
    for a in (m, m[:, ::2], np.asarray(m, order="F"), m.T):
        with dc.options(**RECORDED):
            x = dc.asarray(a)
            got = np.cov(x, **options)
            assert type(got) is dc.ndarray and got.dtype == np.float64
            np.testing.assert_allclose(np.asarray(got), np.cov(a, **options), rtol=1e-11, atol=1e-12)
            np.testing.assert_array_equal(np.asarray(x), a)


@pytest.mark.parametrize("rowvar", [True, False])
def test_correlations(rowvar: bool) -> None:
    with dc.options(**RECORDED):
        got = np.corrcoef(dc.asarray(X) * 2, rowvar=rowvar)
        np.testing.assert_allclose(np.asarray(got), np.corrcoef(X, rowvar=rowvar), rtol=1e-11, atol=1e-12)
        diagonal = np.corrcoef(dc.asarray(np.repeat(X[:1], 3, 0)))
        assert float(abs(diagonal).max()) <= 1


def test_it_is_recorded() -> None:
    m = RNG.normal(size=(300, 200))
    with dc.options(jit="eager", strict=True):
        np.testing.assert_allclose(np.asarray(np.cov(dc.asarray(m).T)), np.cov(m.T), rtol=1e-10, atol=1e-12)
        got = np.cov(dc.asarray(m).T + 0.0)  # which is pending
        assert "matmul" in str(dc.explain(got))
        np.testing.assert_allclose(np.asarray(got), np.cov(m.T), rtol=1e-10, atol=1e-12)


def test_what_numpy_does_itself(same: Callable[..., None]) -> None:
    same(lambda a: np.cov(a), X[0])
    same(lambda a: np.cov(a), X[:1])
    same(lambda a: np.cov(a, aweights=np.ones(40)), X)
    same(lambda a: np.cov(a, a), X)
    same(lambda a: np.cov(a, ddof=2.5), X)
    same(lambda a: np.cov(a, dtype="f4"), X)
    same(lambda a: np.cov(a), X + 1j)
    same(lambda a: np.cov(a), X[:0])
    same(lambda a: np.corrcoef(a, a[::-1]), X)
    with dc.options(**RECORDED):
        for f in (lambda a: np.cov(a, ddof=40), lambda a: np.cov(a[:, :1]), lambda a: np.corrcoef(a[:, :1])):
            with pytest.warns(RuntimeWarning, match="freedom") as caught, np.errstate(all="ignore"):
                f(dc.asarray(X))
            assert len(caught) == 1
