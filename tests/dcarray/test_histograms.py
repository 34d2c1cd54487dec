"""Histograms: NumPy's, to the bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.api.functions import histograms

RNG = np.random.default_rng(3)
X = RNG.normal(size=300_003)
W = RNG.random(300_003)
EAGER: dict[str, Any] = {"jit": "eager", "eager_below": 0}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("options", [
    {}, {"bins": 1}, {"bins": 1000}, {"bins": 4096, "range": (-1, 1)},
    {"bins": 17, "range": (-1.5, -1.5)}, {"bins": 7, "range": (5.0, 9.0)},
    {"bins": 30, "density": True}, {"bins": np.int32(12)}, {"bins": 100_000},
    {"bins": 3000, "range": (1e16, 1e16 + 7000)}, {"bins": 10, "range": (0.1, 0.1 + 1e-13)},
    {"bins": 5, "range": (0.0, 1e-300)}, {"bins": 999, "range": (-1e-9, 3.3)}, {"bins": [-1, 0, 3]},
    {"bins": "auto"},
])  # fmt: skip
def test_histogram(options: dict[str, Any], threads: int) -> None:
    for weights in (None, W, W.astype("f4")) if options.get("bins") != "auto" else (None,):
        want = np.histogram(X, weights=weights, **options)
        with dc.options(threads=threads, **EAGER):
            got = np.histogram(dc.asarray(X), weights=weights, **options)
        for a, b in zip(want, got, strict=True):
            assert type(b) is dc.ndarray and a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@settings(derandomize=True, deadline=None, max_examples=12)
@given(st.floats(-1e3, 1e3), st.floats(1e-6, 1e3), st.integers(1, 300))
def test_values_at_and_beside_edges(first: float, width: float, bins: int) -> None:
    limits = (first, first + width)
    edges = np.histogram_bin_edges(np.zeros(0), bins, limits)
    x = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)])
    want = np.histogram(x, bins, limits, weights=x)
    with dc.options(**EAGER):
        got = np.histogram(dc.asarray(x), bins, limits, weights=x)
    for a, b in zip(want, got, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.one_process("over ranks it is the form of blocks")
def test_it_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    counted = histograms._counted
    monkeypatch.setattr(histograms, "_counted", lambda *args: calls.append(1) or counted(*args))
    with dc.options(**EAGER):
        x = dc.asarray(X)
        np.histogram(x + 1, 20)
        np.histogram(x.reshape(3, -1) * 2, 20, weights=dc.asarray(W.reshape(3, -1)))
        np.histogram(x, [0.0, 1.0])
    assert len(calls) == 2


def test_errors(same: Callable[..., None]) -> None:
    a = np.array([1.0, 2.0, np.nan])
    for x in (a, np.array([1.0, np.inf]), np.zeros(0), np.ones(5)):
        same(np.histogram, x)
        same(np.histogram, x, 4, (0, 2))
        same(np.histogram, x, 0)
        same(np.histogram, x, -3)
        same(np.histogram, x, 2.5)
        same(np.histogram, x, 3, (2, 1))
        same(np.histogram, x, 3, (np.nan, 1))
        same(np.histogram, x, 3, weights=np.ones(4))


@settings(derandomize=True, deadline=None, max_examples=24)
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=40), st.integers(1, 50), st.booleans(), st.booleans())
def test_edges(values: list[float], bins: int, limited: bool, weighted: bool) -> None:
    a = np.array(values)
    a[::3] = np.round(a[::3] * 4) / 4
    limits = (-1, 1) if limited else None
    weights = np.arange(1.0, a.size + 1) if weighted else None
    try:
        want = np.histogram(a, bins, limits, weights=weights)
    except ValueError:
        with dc.options(**EAGER), pytest.raises(ValueError):
            np.histogram(dc.asarray(a), bins, limits, weights=weights)
        return
    with dc.options(**EAGER):
        got = np.histogram(dc.asarray(a), bins, limits, weights=weights)
    for p, q in zip(want, got, strict=True):
        np.testing.assert_array_equal(p, q)
