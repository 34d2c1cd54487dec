"""The bytes sent for products of distributed arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from simulated import on_ranks

import dcarray as dc
from dcarray.comm import run, world
from dcarray.distributed.array_distribution import distribute
from dcarray.recording.session import session


def received(program: Callable[..., Any], *shapes: tuple[int, ...], ranks: int) -> list[int]:
    """The bytes that a rank receives in messages and allreduces for a program, its arguments in blocks."""

    def live() -> int:
        comm = world()
        rng = np.random.default_rng(0)
        wholes = [rng.random(shape) for shape in shapes]
        want = program(*(x.copy() for x in wholes))
        with dc.options(distribute_above=0, jit="off"):
            x = [dc.asarray(whole) for whole in wholes]
            got = program(*x)
            before = comm.counts.bytes_received + comm.counts.collective_bytes
            session().flush()
            # one short allreduce compares what is recorded, another what has been raised
            after = comm.counts.bytes_received + comm.counts.collective_bytes
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12)
        return after - before

    return run(ranks, live)


SMALL = 1000  # bytes of agreement


@pytest.mark.parametrize("ranks", [1, 2, 4, 6])
def test_gemm_moves_what_summa_does(ranks: int) -> None:
    def gemm(a: Any, b: Any, c: Any) -> Any:
        c[:] = 1.5 * a @ b + 0.5 * c
        return c

    m, n, k = 96, 120, 144
    grids = [(p, ranks // p) for p in range(1, ranks + 1) if ranks % p == 0]
    summa = min(8 * ((q - 1) / q * m / p * k + (p - 1) / p * k * n / q) for p, q in grids)
    for got in received(gemm, (m, k), (k, n), (m, n), ranks=ranks):
        assert got <= 1.1 * summa + SMALL


@pytest.mark.parametrize("ranks", [2, 4])
def test_chains_are_not_gathered(ranks: int) -> None:
    def k3mm(a: Any, b: Any, c: Any, d: Any) -> Any:
        return a @ b @ (c @ d)

    n = 96
    grid = (2, ranks // 2)
    summa = 8 * sum((p - 1) * n * n / ranks for p in grid)
    for got in received(k3mm, *[(n, n)] * 4, ranks=ranks):
        assert got <= 3 * 1.1 * summa + SMALL


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_only_vectors_travel(ranks: int) -> None:
    def atax(a: Any, x: Any) -> Any:
        return (a @ x) @ a

    for got in received(atax, (300, 200), (200,), ranks=ranks):
        assert got <= 8 * 2 * (300 + 200) + SMALL


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_nothing_travels_for_stacks(ranks: int) -> None:
    def doitgen(a: Any, c4: Any) -> Any:
        a[:] = np.reshape(np.reshape(a, (20, 12, 1, 40)) @ c4, (20, 12, 40))
        return a

    assert max(received(doitgen, (20, 12, 40), (40, 40), ranks=ranks)) <= SMALL


@on_ranks(3)
def test_functions_of_matrices_gather_nothing() -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.random((40, 40)) + np.eye(40), rng.random((40, 9)), rng.random(40)
    low = np.linalg.cholesky(a @ a.T)
    trace = np.trace(a, 2, 1, 0)
    with dc.options(distribute_above=0, jit="off", strict=True):
        x, y, z = (distribute(whole) for whole in (a, b, c))
        assert type(np.linalg.solve(x, y)) is dc.ndarray
        for got, want in (
            (np.linalg.solve(x, y), np.linalg.solve(a, b)),
            (np.linalg.solve(x + 0, c), np.linalg.solve(a, c)),
            (np.linalg.solve(a, z), np.linalg.solve(a, c)),
            (np.linalg.cholesky(x @ x.T), low),
            (np.trace(x, 2, 1, 0), trace),
        ):
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-9, atol=1e-12)
        assert type(np.trace(x)) is np.float64
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            np.linalg.solve(x * 0, y)
        with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
            np.linalg.cholesky(-x @ x.T)
    with dc.options(distribute_above=0, jit="off"):  # NumPy's own errors, and what it does besides
        with pytest.raises(np.linalg.LinAlgError, match="square"):
            np.linalg.solve(x[1:], y[1:])
        with pytest.raises(ValueError, match="mismatch"):
            np.linalg.solve(x, y[1:])
        with pytest.raises(ValueError, match="same"):
            np.trace(x, 0, 1, 1)
        np.testing.assert_allclose(np.linalg.cholesky(x @ x.T, upper=True), low.T, rtol=1e-9)
        np.testing.assert_allclose(np.linalg.solve(x[::-1], y), np.linalg.solve(a[::-1], b), rtol=1e-9)
