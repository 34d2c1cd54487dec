"""Parallel loops over tiles."""

from collections.abc import Callable

import comm_pmap
import pytest
from fresh import python
from launching import ROOT, launch, needs_mpi

import dcarray as dc
from dcarray import comm


@pytest.mark.parametrize("ranks", [1, 2, 3, 6])
@pytest.mark.parametrize("program", comm_pmap.PROGRAMS, ids=lambda program: program.__name__)
def test_simulated(program: Callable[[], None], ranks: int) -> None:
    comm.run(ranks, program)


@needs_mpi
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_under_mpi(ranks: int) -> None:
    done = launch(ranks, "-m", "comm_pmap", timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"ended {len(comm_pmap.PROGRAMS)}" in done.stdout


def test_alone() -> None:
    assert dc.pmap(abs, range(-3, 3), size=None) == [3, 2, 1, 0, 1, 2]
    with pytest.raises(comm.TileError, match="tile 3, 3, failed on rank 0") as caught:
        dc.pmap(comm_pmap.divided, range(9))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert dc.pmap(lambda t: lambda: t, [1])[0]() == 1  # nothing is sent, nothing is pickled


@pytest.mark.parametrize("ranks", [2, 3, 6])
@pytest.mark.parametrize("turn", [0, 1, 2])
def test_what_a_lost_rank_had_is_run_again(ranks: int, turn: int) -> None:
    """The last rank is lost in one of its tiles, and with it the results of its earlier tiles."""
    runs: list[tuple[int, int]] = []

    def tile(k: int) -> int:
        rank = comm.world().rank
        if rank == ranks - 1 and [r for r, _ in runs].count(rank) == turn:
            raise comm.Killed
        runs.append((rank, k))
        return k * k

    def program() -> list[int] | None:
        return dc.pmap(tile, range(4 * ranks * ranks))

    *left, lost = comm.run(ranks, program)
    assert lost is None
    assert left == [[k * k for k in range(4 * ranks * ranks)]] * (ranks - 1)
    assert {k for r, k in runs if r < ranks - 1} == set(range(4 * ranks * ranks))


def test_a_rank_without_which_it_cannot_go_on() -> None:
    def program(lost: int, **arguments: object) -> None:
        def tile(k: int) -> int:
            if comm.world().rank == lost:
                raise comm.Killed
            return k

        dc.pmap(tile, range(30), **arguments)

    with pytest.raises(comm.LostRankError, match="rank 0 is lost"):
        comm.run(3, lambda: program(0))
    with pytest.raises(comm.LostRankError, match="rank 1, which was to get"):
        comm.run(3, lambda: program(1, root=1))


def test_ranks_that_disagree() -> None:
    with pytest.raises(comm.MismatchError, match=r"pmap\(4, dynamic.*where rank 0 calls pmap\(3"):
        comm.run(2, lambda: dc.pmap(abs, range(3 + comm.world().rank)))


@pytest.mark.parametrize("ranks", [1, 5])
def test_example_simulated(ranks: int) -> None:
    done = python("examples/tiles.py", "--pulses", "24", "--ranks", ranks, cwd=ROOT)
    assert "as one process has it" in done.stdout


@needs_mpi
def test_example_under_mpi() -> None:
    done = launch(3, "examples/tiles.py", "--pulses", "24", timeout=60)
    assert done.returncode == 0, done.stderr
    assert "as one process has it" in done.stdout
