"""Loops with reductions of boolean selections, compiled block by block for all iterations."""

import math
import traceback
import warnings
from typing import Any

import numpy as np
import pytest
from written import written

import dcarray as dc

pytestmark = pytest.mark.eager

N = 150_000  # more than a cache holds
BINS = """
    import numpy as np
    def f(x, r, n):
        top = 1.0
        out = np.zeros(n)
        for i in range(n):
            low, high = top * i / n, top * (i + 1) / n
            mask = np.logical_and(low <= r, r < high)
            out[i] = x[mask].FOLD()
        return out
"""
LABELS = """
    import numpy as np
    def f(x, labels, n):
        out = np.zeros(n, "D")
        for i in range(n):
            out[i] = x[labels == i].FOLD()
        return out
"""


def outcome(f: Any, *args: Any) -> Any:
    """What a call gives, and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result: Any = f(*[a.copy() if isinstance(a, np.ndarray) else a for a in args])
        except Exception as error:
            places = [p for p in traceback.extract_tb(error.__traceback__) if "written" in p.filename]
            result = type(error), str(error), places[-1].lineno
    return result, [(str(w.message), w.category) for w in caught]


def agree(text: str, *args: Any, served: bool) -> None:
    """The same with and without compiled code, which serves or not."""
    f = written(text)
    want, told = outcome(f, *args)
    got, said = outcome(dc.accelerate(f), *args)
    assert said == told
    assert dc.report().loops == served, dc.report()
    if isinstance(want, tuple):
        assert got == want
    else:
        assert got.dtype == want.dtype
        eps = 0 if want.dtype.kind != "f" else 100 * float(np.finfo(want.dtype).eps)
        np.testing.assert_allclose(got, want, rtol=eps, atol=eps)


def data(seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.random(N), rng.random(N)


@pytest.mark.parametrize("fold", ["mean", "sum", "max", "min"])
def test_every_bin_has_elements(fold: str) -> None:
    x, r = data()
    x[::7] *= -1
    agree(BINS.replace("FOLD", fold), x, r, 13, served=True)


@pytest.mark.parametrize("fold", ["mean", "sum", "max", "min"])
def test_some_bins_have_none(fold: str) -> None:
    """NumPy says so: the loop runs as it is written."""
    x, r = data()
    agree(BINS.replace("FOLD", fold), x, r * 0.5, 13, served=fold == "sum")


@pytest.mark.parametrize("fold", ["mean", "sum", "max"])
def test_unselected_special_values(fold: str) -> None:
    x, r = data()
    x[::3] = np.array([np.nan, np.inf, -np.inf])[np.arange(N)[::3] % 3]
    r[::3] = np.array([np.nan, np.inf, 2.0, -1.0])[np.arange(N)[::3] % 4]
    agree(BINS.replace("FOLD", fold), x, r, 9, served=True)


def test_selected_special_values() -> None:
    x, r = data()
    x[5], x[6] = np.inf, np.nan
    r[5], r[6] = 0.1, 0.7
    for fold in ("mean", "sum"):
        agree(BINS.replace("FOLD", fold), x, r, 4, served=True)
        dc.report(reset=True)
    x[7], r[7] = -np.inf, 0.1
    agree(BINS.replace("FOLD", "sum"), x, r, 4, served=False)  # NumPy warns


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i2", "u1", "?", "c16"])
@pytest.mark.parametrize("fold", ["mean", "sum", "max", "any", "std"])
def test_dtypes(dtype: str, fold: str) -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(0, 100, N).astype(dtype)
    labels = rng.integers(0, 11, N)
    f = written(LABELS.replace("FOLD", fold))
    want, told = outcome(f, x, labels, 11)
    got, said = outcome(dc.accelerate(f), x, labels, 11)
    assert said == told and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-6 if dtype in ("f4", "c16") else 1e-12)


def test_two_axes_and_selected_rows() -> None:
    text = """
        import numpy as np
        def f(x, labels, n):
            out, top, all = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(n)
            for i in range(n):
                mask = labels == i
                out[i] = x[mask].mean(axis=0)
                top[i] = x[mask].max(axis=0)
                all[i] = x[mask].sum()
            return np.hstack((out, top, all[:, None]))
    """
    rng = np.random.default_rng(4)
    agree(text, rng.random((N // 2, 3)), rng.integers(0, 9, N // 2), 9, served=True)


def test_sums_are_as_accurate_as_numpys() -> None:
    rng = np.random.default_rng(5)
    x = rng.standard_normal(4 * N) * 10.0 ** rng.integers(-8, 9, 4 * N)
    labels = rng.integers(0, 6, 4 * N)
    f = written(LABELS.replace("FOLD", "sum"))
    theirs, mine = f(x, labels, 6), dc.accelerate(f)(x, labels, 6)
    assert dc.report().loops == 1
    exact = np.array([math.fsum(x[labels == i]) for i in range(6)])
    worst = np.abs(theirs - exact).max()
    assert np.abs(mine - exact).max() <= 2 * worst + 1e-16 * np.abs(exact).max()


def test_means_are_divided_by_numbers_of_elements_that_the_dtype_does_not_have() -> None:
    f = written("""
        def f(x):
            means = []
            for k in range(2):
                means.append(float(x.mean()) + float(x[x > k].mean()))
            return means
    """)
    x = np.full(2**24 + 1, 2.0, np.float32)
    assert dc.accelerate(f)(x) == f(x)
