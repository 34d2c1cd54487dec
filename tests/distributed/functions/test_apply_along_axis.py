"""Distributed `numpy.apply_along_axis`, and which functions are known to be pure."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from simulated import on_ranks

import dcarray as dc
from dcarray.comm import run
from dcarray.distributed.pure_functions import is_pure

WEIGHTS, SEEN, N = np.array([1.0, 2, 1]), [], 3
RANDOM = np.random.default_rng(0)
count = 0


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


FINE: list[tuple[Any, ...]] = [
    (np.sort,), (np.median,), (np.linalg.norm,), (len,), (np.fft.fft,), (np.add, 1),
    (np.convolve, WEIGHTS, "same"), (functools.partial(np.percentile, q=[10, 50]),),
]  # fmt: skip
NOT_KNOWN: list[tuple[Any, ...]] = [
    (_counted,), (_kept,), (_written,), (_stepwise(),), (_Callable(),), (_Callable().method,), (SEEN.append,),
    (RANDOM.normal,), (np.random.rand,), (np.vectorize(_counted),), (print,),
    (np.frompyfunc(_counted, 1, 1),), (dc.evaluate,), (np.add, 1, WEIGHTS), (np.sum, _Callable()),
    (functools.partial(np.sort, order=_Callable()),), (functools.partial(np.sum, out=WEIGHTS),),
    (lambda v: WEIGHTS.__setitem__(0, v[0]),),
]  # fmt: skip


@pytest.mark.parametrize("function", FINE)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_ranks_share_lines(function: tuple[Any, ...], axis: int) -> None:
    def program() -> None:
        a = np.random.default_rng(0).integers(0, 9, (5, 3, 4)).astype(float)
        with dc.options(distribute_above=0, eager_below=0, strict=True):
            x = dc.distribute(a, grid=(2, 2) if dc.comm.world().size == 4 else None)
            found = np.asarray(dc.evaluate(np.apply_along_axis(function[0], axis, x, *function[1:])))
        want = np.apply_along_axis(function[0], axis, a, *function[1:])
        assert (found.shape, found.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(found, want)

    assert is_pure(*function)
    for ranks in (2, 4, 7):
        run(ranks, program)


@pytest.mark.parametrize("function", NOT_KNOWN)
def test_impure_functions_are_called_on_all_ranks(function: tuple[Any, ...]) -> None:
    assert not is_pure(*function)


@on_ranks(3)
def test_number_of_calls() -> None:
    a = np.arange(12.0).reshape(4, 3)
    found = np.apply_along_axis(_stepwise(), 1, dc.distribute(a))
    assert np.array_equal(found, np.apply_along_axis(_stepwise(), 1, a))
