"""Parallel loops over tiles, for simulated ranks and, as ``python -m comm_pmap NAME``, under ``mpiexec``."""

import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import dcarray as dc
from dcarray import comm

PROGRAMS: list[Callable[[], None]] = []


def program(function: Callable[[], None]) -> Callable[[], None]:
    PROGRAMS.append(function)
    return function


def gathered(value: int) -> list[int]:
    """An integer of each rank, on all ranks."""
    mine = np.zeros(comm.world().size, np.int64)
    mine[comm.world().rank] = value
    return [int(n) for n in comm.Allreduce(mine)]


def told(text: type[Exception], function: Callable[[], Any]) -> Any:
    try:
        function()
    except text as error:
        return error
    raise AssertionError(f"no {text.__name__}")


@program
def in_order() -> None:
    """Results are in the order of tiles, on all ranks, whichever rank has run them."""
    for schedule in ("dynamic", "static"):
        for tiles in (0, 1, 5, 40):
            ran: list[int] = []
            found = dc.pmap(lambda t, ran=ran: ran.append(t) or t * t, range(tiles), schedule=schedule)
            assert found == [t * t for t in range(tiles)]
            assert sum(gathered(len(ran))) == tiles
            if schedule == "static":
                assert max(gathered(len(ran))) - min(gathered(len(ran))) <= 1


@program
def shared_out() -> None:
    """With a dynamic schedule, ranks that are not delayed run the remaining tiles."""
    ranks = comm.world()

    def slow(tile: int) -> int:
        time.sleep(0.2 if tile == 1 else 0.01)
        return ranks.rank

    by = Counter(dc.pmap(slow, range(60)) or [])
    assert ranks.size == 1 or len(by) > 1
    assert sum(by.values()) == 60


@program
def ranges() -> None:
    """Tiles of a range, an array and a generator."""
    assert dc.pmap(sum, range(3, 50), 10) == [sum(range(3, 50)[k : k + 10]) for k in range(0, 47, 10)]
    x = np.arange(12.0).reshape(6, 2)
    found = dc.pmap(lambda part: part.sum(axis=0), x, size=4)
    assert np.array_equal(found, [[12, 16], [18, 20]])
    assert dc.pmap(len, (str(k) for k in range(9, 12)), size=2) == [2, 1]


class Held:
    """An object that reads its array when it is unpickled."""

    def __init__(self, x: np.ndarray[Any, Any]) -> None:
        self.x, self.total = x, float(x.sum())

    def __reduce__(self) -> Any:
        return Held, (self.x,)


@program
def nested() -> None:
    """Arrays of any strides and dtypes in any values, without packing them; the same array once."""
    base = np.arange(6000.0).reshape(60, 100)

    def made(tile: int) -> Any:
        shared = base[:, tile::7]
        return {
            "window": shared,
            "again": [shared, {"deep": (np.float64(tile), base[tile : tile + 2].T)}],
            "kinds": [np.array(["a", "bc"]), np.array(tile, "M8[s]"), np.zeros((0, 3)), np.array([None])],
            "held": Held(base[tile]),
            "wrapped": dc.asarray(base[tile]) + 1,
            "structured": np.array([(tile, 0.5)] * 2, "i4,f8"),
        }

    found = dc.pmap(made, range(8), schedule="static")
    assert found is not None
    for tile, one in enumerate(found):
        assert np.array_equal(one["window"], base[:, tile::7])
        assert one["again"][0] is one["window"]
        assert np.array_equal(one["again"][1]["deep"][1], base[tile : tile + 2].T)
        assert [a.dtype.str for a in one["kinds"]] == ["<U2", "<M8[s]", "<f8", "|O"]
        assert one["kinds"][2].shape == (0, 3)
        assert one["held"].total == base[tile].sum()
        assert np.array_equal(one["wrapped"], base[tile] + 1)
        assert one["structured"]["f0"].tolist() == [tile, tile]


@program
def recorded() -> None:
    """Recordings of a tile run on its rank alone, however large; earlier ones run on all ranks."""
    with dc.options(distribute_above=0, eager_below=0):
        x = dc.asarray(np.arange(24.0)) + 1

        def tile(k: int) -> Any:
            y = dc.asarray(np.full(50, float(k)))
            for _ in range(k % 3):
                y = y + 1
            return y * 2

        found = dc.pmap(tile, range(9))
        assert found is not None
        assert [float(np.asarray(y)[7]) for y in found] == [2 * (k + k % 3) for k in range(9)]
        assert np.array_equal(np.asarray(x), np.arange(24.0) + 1)


@program
def one_root() -> None:
    """The results on one rank; nothing is sent to the others."""
    ranks = comm.world()
    root = ranks.size - 1
    found = dc.pmap(lambda t: np.full(1000, t), range(10), root=root, schedule="static")
    assert (found is None) == (ranks.rank != root)
    if found is not None:
        assert [x[0] for x in found] == list(range(10))
    before = ranks.counts.bytes_received
    dc.pmap(lambda t: np.full(1000, t), range(10), root=root, schedule="static")
    assert ranks.rank == root or ranks.counts.bytes_received - before < 1000


@program
def failing() -> None:
    """A tile that fails raises on all ranks, with its traceback."""
    for schedule in ("dynamic", "static"):
        error = told(comm.TileError, lambda schedule=schedule: dc.pmap(divided, range(4), schedule=schedule))
        assert "tile 3, 3, failed on rank" in str(error)
        assert "in divided" in str(error)
        assert "ZeroDivisionError: division by zero" in str(error)
        assert error.tile == 3
    assert sum(gathered(isinstance(error.__cause__, ZeroDivisionError))) == 1
    assert dc.pmap(abs, [-1, -2]) == [1, 2]  # and all go on together


def divided(tile: int) -> float:
    return 1 / (tile - 3)


@program
def unpicklable() -> None:
    """A result that cannot be sent is a failure of its tile."""
    if comm.world().size > 1:
        error = told(comm.TileError, lambda: dc.pmap(lambda t: lambda: t, range(3), schedule="static"))
        assert "tile 0, 0, failed on rank" in str(error)
        assert "pickle" in str(error)


@program
def retried() -> None:
    """A tile that raises one of `retry` is run again, but not for ever."""
    tries: Counter[int] = Counter()

    def flaky(tile: int, fails: int) -> int:
        tries[tile] += 1
        if tile % 3 == 0 and tries[tile] <= fails:
            raise TimeoutError(f"try {tries[tile]}")
        return tile

    assert dc.pmap(lambda t: flaky(t, 2), range(7), retry=(OSError, KeyError)) == list(range(7))
    tries.clear()
    error = told(comm.TileError, lambda: dc.pmap(lambda t: flaky(t, 3), range(4), retry=OSError))
    assert "TimeoutError: try 3" in str(error)
    tries.clear()
    error = told(comm.TileError, lambda: dc.pmap(lambda t: flaky(t, 9), [3], retry=OSError, attempts=5))
    assert "TimeoutError: try 5" in str(error)


@program
def progress() -> None:
    """The first rank reports the progress of all ranks."""
    seen: list[tuple[int, int]] = []
    dc.pmap(abs, range(20), progress=lambda done, tiles: seen.append((done, tiles)))
    if comm.world().rank == 0:
        assert seen[-1] == (20, 20)
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    else:
        assert not seen


@program
def bad_arguments() -> None:
    assert "dynamic or static" in str(told(ValueError, lambda: dc.pmap(abs, [1], schedule="guided")))
    assert "one element" in str(told(ValueError, lambda: dc.pmap(abs, range(3), 0)))
    assert "once at least" in str(told(ValueError, lambda: dc.pmap(abs, [1], attempts=0)))


if __name__ == "__main__":
    for each in PROGRAMS:
        each()
    comm.world().barrier()
    if comm.world().rank == 0:
        print("ended", len(PROGRAMS), sys.argv[1:])
