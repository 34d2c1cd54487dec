"""Typical programs for which `benchmarks.plans` times planning: array expressions, and compiled loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dcarray as dc

__all__ = ["PROGRAMS"]

Array = Any


def _random(*shape: int) -> Array:
    return dc.asarray(np.random.default_rng(1).random(shape))


def _laplace(a: Array) -> Array:
    return np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a


def simple_expression() -> object:
    """Compute a sum of square roots."""
    x, y = _random(400_000), _random(400_000)
    return np.sum(np.sqrt(x * x + y * y) * 0.5 + 1)


def gray_scott() -> object:
    """Compute one time step of a reaction-diffusion equation on a torus."""
    u, v = _random(256, 256), _random(256, 256)
    uvv = u * v * v
    u, v = u + 0.16 * _laplace(u) - uvv + 0.06 * (1 - u), v + 0.08 * _laplace(v) + uvv - 0.122 * v
    return dc.evaluate(u, v)


def game_of_life() -> object:
    """Compute one generation of the game of life on a torus."""
    g = dc.asarray(np.random.default_rng(1).integers(0, 2, (512, 512)).astype(np.int8))
    steps = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
    n: Array = sum(np.roll(np.roll(g, i, 0), j, 1) for i, j in steps)
    return dc.evaluate((n == 3) | ((g == 1) & (n == 2)))


def layer() -> object:
    """Compute a dense layer of a neural network."""
    return dc.evaluate(np.tanh(_random(256, 256) @ _random(256, 128) + _random(128)))


def softmax() -> object:
    """Compute a softmax of rows."""
    x = _random(500, 400)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return dc.evaluate(e / e.sum(axis=1, keepdims=True))


def standard_scores() -> object:
    """Compute standard scores: columns minus their means, divided by their deviations."""
    x = _random(500, 400)
    return dc.evaluate((x - x.mean(axis=0)) / (x.std(axis=0) + 1e-8))


def _jacobi(a: Array, b: Array, steps: int) -> None:
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])


def _edit(a: Array, b: Array, d: Array) -> None:
    for i in range(1, d.shape[0]):
        for j in range(1, d.shape[1]):
            change = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + change)


def _sweeps(u: Array, v: Array, p: Array, q: Array, n: int) -> None:
    a, b, c = -0.3, 1.6, -0.3
    for _ in range(5):
        v[0, 1 : n - 1] = 1.0
        p[1 : n - 1, 0] = 0.0
        q[1 : n - 1, 0] = v[0, 1 : n - 1]
        for j in range(1, n - 1):
            p[1 : n - 1, j] = -c / (a * p[1 : n - 1, j - 1] + b)
            source = 0.3 * u[j, 0 : n - 2] + 0.4 * u[j, 1 : n - 1] + 0.3 * u[j, 2:n]
            q[1 : n - 1, j] = (source - a * q[1 : n - 1, j - 1]) / (a * p[1 : n - 1, j - 1] + b)
        v[n - 1, 1 : n - 1] = 1.0
        for j in range(n - 2, 0, -1):
            v[j, 1 : n - 1] = p[1 : n - 1, j] * v[j + 1, 1 : n - 1] + q[1 : n - 1, j]


def _product(a: Array, b: Array, c: Array) -> None:
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = 0.0
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            c[i, j] = total


def _accelerated(function: Callable[..., None], *arguments: Any) -> None:
    accelerated = dc.accelerate(function)
    for _ in range(4):  # until the loop is served
        accelerated(*arguments)


def stencil_loop() -> None:
    """Run a loop of two stencils."""
    rng = np.random.default_rng(1)
    _accelerated(_jacobi, rng.random((300, 300)), rng.random((300, 300)), 10)


def edit_distance() -> None:
    """Run an edit distance: a recurrence over a table."""
    rng = np.random.default_rng(1)
    words = [rng.integers(0, 4, 200) for _ in range(2)]
    _accelerated(_edit, *words, np.zeros((201, 201), int))


def alternating_sweeps() -> None:
    """Run recurrences forward and backward along one axis, for each index of the other."""
    rng = np.random.default_rng(1)
    _accelerated(_sweeps, *[rng.random((100, 100)) for _ in range(4)], 100)


def product_by_loops() -> None:
    """Run a matrix product as three loops."""
    rng = np.random.default_rng(1)
    _accelerated(_product, rng.random((60, 60)), rng.random((60, 60)), np.zeros((60, 60)))


PROGRAMS: tuple[Callable[[], object], ...] = (
    simple_expression, gray_scott, game_of_life, layer, softmax, standard_scores, stencil_loop,
    edit_distance, alternating_sweeps, product_by_loops,
)  # fmt: skip
"""Functions that record or run one program each."""
