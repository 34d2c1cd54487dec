"""Edge cases of NumPy's functions on distributed arrays: NumPy's results or errors."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rank_keys import equal, outcome

import dcarray as dc

ARRAYS = np.arange(24.0).reshape(4, 6), np.arange(12), np.zeros((0, 3))


def _set(x: Any, key: Any, value: Any) -> None:
    x[key] = value


CALLS: list[Callable[[Any, Any, Any], Any]] = [
    lambda a, b, e: np.put(a, 3, 7),
    lambda a, b, e: _set(np.zeros((3, 0)), np.ones(3, bool), np.ones((3, 0))),
    lambda a, b, e: _set(e.T, np.ones(3, bool), np.ones((3, 0))),
    lambda a, b, e: np.fft.rfft2(a, axes=(1, 0, 1)),
    lambda a, b, e: np.fft.irfftn(a, axes=(0, 1, 0)),
    lambda a, b, e: np.fft.fft2(a, axes=(0, 7)),
    lambda a, b, e: np.transpose(b, 0),
    lambda a, b, e: a.transpose(axes=(1, 0)),
    lambda a, b, e: b.reshape(),
    lambda a, b, e: np.put(a, [3, 99], 7),
    lambda a, b, e: np.place(a, a > 3, []),
    lambda a, b, e: _set(a, ([0, 1], [0, 1]), 1j),
    lambda a, b, e: _set(a, [0, 1], np.ones((3, 6))),
    lambda a, b, e: _set(a, (slice(None), [0, 9]), 1),
    lambda a, b, e: a[[]],
    lambda a, b, e: e[[]],
    lambda a, b, e: e[np.zeros((0, 3), bool)],
    lambda a, b, e: np.bincount(b, weights=b[::-1]),
    lambda a, b, e: np.bincount(-b),
    lambda a, b, e: np.median(e),
    lambda a, b, e: np.sort(e[:, 0]),
    lambda a, b, e: np.argsort(e[:, 1], kind="stable"),
    lambda a, b, e: np.unique(e),
    lambda a, b, e: np.searchsorted(e[:, 0], b),
    lambda a, b, e: np.searchsorted(b, [3, 4.5]),
    lambda a, b, e: np.quantile(a, 1.5),
    lambda a, b, e: np.percentile(a, 50, axis=(0, 1)),
    lambda a, b, e: np.percentile(a, [1, 50], axis=1),
    lambda a, b, e: np.median(a, axis=0, keepdims=True),
    lambda a, b, e: np.median(a, axis=(0, 1)),
    lambda a, b, e: np.median(a, axis=7),
    lambda a, b, e: np.nanmedian(np.where(a > 12, np.nan, a), axis=1),
    lambda a, b, e: np.nanquantile(np.where(a < 12, np.nan, a), 0.25, axis=1),
    lambda a, b, e: np.delete(b, 20),
    lambda a, b, e: np.delete(b, b > 3),
    lambda a, b, e: np.delete(a, 6, -1),
    lambda a, b, e: np.delete(a, -7, 1),
    lambda a, b, e: np.delete(a, np.int64(-6), 1),
    lambda a, b, e: np.repeat(a, [1, 2, 3, 4], axis=0),
    lambda a, b, e: np.tile(a, (-1, 2)),
    lambda a, b, e: np.histogram(a, 0),
    lambda a, b, e: np.histogram(e),
    lambda a, b, e: np.histogram(a, range=(3, 1)),
    lambda a, b, e: b[np.array([1.5])],
    lambda a, b, e: b[np.array([1, 12])],
    lambda a, b, e: b[np.array([1, -13])],
    lambda a, b, e: a[[0, 1], [0, 1, 2]],
    lambda a, b, e: a[..., [0, 1]],
    lambda a, b, e: a[np.array([[0, 1]]), ..., None],
    lambda a, b, e: np.add.at(b, [0, 1], 0.5),
    lambda a, b, e: np.add.at(b, [0, 0, 99], 1),
    lambda a, b, e: np.negative.at(a, [0, 0]),
    lambda a, b, e: np.subtract.at(a, (slice(None), [1, 1]), b[:2].astype(float)),
    lambda a, b, e: np.maximum.at(b, a[0].astype(int), 5),
    lambda a, b, e: np.fill_diagonal(b, 3),
    lambda a, b, e: np.fill_diagonal(a, [1, 2]),
    lambda a, b, e: np.copyto(a, np.ones(7), where=a > 3),
    lambda a, b, e: np.copyto(b[:1], b[:3], where=b[:1] > -1),  # one rank's part alone does not fit
    lambda a, b, e: np.copyto(b, 1, where=np.ones((3, 12), bool)),
    lambda a, b, e: np.broadcast_to(b, (2, 12))[:, :0].__iadd__(1),
    lambda a, b, e: np.take_along_axis(a, np.zeros((4, 1), float), 1),
    lambda a, b, e: np.put_along_axis(a, np.zeros((4, 1), int), 5, 1),
    lambda a, b, e: np.take(e, [1], mode="wrap"),
    lambda a, b, e: np.compress([1, 0, 1], b),
    lambda a, b, e: np.compress([0] * 40 + [1], b),
    lambda a, b, e: np.extract(b % 3, b),
    lambda a, b, e: b.sort(),
    lambda a, b, e: a.sort(axis=0),
    lambda a, b, e: a[::2].sort(axis=1),
    lambda a, b, e: np.isin(b, b[::3]),
    lambda a, b, e: np.interp(a, [1, 2], [3, 4], left=0),
    lambda a, b, e: _set(a[1:], a[1:] > 4, a[1:][a[1:] > 4] * 2),
    lambda a, b, e: _set(b, b, b),
    lambda a, b, e: _set(b, b[::-1], b),
    lambda a, b, e: np.where(a > 3),
    lambda a, b, e: np.argwhere(e),
    lambda a, b, e: np.fft.fft(b, 0),
    lambda a, b, e: np.fft.fftshift(a, axes=(0, 5)),
]


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_as_numpy(ranks: int) -> None:
    def program() -> None:
        with warnings.catch_warnings(), dc.options(distribute_above=0, eager_below=0, jit="off"):
            warnings.simplefilter("ignore")
            for call in CALLS:
                plain, ours = [a.copy() for a in ARRAYS], [dc.distribute(a) for a in ARRAYS]
                want, got = outcome(lambda: call(*plain)), outcome(lambda: call(*ours))  # noqa: B023
                equal(want, got)
                if not isinstance(want, Exception):  # before which NumPy writes some elements
                    equal(tuple(plain), tuple(ours))

    dc.comm.run(ranks, program)


@pytest.mark.parametrize("function", [np.nanmedian, lambda x, axis: np.nanquantile(x, 0.5, axis)])
def test_warnings_are_issued_on_all_ranks(function: Callable[..., Any]) -> None:
    values = np.arange(24.0).reshape(6, 4)
    values[5] = np.nan

    def program() -> None:
        with dc.options(distribute_above=0, eager_below=0, jit="off"):
            function(dc.distribute(values), axis=1)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dc.comm.run(3, program)
    assert [str(w.message) for w in caught] == 3 * ["All-NaN slice encountered"]
    assert {w.filename for w in caught} == {__file__}
