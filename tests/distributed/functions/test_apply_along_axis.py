"""Distributed `numpy.apply_along_axis`, and which functions are known to be pure."""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from simulated import on_ranks

import dcarray as dc
from dcarray.comm import run
from dcarray.distributed.purity import is_pure

WEIGHTS, SEEN, N = np.array([1.0, 2, 1]), [], 3
RANDOM = np.random.default_rng(0)
count = 0


def _centred(v: Any) -> Any:
    return v - v.mean()


def _running(v: Any) -> Any:
    total = 0
    for a in v:
        total += a
    return total


def _counted(v: Any) -> Any:
    global count
    count += 1
    return v * count


def _kept(v: Any) -> Any:
    SEEN.append(v)
    return v


def _written(v: Any) -> Any:
    WEIGHTS[0] += 1
    return v


def _in_place(v: Any) -> Any:
    v -= v.min()
    return v


def _unlike(v: Any) -> Any:
    """Integers for the first line, where NumPy takes the dtype from, and fractions for others."""
    return int(v[0]) if v[0] <= 0 else v[0] + 0.5


def _stepwise() -> Callable[[Any], Any]:
    n = 0

    def function(v: Any) -> Any:
        nonlocal n
        n += 1
        return v * n

    return function


class _Callable:
    def __call__(self, v: Any) -> Any:
        return v

    def method(self, v: Any) -> Any:
        return v


FINE: list[Callable[..., Any]] = [
    np.sort, np.median, np.linalg.norm, len, _centred, _running,
    lambda v: v.max() - v.min(),
    lambda v: np.convolve(v, WEIGHTS, "same"),
    lambda v: _centred(v)[:2] * N,
    lambda v: math.sqrt(abs(v.sum())),
    lambda v: np.outer(v, v),
    lambda v: np.fft.fft(v),
    lambda v: [sum(x * x for x in v), v[0]],
    functools.partial(np.percentile, q=[10, 50]),
    _unlike,
]  # fmt: skip
NOT_KNOWN: list[Callable[..., Any]] = [
    _counted, _kept, _written, _stepwise(), _Callable(), _Callable().method, SEEN.append, RANDOM.normal,
    np.random.rand, np.vectorize(_counted), np.frompyfunc(_counted, 1, 1), dc.evaluate,
    lambda v: RANDOM.random(3),
    lambda v: np.random.rand(3),
    lambda v: print(v),
    lambda v: np.add(v, 1, out=WEIGHTS),
    lambda v: np.put(WEIGHTS, 0, 1),
    lambda v: dc.comm.Allreduce(v),
    lambda v, c=_Callable(): c(v),  # noqa: B008
]  # fmt: skip


@pytest.mark.parametrize("function", FINE)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_ranks_share_lines(function: Callable[..., Any], axis: int) -> None:
    def program() -> None:
        a = np.random.default_rng(0).integers(0, 9, (5, 3, 4)).astype(float)
        with dc.options(distribute_above=0, eager_below=0, strict=True):
            x = dc.distribute(a, grid=(2, 2) if dc.comm.world().size == 4 else None)
            found = np.asarray(dc.evaluate(np.apply_along_axis(function, axis, x)))
        want = np.apply_along_axis(function, axis, a)
        assert (found.shape, found.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(found, want)

    assert is_pure(function)
    for ranks in (2, 4, 7):
        run(ranks, program)


@pytest.mark.parametrize("function", NOT_KNOWN)
def test_impure_functions_are_called_on_all_ranks(function: Callable[..., Any]) -> None:
    assert not is_pure(function)


@on_ranks(3)
def test_number_of_calls() -> None:
    a = np.arange(12.0).reshape(4, 3)
    found = np.apply_along_axis(_stepwise(), 1, dc.distribute(a))
    assert np.array_equal(found, np.apply_along_axis(_stepwise(), 1, a))


@on_ranks(3)
def test_written_lines() -> None:
    a = np.arange(12.0).reshape(4, 3)
    x = dc.distribute(a)
    found = np.apply_along_axis(_in_place, 1, x)
    want = np.apply_along_axis(_in_place, 1, a)
    assert np.array_equal(found, want) and np.array_equal(x, a)


def test_errors_are_raised_on_all_ranks() -> None:
    def picky(v: Any) -> Any:
        return v[: int(v[0])]

    def program() -> None:
        x = dc.distribute(np.arange(1.0, 13).reshape(4, 3))
        with pytest.raises(ValueError, match="broadcast"):
            np.apply_along_axis(picky, 1, x)
        assert np.sum(x) == 78

    run(3, program)


def test_arrays_of_a_call_are_local() -> None:
    def made(v: Any) -> Any:
        return np.asarray(dc.zeros(4) + v.sum()).sum() * dc.ones(2)

    def program() -> None:
        a = np.arange(15.0).reshape(5, 3)
        with dc.options(distribute_above=0, eager_below=0):
            y = dc.distribute(a) + 1
            found = np.apply_along_axis(made, 1, y)
            assert np.array_equal(np.asarray(found), np.apply_along_axis(made, 1, a + 1))

    run(3, program)
