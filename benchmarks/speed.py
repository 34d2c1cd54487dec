"""Measures the speed-up over NumPy on large arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import dcarray as dc

from .measure import PAUSE, Job, Row, in_turns, ratio


@dataclass(frozen=True)
class Case:
    """A benchmark: ``work(np, *arrays)`` is the user's code."""

    name: str
    at_least: float
    work: Callable[..., Any]
    arrays: Callable[[], tuple[Any, ...]]


def chain(xp: Any, x: Any, y: Any) -> Any:
    """Return an expression of ten element-wise operations."""
    t = xp.exp(-x)
    u = xp.sqrt(x * x + y)
    return xp.where(x > y, t * u, u - t) * 0.5


def jacobi(xp: Any, a: Any, b: Any) -> Any:
    """Compute one step of a five-point stencil from ``a`` into ``b``."""
    b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
    return b


def steps(xp: Any, a: Any, b: Any) -> Any:
    """Compute sixteen steps of the stencil, from one array to the other and back."""
    for _ in range(8):
        jacobi(xp, a, b)
        jacobi(xp, b, a)
    return a


def squares(xp: Any, x: Any, y: Any) -> Any:
    """Return the sum of squares of differences."""
    return xp.sum((x - y) ** 2)


def solve(xp: Any, a: Any, b: Any) -> Any:
    """Return the solution of a linear system with many right-hand sides."""
    return xp.linalg.solve(a, b)


def product(xp: Any, a: Any, b: Any) -> Any:
    """Return the product of two matrices, one of which has few rows or columns."""
    return a @ b


def _skinny(few: int, n: int, dtype: str, behind: bool) -> Callable[[], tuple[Any, ...]]:
    def make() -> tuple[Any, ...]:
        rng = np.random.default_rng(4)
        large, small = rng.random((n, n)).astype(dtype), rng.random((few, n)).astype(dtype)
        return (large, np.ascontiguousarray(small.T)) if behind else (small, large)

    return make


def _systems(n: int, m: int, pairs: bool) -> Callable[[], tuple[Any, ...]]:
    def make() -> tuple[Any, ...]:
        rng = np.random.default_rng(3)
        a, b = rng.random((n, n)) + n * np.eye(n), rng.random((n, m))
        return (a + 1j * rng.random((n, n)), b + 0j) if pairs else (a, b)

    return make


def _vectors(n: int, low: float = 0.1) -> Callable[[], tuple[Any, ...]]:
    def make() -> tuple[Any, ...]:
        rng = np.random.default_rng(1)
        return rng.uniform(low, 3.0, n), rng.uniform(low, 3.0, n)

    return make


def _grids(n: int) -> Callable[[], tuple[Any, ...]]:
    def make() -> tuple[Any, ...]:
        a = np.random.default_rng(2).random((n, n))
        return a, a.copy()

    return make


def _alone(name: str) -> Callable[..., Any]:
    def work(xp: Any, x: Any, y: Any) -> Any:
        return getattr(xp, name)(x)

    work.__name__ = name
    return work


def power(xp: Any, x: Any, y: Any) -> Any:
    """Return powers with a different exponent for every element."""
    return xp.power(x, y)


def cases(scale: float) -> Iterator[Case]:
    """Yield the cases; ``scale`` < 1 shrinks the arrays."""
    n, side, large = int(10_000_000 * scale), int(2000 * scale**0.5), int(3000 * scale**0.5)
    yield Case(f"10 element-wise operations, {n:,} f64", 5.0, chain, _vectors(n))
    yield Case(f"five-point Jacobi step, {side} x {side}", 4.0, jacobi, _grids(side))
    yield Case(f"16 such steps in place, {large} x {large}", 6.0, steps, _grids(large))
    yield Case(f"sum of squares of differences, {n:,} f64", 3.0, squares, _vectors(n))
    for name in ("exp", "log", "sin", "tanh"):
        yield Case(f"{name} alone, {n:,} f64", 1.0, _alone(name), _vectors(n))
    yield Case(f"power alone, {n:,} f64", 1.0, power, _vectors(n))
    for rows, pairs in ((600, False), (200, False), (600, True), (200, True)):
        rows = int(rows * scale**0.5)
        kind = "c128" if pairs else "f64"
        name = f"systems of {rows} equations, {2 * rows} sides, {kind}"
        yield Case(name, 1.0, solve, _systems(rows, 2 * rows, pairs))


def products(scale: float) -> Iterator[Case]:
    """Yield products of a large matrix with one of few rows or columns."""
    for few, dtype in ((2, "f8"), (8, "f4"), (8, "f8"), (16, "f4")):
        n = int((10_000 if dtype == "f4" else 7000) * scale**0.5)
        for behind in (False, True):
            shapes = f"{n:,} x {n:,} by {n:,} x {few}" if behind else f"{few} x {n:,} by {n:,} x {n:,}"
            yield Case(f"product of {shapes}, {dtype}", 1.0, product, _skinny(few, n, dtype, behind))


def rows(every: Iterator[Case], rounds: int) -> Iterator[Row]:
    """Run cases, and yield the speed-up of each."""
    for case in every:
        arrays = case.arrays()
        wrapped = tuple(dc.asarray(a.copy()) for a in arrays)

        def plain(case: Case = case, arrays: tuple[Any, ...] = arrays) -> object:
            return case.work(np, *arrays)

        def lazy(case: Case = case, wrapped: tuple[Any, ...] = wrapped) -> object:
            with dc.options(jit="eager"):  # the steady state, not how soon it is reached
                return dc.evaluate(case.work(np, *wrapped))

        jobs: dict[str, Job] = {"numpy": plain, "dcarray": lazy}
        _agree(case, plain(), lazy())
        times = in_turns(jobs, rounds, pause=PAUSE)
        best = {name: min(t) * 1e3 for name, t in times.items()}
        yield Row(
            case.name,
            ratio(times, "numpy", "dcarray"),
            "x NumPy",
            case.at_least,
            True,
            f"NumPy {best['numpy']:.1f} ms, dcarray {best['dcarray']:.1f} ms",
        )


def _agree(case: Case, expected: Any, got: Any) -> None:
    """Raise AssertionError unless results agree up to rounding (with a tolerance for cancellation)."""
    exact = np.asarray(expected)
    tolerance = 1e-12 if exact.dtype != np.float32 else 1e-5
    if not np.allclose(np.asarray(got), exact, rtol=tolerance, atol=tolerance / 10):
        raise AssertionError(f"{case.name}: dcarray and NumPy disagree")
