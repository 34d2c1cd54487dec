"""Regions of ``dc.program`` on ranks: NumPy's results, by one region and its loops instead of recordings."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import launch, needs_mpi
from program_runs import module
from region_programs import KINDS, MORE, NAMES, SIZES, check
from symbolic_sources import FAMOUS, random_program

import dcarray as dc
from dcarray import comm
from dcarray.core.counters import counters


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


@needs_mpi
@pytest.mark.parametrize("ranks", [2, 3])
def test_programs_under_mpi(ranks: int) -> None:
    done = launch(ranks, "-m", "region_programs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ended") == ranks
