"""Sorts, partitions and Fourier transforms along one axis, shared out: NumPy's, to the bit."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.core import parts

RNG = np.random.default_rng(3)
SORTS: dict[str, Callable[[Any, int], Any]] = {
    "sort": lambda x, k: np.sort(x, k), "stable": lambda x, k: np.sort(x, k, stable=True),
    "kind": lambda x, k: np.sort(x, axis=k, kind="mergesort"), "argsort": lambda x, k: np.argsort(x, k),
    "method": lambda x, k: x.argsort(k, kind="stable"), "partition": lambda x, k: np.partition(x, 2, k),
    "places": lambda x, k: np.partition(x, (1, -1), axis=k),
    "argpartition": lambda x, k: np.argpartition(x, 1, k),
}  # fmt: skip
QUANTILES: dict[str, Callable[[Any, int], Any]] = {
    "median": lambda x, k: np.median(x, k), "kept": lambda x, k: np.median(x, axis=k, keepdims=True),
    "percentile": lambda x, k: np.percentile(x, 30, k), "quantile": lambda x, k: np.quantile(x, 0.7, axis=k),
    "method": lambda x, k: np.percentile(x, 12.5, axis=k, method="nearest", keepdims=True),
}  # fmt: skip
TRANSFORMS: dict[str, Callable[[Any, int], Any]] = {
    "fft": lambda x, k: np.fft.fft(x, axis=k), "ifft": lambda x, k: np.fft.ifft(x, axis=k, norm="ortho"),
    "irfft": lambda x, k: np.fft.irfft(x, axis=k), "fft2": lambda x, k: np.fft.fft2(x, axes=(k, 0)),
    "ifft2": lambda x, k: np.fft.ifft2(x), "fftn": lambda x, k: np.fft.fftn(x, norm="forward"),
    "ifftn": lambda x, k: np.fft.ifftn(x, axes=(k, k)), "irfft2": lambda x, k: np.fft.irfft2(x, axes=(0, k)),
    "irfftn": lambda x, k: np.fft.irfftn(x, axes=(k,), norm="ortho"),
    "irfftn of all": lambda x, k: np.fft.irfftn(x),
}  # fmt: skip
REAL: dict[str, Callable[[Any, int], Any]] = {
    "rfft": lambda x, k: np.fft.rfft(x, axis=k), "rfft2": lambda x, k: np.fft.rfft2(x, axes=(k, 0)),
    "rfftn": lambda x, k: np.fft.rfftn(x),
    "rfftn of one": lambda x, k: np.fft.rfftn(x, axes=[k], norm="forward"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def three(monkeypatch: pytest.MonkeyPatch) -> Any:
    """However little there is to do, three threads do it."""
    monkeypatch.setattr(parts, "LEAST", 1e-12)
    with dc.options(threads=3, eager_below=0, jit="off"):
        yield


def arrays(dtype: str) -> list[Any]:
    shapes = [(4, 5), (7, 3, 6), (2, 2), (1, 9), (9, 1), (40, 30)]
    found: list[Any] = []
    for shape in shapes:
        a = RNG.integers(-9, 9, shape).astype(dtype)
        if dtype in "fdFD":
            a.flat[1], a.flat[-1] = np.nan, -0.0
        found += [a, a.T, a[::-1], a[..., ::2]]
    return found


@pytest.mark.parametrize("dtype", ["d", "f", "l", "b", "?", "D", "e"])
@pytest.mark.parametrize("name", list(SORTS))
def test_sorts(name: str, dtype: str) -> None:
    for a in arrays(dtype):
        for k in range(-1, a.ndim):
            try:
                want = SORTS[name](a, k)
            except ValueError as error:
                with pytest.raises(ValueError, match=re.escape(str(error)[:9])):
                    SORTS[name](dc.asarray(a), k)
                continue
            got = SORTS[name](dc.asarray(a.copy(order="K")), k)
            assert type(got) is dc.ndarray and got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("dtype", ["d", "f", "l", "b", "?", "e"])
@pytest.mark.parametrize("name", list(QUANTILES))
def test_quantiles(name: str, dtype: str) -> None:
    for a in arrays(dtype):
        for k in range(-1, a.ndim):
            try:
                want = QUANTILES[name](a, k)
            except TypeError as error:  # of booleans
                with pytest.raises(TypeError, match=re.escape(str(error)[:9])):
                    QUANTILES[name](dc.asarray(a), k)
                continue
            got = QUANTILES[name](dc.asarray(a), k)
            assert got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("dtype", ["d", "f", "D", "F"])
@pytest.mark.parametrize("name", [*TRANSFORMS, *REAL])
def test_transforms(name: str, dtype: str) -> None:
    function = {**TRANSFORMS, **REAL}[name]
    for a in arrays(dtype):
        for k in range(-1, a.ndim):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    want = function(a, k)
                except (TypeError, ValueError) as error:
                    with pytest.raises(type(error), match=re.escape(str(error)[:9])):
                        function(dc.asarray(a), k)
                    continue
                got = function(dc.asarray(a), k)
            assert got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.one_process("over ranks these are forms of blocks")
def test_threads_have_a_part_each(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    together = parts.run
    monkeypatch.setattr(parts, "run", lambda jobs: found.append(len(jobs)) or together(jobs))
    for name, function in {**SORTS, **QUANTILES, **TRANSFORMS, **REAL}.items():
        function(dc.asarray(RNG.normal(size=(30, 40))), -1)
        assert found and min(found) >= 3, name
        del found[:]
    with dc.options(threads=1):
        np.sort(dc.asarray(RNG.normal(size=(30, 40))))
    np.sort(dc.asarray(RNG.normal(size=40)))
    np.sort(dc.asarray(RNG.normal(size=(30, 40))), axis=None)
    np.fft.fft(dc.asarray(RNG.normal(size=(30, 40))), 20)
    assert not found


def test_what_is_pending_is_computed_before() -> None:
    a = RNG.normal(size=(30, 40))
    x = dc.asarray(a.copy())
    y = x * 2 + 1
    x += 1
    np.testing.assert_array_equal(np.sort(y, 0), np.sort(a * 2 + 1, 0))
    np.testing.assert_array_equal(np.sort(x), np.sort(a + 1))


@pytest.mark.parametrize("kind", ["warn", "raise", "ignore"])
def test_numpy_says_what_is_wrong(kind: Any) -> None:
    a = RNG.normal(size=(6, 50)) * 1e308

    def told(x: Any) -> Any:
        with warnings.catch_warnings(record=True) as caught, np.errstate(all=kind):
            warnings.simplefilter("always")
            try:
                found = np.asarray(np.fft.fft(x)).tolist()
            except FloatingPointError as error:
                found = str(error)
        return str(found), [str(w.message) for w in caught]

    assert told(dc.asarray(a)) == told(a)


def test_errors(same: Callable[..., None]) -> None:
    a = RNG.normal(size=(6, 8))
    for function, axis in itertools.product(
        (np.sort, np.argsort, np.fft.fft, np.fft.rfft), (2, -3, 1.5, "x")
    ):
        same(function, a, axis=axis)
    same(np.sort, a, 0, "bubble")
    same(np.sort, a, 0, order="x")
    same(np.sort, a, kind="stable", stable=True)
    same(np.partition, a, 8)
    same(np.partition, a, 1.5)
    same(np.argpartition, a, 2, 0, "stable")
    for norm in ("orthogonal", 1):
        same(np.fft.fft, a, norm=norm)
        same(np.fft.fft2, a, norm=norm)
    for q in (101, -1, "x", [10, 20], np.array(5.0)):
        same(np.percentile, a, q, 0)
    same(np.quantile, a, 0.5, 1, method="middle")
    same(np.quantile, a, 0.5, 1, method="inverted_cdf", weights=np.arange(8.0))
    same(np.quantile, a, 0.5, 1, interpolation="linear")
    same(np.median, a, 0, keepdims=1)
    same(np.median, a, (0, 1))
    same(np.fft.fft2, a, axes=(0, 5))
    same(np.fft.fftn, a, axes=(0, "x"))
    same(np.fft.rfftn, a, axes=(1, 1))
    same(np.fft.irfftn, a, axes=(0, 0))
    same(np.fft.irfft2, a[:, :1])
    same(np.fft.rfft2, a, s=(3, 4))
    same(np.fft.rfft2, a * 1j)
    same(np.fft.fft, a, n=0)
