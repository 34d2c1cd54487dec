"""Bounds in the op-by-op interpreter, which are NumPy's `clip`."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.execution import clipping

SPECIAL = [np.nan, -np.inf, -1.0, -0.0, 0.0, 1.0, 2.0, np.inf]


@pytest.fixture(autouse=True)
def _options() -> Iterator[None]:
    with dc.options(jit="off", eager_below=0):
        yield


@pytest.fixture
def bounded(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each pair of statements was one bound."""
    seen: list[bool] = []
    bound_by = clipping.bound_by
    monkeypatch.setattr(clipping, "bound_by", lambda *args: (seen.append(bound_by(*args)), seen[-1])[1])
    return seen


def agree(got: Any, want: Any) -> None:
    got = np.asarray(got)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(got.view(f"u{got.itemsize}"), want.view(f"u{want.itemsize}"))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_special_values(dtype: str, bounded: list[bool]) -> None:
    """Also those of which equal ones differ: zeros have signs, and of a NaN nothing is less or greater."""
    a = np.array(SPECIAL, dtype)
    for low, high in itertools.product(SPECIAL, SPECIAL):
        agree(np.clip(dc.asarray(a), low, high), np.clip(a, low, high))
    assert bounded.count(True) == 2 * 49  # all but those with a NaN
    for bound in SPECIAL:
        x, number = dc.asarray(a), np.dtype(dtype).type(bound)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            agree(np.where(x < bound, bound, x).astype(dtype), np.where(a < bound, number, a))
            agree(np.where(x > bound, bound, x).astype(dtype), np.where(a > bound, number, a))


def test_what_looks_like_a_bound_is_none(bounded: list[bool]) -> None:
    a, b = np.random.default_rng(1).standard_normal((2, 30, 40))
    x, y = dc.asarray(a), dc.asarray(b)
    agree(np.where(x < 0.5, 0.25, x), np.where(a < 0.5, 0.25, a))
    agree(np.where(x < 0.5, 0.5, y), np.where(a < 0.5, 0.5, b))
    agree(np.where(x[::-1] < 0.5, 0.5, x), np.where(a[::-1] < 0.5, 0.5, a))
    agree(np.where(x < y, 0.5, x), np.where(a < b, 0.5, a))
    agree(np.where(x <= 0.5, 0.5, x), np.where(a <= 0.5, 0.5, a))
    low = x < 0.5
    agree(np.where(low, 0.5, x), np.where(a < 0.5, 0.5, a))
    agree(low.astype("u1"), (a < 0.5).astype("u1"))
    assert not any(bounded)


def test_in_place_and_on_views(bounded: list[bool]) -> None:
    a = np.random.default_rng(2).standard_normal((40, 50))
    x = dc.asarray(a.copy())
    x[1:, ::2] = np.where(x[:-1, ::2] < 0.25, 0.25, x[:-1, ::2])
    x[...] = np.clip(x, -0.5, 0.5)
    b = a.copy()
    b[1:, ::2] = np.where(a[:-1, ::2] < 0.25, 0.25, a[:-1, ::2])
    agree(x, np.clip(b, -0.5, 0.5))
    agree(np.clip(dc.asarray(a.T) * 2.0, 0.0, 1.0), np.clip(a.T * 2.0, 0.0, 1.0))
    assert any(bounded)


def test_no_memory_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the two are done one by one."""

    def fails(*args: Any) -> bool:
        raise MemoryError

    monkeypatch.setattr(clipping, "bound_by", fails)
    a = np.random.default_rng(3).standard_normal(1000)
    agree(np.clip(dc.asarray(a), 0.0, 0.5), np.clip(a, 0.0, 0.5))
