"""Folds of what masks choose, call by call: from what is chosen, without an array for all that is not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.execution import interpreter, masked_reduction

N = 3000
FOLDS = ["sum", "mean", "max", "min"]


@pytest.fixture(autouse=True)
def recorded() -> Any:
    with dc.options(jit="off", eager_below=0):
        yield


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of all arrays that are made call by call."""
    found: list[int] = []
    allocate = interpreter.allocate

    def noted(shape: Any, dtype: Any) -> Any:
        made = allocate(shape, dtype)
        found.append(made[0].nbytes)
        return made

    monkeypatch.setattr(interpreter, "allocate", noted)
    return found


def outcome(f: Any, *args: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result: Any = f(*args)
        except Exception as error:
            result = type(error), str(error)
    return result, sorted(str(w.message) for w in caught)


def agree(f: Any, *args: Any) -> None:
    """The same type, the same bits and the same warnings as NumPy's."""
    want, told = outcome(f, *args)
    got, said = outcome(f, *[dc.asarray(a.copy()) for a in args])
    assert type(got) is type(want) and said == told
    if isinstance(want, np.generic):
        assert got.dtype == want.dtype and got.tobytes() == want.tobytes()
    else:
        assert got == want


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i2", "u4", "?", "c16"])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.7, 1.0])
def test_folds(fold: str, dtype: str, share: float) -> None:
    rng = np.random.default_rng(1)
    x = (
        (rng.standard_normal((50, 60)) * 40)
        .astype("f8")
        .astype("i8" if dtype == "u4" else dtype)
        .astype(dtype)
    )
    m = rng.random((50, 60)) < share
    agree(lambda x, m: getattr(x[m], fold)(), x, m)
    agree(lambda x, m: getattr((x[m] * x[m]), fold)(), x, m)
    agree(lambda x, m: getattr(x[:, ::2][m[:, ::2]], fold)(), x, m)


@pytest.mark.parametrize("fold", FOLDS)
def test_special_values(fold: str) -> None:
    x = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0, 1.0, -0.0])
    for k in range(1 << 7):
        m = np.array([bool(k >> j & 1) for j in range(7)])
        if not (fold == "sum" and m.any() and not x[m].any()):  # whose zero it is is not NumPy's here
            agree(lambda x, m: getattr(x[m], fold)(), x, m)


def test_no_array_is_made_for_what_is_not_chosen(sizes: list[int]) -> None:
    rng = np.random.default_rng(2)
    x, r = (dc.asarray(rng.random(N)) for _ in "xr")
    for k in range(5):
        mask = (r > k / 10) & (r < k / 10 + 0.01)
        for fold in FOLDS:
            getattr(x[mask], fold)()
        x[mask].sum(), mask.sum()
    assert max(sizes) == N  # of bools


def test_what_is_wanted_besides_is_made() -> None:
    rng = np.random.default_rng(3)
    a, m = rng.random(N), rng.random(N) < 0.5
    x, k = dc.asarray(a), dc.asarray(m)
    chosen = np.where(k, x, -0.0)
    assert chosen.sum() == np.where(m, a, -0.0).sum()
    np.testing.assert_array_equal(np.asarray(chosen), np.where(m, a, -0.0))
    for rest in (0.0, -1.0, 7.0, np.inf, -np.inf, np.nan):
        for fold in (np.sum, np.max, np.min):
            want = fold(np.where(m, a, rest))
            np.testing.assert_allclose(fold(np.where(k, x, rest)), want, rtol=1e-14)


def test_no_memory_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the two are done one by one."""

    def fails(*args: Any) -> bool:
        raise MemoryError

    monkeypatch.setattr(masked_reduction, "reduce_selected", fails)
    rng = np.random.default_rng(4)
    a, m = rng.random(N), rng.random(N) < 0.5
    assert dc.asarray(a)[dc.asarray(m)].max() == a[m].max()


@pytest.mark.parametrize("options", [{}, {"eager_below": 16384}])
def test_counts_wrap_around_in_small_integers(options: dict[str, Any]) -> None:
    a = np.arange(20_000)
    with dc.options(**options):
        for dtype in ("i1", "u1", "i2", "i8"):
            x = dc.asarray(a) > 5
            got = np.sum(x, dtype=dtype)
            assert got.dtype == dtype and got == np.sum(a > 5, dtype=dtype)
            assert dc.asarray(a % 2 == 0).sum(dtype=dtype) == (a % 2 == 0).sum(dtype=dtype)
