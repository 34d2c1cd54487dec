"""A program for ``mpiexec -n 3 python -m mpi4py.futures pool_of_mpi.py``: a pool of MPI's runs tiles."""

import numpy as np
from mpi4py import MPI
from mpi4py.futures import MPIPoolExecutor

import dcarray as dc
from dcarray import comm


def filtered(tile: range) -> tuple[int, int, object]:
    """Return who has run a tile, how many ranks it thinks there are, and an array that is still pending."""
    with dc.options(distribute_above=100):
        x = dc.asarray(np.arange(float(tile.start), tile.stop))
        return MPI.COMM_WORLD.rank, comm.world().size, x * 2 + 1


def divided(tile: int) -> int:
    return 12 // (tile - 3)


def main() -> None:
    """Run tiles, one that fails among them, and work on large arrays in between."""
    with MPIPoolExecutor() as pool, dc.options(distribute_above=1000):
        parts = dc.pmap(filtered, range(60_000), 5000, executor=pool)
        assert parts is not None
        whole = dc.concatenate([part for _, _, part in parts])  # all of it here: workers know nothing of it
        np.testing.assert_array_equal(np.asarray(whole), np.arange(60_000) * 2.0 + 1)
        assert {type(part) for _, _, part in parts} == {dc.ndarray}
        assert {ranks for _, ranks, _ in parts} == {1} and comm.world().size == 1
        try:
            dc.pmap(divided, range(9), executor=pool)
        except comm.TileError as error:
            assert error.tile == 3 and isinstance(error.__cause__, ZeroDivisionError)
            print("tile", error.tile)
        print("ran on", sorted({rank for rank, _, _ in parts}), dc.pmap(abs, [-1, 2], executor=pool))


if __name__ == "__main__":
    main()
