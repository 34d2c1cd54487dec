"""Sums of floats, and what is made of them, have NumPy's bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dcarray as dc

LENGTHS = (1, 5, 7, 8, 9, 17, 40, 130, 300, 999)
BODIES = [
    lambda np, x, y: x,
    lambda np, x, y: x * y,
    lambda np, x, y: (x - y) ** 2,
    lambda np, x, y: np.exp(-abs(x)) + 1.0,
    lambda np, x, y: x.T,
    lambda np, x, y: x.T - y.T,
]
FUNCTIONS = [
    lambda np, x, axis: np.sum(x, axis=axis),
    lambda np, x, axis: np.mean(x, axis=axis),
    lambda np, x, axis: np.std(x, axis=axis),
    lambda np, x, axis: np.add.reduce(x, axis=axis, keepdims=True),
    lambda np, x, axis: np.average(x) if axis is None or x.dtype == "D" else np.linalg.norm(x, axis=axis),
]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", "fdD")
def test_wrapped_arrays(dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    with dc.options(jit="eager", eager_below=0, cache_dir=None, threads=1 + seed % 2):
        for _ in range(3):
            shape = tuple(int(n) for n in rng.choice(LENGTHS, rng.integers(1, 4)))
            shape = (*shape[:-1], 100_003) if len(shape) == 1 else shape
            made = rng.normal(size=(2, 2, *shape))
            order: Any = rng.choice(["C", "F"])
            x, y = ((a + 1j * b if dtype == "D" else a).astype(dtype, order=order) for a, b in made)
            axis = rng.choice([None, *range(len(shape))])
            body, function = rng.choice(BODIES), rng.choice(FUNCTIONS)
            with np.errstate(all="ignore"):
                want = function(np, body(np, x, y), axis)
                got = np.asarray(function(dc, body(dc, dc.asarray(x), dc.asarray(y)), axis))
            np.testing.assert_array_equal(got, want, err_msg=f"{shape} {order} {axis}", strict=True)


def test_every_second_element_and_backwards() -> None:
    x = np.random.default_rng(0).normal(size=(300, 1000))
    with dc.options(jit="eager", eager_below=0, cache_dir=None):
        for view in (np.s_[:, ::2], np.s_[::3], np.s_[:, ::-1], np.s_[1:-1, 1:-1]):
            for axis in (0, 1):
                np.testing.assert_array_equal(np.asarray(dc.asarray(x)[view].sum(axis)), x[view].sum(axis))


def test_the_number_of_threads_changes_nothing() -> None:
    for shape in ((1_000_003,), (5, 200_001), (300_000, 6)):
        x = np.random.default_rng(0).normal(size=shape)
        for threads in (1, 2, 3):
            with dc.options(jit="eager", eager_below=0, cache_dir=None, threads=threads):
                wrapped = dc.asarray(x)
                for axis in range(len(shape)):
                    np.testing.assert_array_equal(np.asarray((wrapped * 1.5).sum(axis)), (x * 1.5).sum(axis))


def distances(x: Any, c: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = np.sum((x[i] - c) ** 2) + np.sum(x[i] * c) + x[i].mean()
    return out


def squares(x: Any) -> float:
    total = 0.0
    for row in x:
        for value in row:
            total += value * value
    return total


@pytest.mark.parametrize("length", [3, 7, 8, 40, 129, 1000])
def test_loops(length: int) -> None:
    x = np.random.default_rng(length).normal(size=(50, length))
    with dc.options(jit="eager", cache_dir=None):
        np.testing.assert_array_equal(dc.accelerate(distances)(x, x[0].copy()), distances(x, x[0]))


def test_short_loops_are_in_order() -> None:
    x = np.random.default_rng(0).normal(size=(40, 7))
    with dc.options(jit="eager", cache_dir=None):
        assert dc.accelerate(squares)(x) == squares(x)
