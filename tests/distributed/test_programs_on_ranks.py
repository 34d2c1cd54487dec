"""Regions of ``dc.program`` on ranks: NumPy's results, by one region and its loops instead of recordings."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from program_runs import arguments_of, module
from symbolic_sources import FAMOUS, random_program

import dcarray as dc
from dcarray import comm
from dcarray.core.counters import counters
from dcarray.jit.program.decorator import Program

MORE = """
def converging(A: np.float64[N, M], limit: float):
    steps = 0
    change = 1.0
    while change > limit:
        before = A.copy()
        A[1:-1] = 0.5 * before[1:-1] + 0.25 * (before[:-2] + before[2:])
        change = float(np.max(np.abs(A - before)))
        steps += 1
    return steps, change

def choosing(A: np.float64[N, M], B: np.float64[N, M], T: int):
    for t in range(T):
        if A.sum() > B.sum():
            A[1:, :] = 0.5 * B[:-1, :] + t
        else:
            B[:] = A + t * 0.25
    return A - B

def moving(A: np.float64[N, M], B: np.float64[N, M]):
    for i in range(1, N):
        A[i] = 0.5 * A[i - 1] + B[i]

def histories(A: np.float64[4, N, M]):
    for t in range(3):
        left, right = A[t, 1:-1, :-2], A[t, 1:-1, 2:]
        A[t + 1, 1:-1, 1:-1] = 0.25 * (A[t, :-2, 1:-1] + A[t, 2:, 1:-1] + left + right) + t
    return A[3].sum()

def products(A: np.float64[N, M], B: np.float64[M, N], x: np.float64[M]):
    C = A @ B
    y = C.T @ (A @ x)
    return C, y, float(y.sum())

def normed(A: np.float64[N, M]):
    mean = A.mean(axis=0)
    A -= mean
    A /= np.sqrt((A * A).mean(axis=0)) + 1e-3
    return A, mean

def unused(A: np.float64[N, M], B: np.float64[N, M]):
    return B + 1.0
"""
KINDS = {
    "plain": lambda x: x,
    "wrapped": dc.asarray,
    "blocks": lambda x: dc.distribute(x) if x.ndim else x,
    "halos": lambda x: dc.distribute(x, halo=1) if x.ndim and min(x.shape) > 9 else x,
}


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of programs that run as they are written."""
    found: list[str] = []
    before = Program._as_written

    def noted(self: Any, *args: Any) -> Any:
        found.append(self._name)
        return before(self, *args)

    monkeypatch.setattr(Program, "_as_written", noted)
    return found


def check(function: Any, ranks: int, kind: str, sizes: dict[str, int], seed: int = 0, above: int = 0) -> None:
    """Compare a program on ranks with NumPy."""
    program = dc.program(function)
    values = arguments_of(function, sizes, seed)
    expected_values = copy.deepcopy(values)
    around = {**function.__globals__, **{n: dc_n for n, dc_n in sizes.items() if n in "NM"}}
    expected = type(function)(function.__code__, around)(*expected_values)

    def rank() -> Any:
        with dc.options(distribute_above=above):
            given = [KINDS[kind](v.copy()) if isinstance(v, np.ndarray) else v for v in values]
            found = program(*given)
            flat = found if isinstance(found, tuple) else (found,)
            kinds = [type(x) for x in flat]
            return [np.asarray(x) for x in (*given, *flat)], kinds

    several = expected if isinstance(expected, tuple) else (expected,)
    for found, kinds in comm.run(ranks, rank):
        for one, other in zip(found, (*expected_values, *several), strict=True):
            np.testing.assert_allclose(one.astype(float), np.asarray(other, float), rtol=1e-11, atol=1e-11)
        for one, other in zip(kinds, several, strict=True):
            if isinstance(other, np.ndarray) and kind == "plain":
                assert one is np.ndarray
            elif not isinstance(other, np.ndarray):
                assert one is type(other)


NAMES = (
    "converging", "choosing", "moving", "histories", "products", "normed", "unused", "jacobi", "lu",
    "covariance", "durbin", "two_products", "strided", "accumulated", "whole",
)  # fmt: skip
SIZES = [{"N": 12, "M": 17, "T": 3}, {"N": 23, "M": 11, "T": 2}]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize(("number", "name"), [*enumerate(NAMES)])
def test_known_programs(number: int, name: str, ranks: int, tmp_path: Path, written: list[str]) -> None:
    kind = [*KINDS][(number + ranks) % 4]
    made = module(tmp_path, FAMOUS + MORE, f"ranks_{name}_{ranks}_{kind}")
    for sizes in SIZES:
        check(getattr(made, name), ranks, kind, sizes)
    assert not written


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed: int, tmp_path: Path, written: list[str]) -> None:
    made = module(tmp_path, random_program(seed), f"ranks_random_{seed}")
    ranks, kind = 2 + seed % 3, [*KINDS][seed // 2 % 4]
    for sizes in SIZES:
        check(made.f, ranks, kind, sizes, seed)
    assert not written


def test_time_loops_are_planned_as_one_region(tmp_path: Path) -> None:
    program = dc.program(module(tmp_path, FAMOUS, "ranks_counted").jacobi)
    a, b = np.random.default_rng(0).random((2, 40, 40))
    expected = a.copy(), b.copy()
    program.written(*expected, 40)

    def rank() -> Any:
        A, B = dc.distribute(a, grid=(2, 1)), dc.distribute(b, grid=(2, 1))
        program(A, B, 40)
        before = counters.flushes
        start = comm.world().counts + comm.Counts()
        program(A, B, 40)
        sent = comm.world().counts.messages_sent - start.messages_sent
        assert counters.flushes == before
        A, B = dc.distribute(a), dc.distribute(b)
        program(A, B, 40)
        return np.asarray(A), np.asarray(B), sent

    for first, second, sent in comm.run(2, rank):
        assert np.array_equal(first, expected[0])
        assert np.array_equal(second, expected[1])
        assert 0 < sent < 2 * 39  # which is one for each half step


EXCEPTIONS = """
def divided(A: np.float64[N, M], B: np.float64[N, M]):
    A += 1.0
    A /= B
    A += 1.0
    return A * 2.0

def doubled(A: np.float64[N, M], B: np.float64[N, M]):
    A[:] = 2.0 * B
    B += A
"""


@pytest.mark.parametrize("kind", [*KINDS])
def test_exceptions_are_those_of_numpy(kind: str, tmp_path: Path, written: list[str]) -> None:
    program = dc.program(module(tmp_path, EXCEPTIONS, f"ranks_raises_{kind}").divided)
    a, b = np.random.default_rng(0).random((2, 12, 9)) + 0.5
    b[7, 3] = 0.0

    def rank() -> Any:
        with dc.options(distribute_above=0):
            A, B = KINDS[kind](a.copy()), KINDS[kind](b)
            with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
                np.asarray(program(A, B))
            A = KINDS[kind](a.copy())
            found = np.asarray(program(A, B))
            A = KINDS[kind](a.copy())
            with np.errstate(divide="ignore"):
                again = np.asarray(program(A, B))
            return found, again, np.asarray(A)

    with np.errstate(divide="ignore"):
        expected = (a + 1.0) / b + 1.0
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        results = comm.run(2, rank)
    for found, again, A in results:
        assert np.array_equal(found, 2.0 * expected)
        assert np.array_equal(again, 2.0 * expected)
        assert np.array_equal(A, expected)
    assert len(written) == 4


@pytest.mark.parametrize("above", [0, 10**6])
def test_parts_and_shared_memory_run_as_they_are_written(
    above: int, tmp_path: Path, written: list[str]
) -> None:
    program = dc.program(module(tmp_path, EXCEPTIONS, f"ranks_parts_{above}").doubled)
    a = np.random.default_rng(0).random((13, 9))

    def rank() -> Any:
        with dc.options(distribute_above=above):
            A, B = dc.distribute(a), dc.distribute(a)
            program(A[1:], B[:-1])
            C = dc.distribute(a)
            program(C, C)
            return np.asarray(A), np.asarray(B), np.asarray(C)

    for A, B, C in comm.run(3, rank):
        np.testing.assert_array_equal(A[1:], 2.0 * a[:-1])
        np.testing.assert_array_equal(B[:-1], 3.0 * a[:-1])
        np.testing.assert_array_equal(C, 4.0 * a)
    assert len(written) == 6


def test_small_arrays_run_whole_on_every_rank(tmp_path: Path, written: list[str]) -> None:
    program = dc.program(module(tmp_path, MORE, "ranks_small").products)
    a, b, x = np.random.default_rng(0).random((7, 9)), np.ones((9, 7)), np.ones(9)

    def rank() -> Any:
        start = comm.world().counts + comm.Counts()
        found = program(a, b, x)
        sent = comm.world().counts
        assert (sent.messages_sent, sent.collectives) == (start.messages_sent, start.collectives)
        return found

    for C, y, total in comm.run(3, rank):
        np.testing.assert_allclose(C, a @ b)
        np.testing.assert_allclose(y, (a @ b).T @ (a @ x))
        np.testing.assert_allclose(total, y.sum())
    assert not written


def test_ranks_that_call_different_programs_are_told(tmp_path: Path) -> None:
    made = module(tmp_path, EXCEPTIONS, "ranks_differ")
    programs = [dc.program(made.divided), dc.program(made.doubled)]

    def rank() -> None:
        A, B = dc.distribute(np.ones((8, 8))), dc.distribute(np.ones((8, 8)))
        programs[comm.world().rank](A, B)

    with pytest.raises(comm.MismatchError, match="program"):
        comm.run(2, rank)


def test_strict_raises_where_arrays_are_gathered(tmp_path: Path) -> None:
    program = dc.program(module(tmp_path, FAMOUS, "ranks_strict").lu)

    def rank() -> None:
        with dc.options(strict=True):
            program(dc.distribute(np.eye(12) * 12 + 1.0))

    with pytest.raises(dc.StrictError, match="a statement of distributed arrays"):
        comm.run(2, rank)
