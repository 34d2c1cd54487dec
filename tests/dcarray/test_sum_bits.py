"""Sums of floats, and what is made of them, have NumPy's bits."""

from typing import Any

import numpy as np
import pytest

import dcarray as dc

LENGTHS = (1, 5, 7, 8, 9, 17, 40, 130, 300, 999)
BODIES = [
    lambda np, x, y: x, lambda np, x, y: x * y, lambda np, x, y: (x - y) ** 2, lambda np, x, y: x.T - y.T,
    lambda np, x, y: np.exp(-abs(x)) + 1.0, lambda np, x, y: x[..., ::2], lambda np, x, y: x[..., ::-1],
]  # fmt: skip
FUNCTIONS = [
    lambda np, x, axis: np.sum(x, axis=axis), lambda np, x, axis: np.mean(x, axis=axis),
    lambda np, x, axis: np.std(x, axis=axis), lambda np, x, axis: np.add.reduce(x, axis=axis, keepdims=True),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", "fdD")
def test_wrapped_arrays(dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    with dc.options(jit="eager", eager_below=0, cache_dir=None, threads=1 + seed % 2):
        for _ in range(3):
            shape = tuple(int(n) for n in rng.choice(LENGTHS, rng.integers(1, 4)))
            shape = (100_003,) if len(shape) == 1 else shape
            order: Any = rng.choice(["C", "F"])
            made = rng.normal(size=(2, 2, *shape))
            x, y = ((a + 1j * b if dtype == "D" else a).astype(dtype, order=order) for a, b in made)
            body, function = rng.choice(BODIES), rng.choice(FUNCTIONS)
            axis = rng.choice([*range(len(shape)), *[None] * (body in BODIES[:5])])  # gaps
            want = function(np, body(np, x, y), axis)
            got = np.asarray(function(dc, body(dc, dc.asarray(x), dc.asarray(y)), axis))
            np.testing.assert_array_equal(got, want, err_msg=f"{shape} {order} {axis}", strict=True)


def test_the_number_of_threads_changes_nothing() -> None:
    for shape in ((1_000_003,), (5, 200_001), (300_000, 6)):
        x = np.random.default_rng(0).normal(size=shape)
        for threads in (1, 2, 3):
            with dc.options(jit="eager", eager_below=0, cache_dir=None, threads=threads):
                for axis in range(len(shape)):
                    assert np.array_equal((dc.asarray(x) * 1.5).sum(axis), (x * 1.5).sum(axis))


def distances(x: Any, c: Any) -> Any:
    out, total = np.zeros(len(x)), 0.0
    for i in range(len(x)):
        out[i] = np.sum((x[i] - c) ** 2) + np.sum(x[i] * c) + x[i].mean()
        for j in range(7):  # so few are in order
            total += x[i, j] * x[i, j]
    return out, total


@pytest.mark.parametrize("length", [7, 8, 40, 129, 1000])
def test_loops(length: int) -> None:
    x = np.random.default_rng(length).normal(size=(50, length))
    with dc.options(jit="eager", cache_dir=None):
        assert all(map(np.array_equal, dc.accelerate(distances)(x, x[0]), distances(x, x[0])))
