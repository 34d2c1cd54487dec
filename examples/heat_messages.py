"""Heat in a square plate over many processes, each with a block of it and explicit halo exchange.

``mpiexec -n 4 python examples/heat_messages.py`` under MPI, with ``--ranks 6`` instead on simulated ranks.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import dcarray as dc
from dcarray import comm


def exchange(u: Any, cart: comm.Cart) -> None:
    """Fill the halo with one row or column from each neighbour, sent without a copy."""
    north, south = cart.neighbour(-1, 0), cart.neighbour(1, 0)
    west, east = cart.neighbour(0, -1), cart.neighbour(0, 1)
    comm.Waitall(
        [
            comm.Irecv(u[0, 1:-1], north, tag=0),
            comm.Irecv(u[-1, 1:-1], south, tag=1),
            comm.Irecv(u[1:-1, 0], west, tag=2),
            comm.Irecv(u[1:-1, -1], east, tag=3),
            comm.Isend(u[-2, 1:-1], south, tag=0),
            comm.Isend(u[1, 1:-1], north, tag=1),
            comm.Isend(u[1:-1, -2], east, tag=2),
            comm.Isend(u[1:-1, 1], west, tag=3),
        ]
    )


def step(u: Any, v: Any, top: int, bottom: int, left: int, right: int) -> None:
    """Compute one time step for the rows and columns within bounds, in plain NumPy."""
    v[top:bottom, left:right] = 0.2 * (
        u[top:bottom, left:right]
        + u[top - 1 : bottom - 1, left:right]
        + u[top + 1 : bottom + 1, left:right]
        + u[top:bottom, left - 1 : right - 1]
        + u[top:bottom, left + 1 : right + 1]
    )


def plate(n: int) -> Any:
    """Return a cold plate with a hot edge."""
    u = np.zeros((n, n))
    u[0] = 100.0
    return u


@dc.options(distribute_above=None)  # arrays are each rank's own
def heat(n: int, steps: int) -> Any:
    """Simulate on all ranks; return the whole plate on rank 0, None on the others."""
    ranks = comm.world()
    cart = comm.Cart_create(comm.choose_grid((n, n), ranks.size).shape)
    mine = comm.BlockScatter(plate(n) if ranks.rank == 0 else None, cart)
    u = np.zeros((mine.shape[0] + 2, mine.shape[1] + 2))
    u[1:-1, 1:-1] = mine
    u, v = dc.asarray(u), dc.asarray(u.copy())
    # The plate's edge stays as it is: ranks that have a part of it leave that out.
    (rows, columns), (row, column) = cart.grid.shape, cart.coords
    inner = (
        1 + (row == 0),
        u.shape[0] - 1 - (row == rows - 1),
        1 + (column == 0),
        u.shape[1] - 1 - (column == columns - 1),
    )
    before, begin = ranks.counts + comm.Counts(), time.perf_counter()
    for _ in range(steps):
        exchange(u, cart)
        step(u, v, *inner)
        u, v = v, u
    dc.evaluate(u)
    seconds = time.perf_counter() - begin
    messages = ranks.counts.messages_sent - before.messages_sent
    sent = ranks.counts.bytes_sent - before.bytes_sent
    for rank in range(ranks.size):
        ranks.barrier()
        if rank == ranks.rank:
            print(
                f"rank {rank} at {cart.coords}, {mine.shape[0]} x {mine.shape[1]}: {seconds:.3f} s, "
                f"sent {messages} messages, {sent:,} bytes",
                flush=True,
            )
    return comm.BlockGather(u[1:-1, 1:-1], cart, root=0)


@dc.options(distribute_above=None)
def main() -> None:
    """Simulate, and compare with one process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=400, help="points along a side")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--ranks", type=int, help="simulate so many ranks instead of MPI's")
    args = parser.parse_args()
    if args.ranks:
        result = comm.run(args.ranks, heat, args.n, args.steps)[0]
    else:
        result = heat(args.n, args.steps)
    if result is not None:
        u, v = plate(args.n), plate(args.n)
        for _ in range(args.steps):
            step(u, v, 1, args.n - 1, 1, args.n - 1)
            u, v = v, u
        assert np.array_equal(result, u)
        print("equal to one process's result, to the bit")


if __name__ == "__main__":
    main()
