"""Parallel loops over tiles that executors run: threads, processes that die, and Dask's workers."""

import importlib.util
import os
import re
import signal
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from fresh import python
from launching import ROOT, launch, needs_mpi

import dcarray as dc
from dcarray import comm


def divided(tile: int) -> int:
    return 12 // (tile - 3)


def dies_once(flag: Path, tile: int) -> int:
    if tile == 3 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return tile * tile


def dies(tile: int) -> int:
    if tile == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return tile


def wrapped(tile: range) -> object:
    return dc.asarray(np.arange(tile.start, tile.stop)) * 2


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_results_and_failures(pool: Callable[[int], Executor]) -> None:
    seen: list[tuple[int, int]] = []
    with pool(2) as executor:
        found = dc.pmap(
            wrapped, range(10), 4, executor=executor, progress=lambda *counts: seen.append(counts)
        )
        assert [np.asarray(part).tolist() for part in found or []] == [
            [0, 2, 4, 6],
            [8, 10, 12, 14],
            [16, 18],
        ]
        assert seen == [(1, 3), (2, 3), (3, 3)]
        with pytest.raises(comm.TileError, match="tile 3, 3, failed in the executor") as caught:
            dc.pmap(divided, range(9), executor=executor)
        assert caught.value.tile == 3 and isinstance(caught.value.__cause__, ZeroDivisionError)
        assert dc.pmap(abs, [-1, -2], executor=executor) == [1, 2]  # it is as good as before
        assert dc.pmap(abs, [], executor=executor) == []


def test_exceptions_that_are_tried_again() -> None:
    runs: list[int] = []

    def flaky(tile: int) -> int:
        runs.append(tile)
        if tile == 2 and runs.count(2) < 3:
            raise OSError
        return tile

    with ThreadPoolExecutor(2) as executor:
        assert dc.pmap(flaky, range(4), executor=executor, retry=OSError) == [0, 1, 2, 3]
        assert runs.count(2) == 3
        runs.clear()
        with pytest.raises(comm.TileError, match="tile 2"):
            dc.pmap(flaky, range(4), executor=executor, retry=OSError, attempts=2)


def test_a_pool_that_breaks_says_which_tiles_are_missing() -> None:
    with (
        ProcessPoolExecutor(1) as executor,
        pytest.raises(comm.TileError, match=r"BrokenProcessPool.* of 9 tiles have no result:.* 3, 4, 5"),
    ):
        dc.pmap(dies, range(9), executor=executor)


def test_a_pool_of_our_own_is_made_again(tmp_path: Path) -> None:
    made: list[Executor] = []

    def two() -> Executor:
        made.append(ProcessPoolExecutor(2))
        return made[-1]

    found = dc.pmap(partial(dies_once, tmp_path / "flag"), range(9), executor=two)
    assert found == [k * k for k in range(9)] and len(made) == 2
    with pytest.raises(RuntimeError, match="shutdown"):  # none of them is left running
        made[-1].submit(abs, 1)
    with pytest.raises(comm.TileError, match="so it went with 2 pools"):
        dc.pmap(dies, range(9), executor=ProcessPoolExecutor, attempts=2)


def test_what_no_executor_can_do() -> None:
    with ThreadPoolExecutor(1) as executor:
        for wrong in ({"schedule": "static"}, {"root": 0}):
            with pytest.raises(ValueError, match="are for ranks"):
                dc.pmap(abs, [1], executor=executor, **wrong)
    with pytest.raises(TypeError, match="must have `submit`"):
        dc.pmap(abs, [1], executor=3)

    class Odd:
        def submit(self, *_: object) -> int:
            return 1

    with pytest.raises(TypeError, match=r"no concurrent\.futures\.Future"):
        dc.pmap(abs, [1], executor=Odd())


def test_an_adapter_that_returns_futures() -> None:
    class Adapter:  # as one writes it for Ray
        def submit(self, function: Callable[..., object], *args: object) -> Future[object]:
            future: Future[object] = Future()
            future.set_result(function(*args))
            return future

    assert dc.pmap(abs, [-1, 2], executor=Adapter()) == [1, 2]


@needs_mpi
@pytest.mark.parametrize("spawned", [False, True], ids=["python -m mpi4py.futures", "spawned workers"])
def test_a_pool_of_mpi(spawned: bool) -> None:
    program = "tests/support/pool_of_mpi.py"
    if spawned:
        done = launch(1, program, timeout=100, MPI4PY_FUTURES_MAX_WORKERS="2")
    else:
        done = launch(3, "-m", "mpi4py.futures", program, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    workers = {0, 1} if spawned else {1, 2}  # fast ones may leave nothing to others
    ranks = re.fullmatch(r"tile 3\nran on \[(.*)\] \[1, 2\]\n", done.stdout)
    assert ranks is not None and {*map(int, ranks[1].split(","))} <= workers, done.stdout


@pytest.mark.parametrize("arguments", [["--processes"], []], ids=["processes", "dask"])
def test_example_whose_worker_is_killed(arguments: list[str]) -> None:
    if not arguments and importlib.util.find_spec("distributed") is None:
        pytest.skip("Dask's `distributed` is not installed")
    done = python("examples/pmap_dask.py", *arguments, cwd=ROOT)
    assert ("Dask, two workers" if not arguments else "a pool of processes") in done.stdout
    assert "was killed in tile 20; 40 results" in done.stdout and "right" in done.stdout
