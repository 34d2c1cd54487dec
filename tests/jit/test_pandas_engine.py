"""pandas' interface for engines, ``df.apply(f, engine=dc)``, compared with pandas' own."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.jit import pandas_engine

pd = pytest.importorskip("pandas", minversion="3", reason="pandas 3 or newer is not installed")


def total(row: Any, power: int = 2) -> float:
    found = 0.0
    for value in row:
        found += value**power
    return found


def frames() -> list[Any]:
    random = np.random.default_rng(3)
    mixed = pd.DataFrame({"a": random.integers(0, 9, 30), "b": random.random(30)})
    holes = pd.DataFrame(np.where(random.random((40, 3)) < 0.2, np.nan, random.random((40, 3))))
    return [mixed, holes, holes.T, mixed.iloc[:0]]


@pytest.mark.parametrize("frame", frames(), ids=range(4))
@pytest.mark.parametrize("axis", [0, 1, "index", "columns"])
@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("function", [total, lambda row: row - row.mean(), lambda row: str(row[0:1]), np.sum])
def test_apply(frame: Any, axis: Any, raw: bool, function: Callable[..., Any]) -> None:
    left = frame.apply(function, axis=axis, raw=raw, engine=dc)
    right = frame.apply(function, axis=axis, raw=raw)
    compare = pd.testing.assert_series_equal if right.ndim == 1 else pd.testing.assert_frame_equal
    compare(left, right)


def test_arguments_and_exceptions() -> None:
    frame = frames()[0]
    expected = frame.apply(total, axis=1, args=(3,))
    pd.testing.assert_series_equal(frame.apply(total, axis=1, args=(3,), engine=dc), expected)
    pd.testing.assert_series_equal(frame.apply(total, axis=1, power=3, engine=dc), expected)
    with pytest.raises(ZeroDivisionError):
        frame.apply(lambda row: 1 // 0, axis=1, engine=dc)


@pytest.mark.parametrize("ignored", [None, "ignore"])
def test_map(ignored: str | None) -> None:
    series = frames()[1][0]
    found = series.map(lambda x: x * 2 if x == x else -1.0, na_action=ignored, engine=dc)
    pd.testing.assert_series_equal(found, series.map(lambda x: x * 2 if x == x else -1.0, na_action=ignored))


def test_the_function_is_accelerated(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    monkeypatch.setattr(pandas_engine, "accelerate", lambda f: seen.append(f) or f)
    frames()[0].apply(total, axis=1, raw=True, engine=dc)
    assert seen == [total]
