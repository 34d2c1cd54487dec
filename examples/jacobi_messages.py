"""Jacobi steps on many processes as one annotated function that sends messages (SC21, section 4.3).

``mpiexec -n 4 python examples/jacobi_messages.py`` under MPI, with ``--ranks 4`` instead on simulated ranks.
Each rank has a block of the plate with room for its neighbours' rows and columns.  What is between the calls
of ``dcarray.comm`` is compiled.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import dcarray as dc
from dcarray import comm

N, M = dc.symbol("N"), dc.symbol("M")


@dc.program
def half_step(
    a: dc.types.float64[N + 2, M + 2],
    b: dc.types.float64[N + 2, M + 2],
    cart: comm.Cart,
    noff: int,
    soff: int,
    woff: int,
    eoff: int,
):
    """Exchange the halo of ``a``, and step from ``a`` to ``b``, except at the edges of the plate."""
    north, south = cart.neighbour(-1, 0), cart.neighbour(1, 0)
    west, east = cart.neighbour(0, -1), cart.neighbour(0, 1)
    requests = [
        comm.Isend(a[1, 1:-1], north, tag=0),
        comm.Isend(a[-2, 1:-1], south, tag=1),
        comm.Isend(a[1:-1, 1], west, tag=2),
        comm.Isend(a[1:-1, -2], east, tag=3),
        comm.Irecv(a[-1, 1:-1], south, tag=0),
        comm.Irecv(a[0, 1:-1], north, tag=1),
        comm.Irecv(a[1:-1, -1], east, tag=2),
        comm.Irecv(a[1:-1, 0], west, tag=3),
    ]
    comm.Waitall(requests)
    top, bottom, left, right = 1 + noff, N + 1 - soff, 1 + woff, M + 1 - eoff
    b[top:bottom, left:right] = 0.2 * (
        a[top:bottom, left:right]
        + a[top:bottom, left - 1 : right - 1]
        + a[top:bottom, left + 1 : right + 1]
        + a[top + 1 : bottom + 1, left:right]
        + a[top - 1 : bottom - 1, left:right]
    )


@dc.program
def jacobi_2d(steps: int, A: dc.types.float64[N, M], B: dc.types.float64[N, M]):
    """Run Jacobi steps on arrays that all ranks have: scatter them, step, and gather the results."""
    cart = comm.Cart_create(comm.choose_grid((N, M), comm.world().size).shape)
    block = comm.BlockScatter(A, cart)
    here = (block.shape[0] + 2, block.shape[1] + 2)
    a, b = np.zeros(here), np.zeros(here)
    a[1:-1, 1:-1] = block
    b[1:-1, 1:-1] = comm.BlockScatter(B, cart)
    (rows, columns), (row, column) = cart.grid.shape, cart.coords
    noff, soff = int(row == 0), int(row == rows - 1)
    woff, eoff = int(column == 0), int(column == columns - 1)
    for _ in range(1, steps):
        half_step(a, b, cart, noff, soff, woff, eoff)
        half_step(b, a, cart, noff, soff, woff, eoff)
    A[:] = comm.BlockGather(a[1:-1, 1:-1], cart)
    B[:] = comm.BlockGather(b[1:-1, 1:-1], cart)


def plain(steps: int, A: Any, B: Any) -> None:
    """Run the same steps in NumPy, in one process."""
    for _ in range(1, steps):
        for a, b in ((A, B), (B, A)):
            b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])


def on_a_rank(n: int, steps: int) -> bool:
    """Whether a rank's result is the same, to the bit, as that of one process."""
    rng = np.random.default_rng(0)
    A, B = rng.random((n, n + 3)), rng.random((n, n + 3))
    expected = A.copy(), B.copy()
    plain(steps, *expected)
    jacobi_2d(steps, A, B)
    return np.array_equal(A, expected[0]) and np.array_equal(B, expected[1])


def main() -> None:
    """Simulate, and compare with one process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=200, help="points along a side")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--ranks", type=int, help="simulate so many ranks instead of MPI's")
    args = parser.parse_args()
    if args.ranks:
        found = comm.run(args.ranks, on_a_rank, args.n, args.steps)
    else:
        found = [on_a_rank(args.n, args.steps)]
    assert all(found)
    if args.ranks or comm.world().rank == 0:
        print("equal to one process's result, to the bit")


if __name__ == "__main__":
    main()
