"""Checks that hold under MPI only, by name: ``mpiexec -n P python -m mpi_checks NAME``."""

import dataclasses
import sys
import tracemalloc
import warnings

import numpy as np
from mpi4py import MPI

import dcarray as dc
from dcarray.comm.exchange.halo import halo_exchange
from dcarray.comm.exchange.persistent import PersistentExchanges
from dcarray.comm.transport.mpi_types import TYPES, buffer_of

comm = dc.comm
ranks = comm.world()


def cached() -> None:
    """MPI types are made once for each shape and stride, and shared by windows at other addresses."""
    layout = comm.Layout.chosen((20, 20), ranks.size, halo=2)
    halo = comm.HaloExchange(layout, periodic=True)
    pair = np.zeros((2, *layout.local_shape(ranks.rank)))
    halo.run(pair[0], pair[1])
    made = TYPES.made
    for _ in range(10):
        pair = np.zeros((2, *layout.local_shape(ranks.rank)))
        halo.run(pair[0], pair[1])
    assert TYPES.made == made
    assert made > 0


def changing() -> None:
    """A line whose windows keep changing gets one warning; dropped types are made again."""
    right, left = (ranks.rank + 1) % ranks.size, (ranks.rank - 1) % ranks.size
    a, b = np.ones((1000, 4)), np.zeros((1000, 4))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for turn in (1, 2):
            for n in range(2, 600):
                request = comm.Irecv(b[:n, 1], left)
                comm.Waitall([comm.Isend(a[:n, 1], right), request])
                assert b.sum() == n
                b[:] = 0
            assert len(TYPES.cached) <= TYPES.CAPACITY, turn
    told = [w for w in caught if w.category is comm.PerformanceWarning]
    assert 1 <= len(told) <= 2, caught
    assert "mpi_checks.py" in str(told[0].message)


def unpacked() -> None:
    """Strided windows are sent and received where they lie: no memory is allocated for them."""
    a, b = np.ones((2048, 4096)), np.zeros((2048, 4096))
    right, left = (ranks.rank + 1) % ranks.size, (ranks.rank - 1) % ranks.size
    tracemalloc.start()
    request = comm.Irecv(b[1:-1, 1:3000:2], left)
    comm.Waitall([comm.Isend(a[1:-1, 1:3000:2], right), request])
    comm.Bcast(b[5:-5, :2000])
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    assert b.sum() == 2046 * 1500
    buffer, count, kind = buffer_of([a[1:, 3]])
    assert buffer.address == a[1:, 3].__array_interface__["data"][0]
    assert (count, kind.Get_size(), kind.Get_extent()) == (1, 2047 * 8, (0, 2046 * 4096 * 8 + 8))


def repeated() -> None:
    """Exchanges between the same addresses, prepared at the second time: rows, scattered columns, two arrays
    at once, and other memory in between."""
    for grid in ((ranks.size, 1), (1, ranks.size)):
        layout = comm.Layout.blocks((12, 16), comm.ProcessGrid(grid), halo=1)
        plan = halo_exchange(layout, ranks.rank, ((1, 1), (1, 1)))
        again, memory = (
            PersistentExchanges(),
            [np.zeros((2, *layout.local_shape(ranks.rank))) for _ in range(2)],
        )
        for turn in range(12):
            pair = memory[turn // 2 % 2]
            whole = np.arange(192.0).reshape(12, 16) + 1000 * turn
            own = np.ix_(
                *[np.arange(run.start, run.start + run.length) for (run,) in layout.runs(ranks.rank)]
            )
            pair[:] = 0
            for k in range(2):
                pair[k][layout.owned(ranks.rank)] = whole[own] + k
            before = dataclasses.replace(ranks.counts)
            again.start(ranks, [(plan, part, part) for part in pair]).finish()
            sent = ranks.counts.messages_sent - before.messages_sent
            assert sent == len(plan.sends), (sent, plan)
            wanted = np.zeros((2, 14, 18))
            wanted[:, 1:-1, 1:-1] = whole + np.arange(2).reshape(2, 1, 1)
            padded = np.ix_([0, 1], *[np.arange(ix.min(), ix.max() + 3) for ix in own])
            np.testing.assert_array_equal(pair, wanted[padded])
        assert all(one is not None for one in again.known.values())


def shared() -> None:
    """Bits that ranks combine in a step."""
    for k in range(100):
        bits = (1 << (ranks.rank + k % 3)) | (1 << (123 - ranks.rank))
        every = ranks.share(("bits", k), bits)
        assert every == sum(1 << (rank + k % 3) | 1 << (123 - rank) for rank in range(ranks.size))
    assert ranks.share(("bits",), 0) == 0


def shorter() -> None:
    """A message of fewer bytes than are to be received."""
    other = 1 - ranks.rank
    comm.Wait(comm.Irecv(np.zeros(3), other) if ranks.rank else comm.Isend(np.zeros(2), other))


def longer() -> None:
    """A message of more bytes."""
    other = 1 - ranks.rank
    comm.Wait(comm.Irecv(np.zeros(3), other) if ranks.rank else comm.Isend(np.zeros(4), other))


def aborted() -> None:
    if ranks.rank == 1:
        ranks.abort(7)
    ranks.barrier()


def finalised() -> None:
    MPI.Finalize()
    comm.world()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("ended")
