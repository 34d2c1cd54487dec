"""``C = alpha*A@B + beta*C`` over a grid of processes, by panels along rows and columns (SUMMA).

``mpiexec -n 4 python examples/summa.py`` under MPI, on simulated ranks with ``--ranks 6``.
Nothing is gathered: rank (i, j) receives the panels of A in its row and those of B in its column.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from dcarray import comm


def multiply(m: int, n: int, k: int) -> tuple[Any, int]:
    """Multiply random matrices; return the result (None except on rank 0) and the received panels' bytes."""
    ranks = comm.world()
    grid = comm.choose_grid((m, n), ranks.size)
    rng = np.random.default_rng(0)
    whole = [rng.random(shape) for shape in ((m, k), (k, n), (m, n))]
    layouts = [comm.Layout.blocks(x.shape, grid) for x in whole]
    a, b, c = (comm.BlockScatter(x, its) for x, its in zip(whole, layouts, strict=True))
    before = ranks.counts.bytes_received
    product, _ = comm.Matmul(a, layouts[0], b, layouts[1], layouts[2])
    c[...] = 1.5 * product + 0.5 * c
    panels = ranks.counts.bytes_received - before
    got = comm.BlockGather(c, layouts[2], root=0)
    if got is not None:
        assert np.allclose(got, 1.5 * whole[0] @ whole[1] + 0.5 * whole[2])
    return got, panels


def main() -> None:
    """Multiply, check the result, and print the bytes sent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "sizes", type=int, nargs="*", default=[300, 200, 250], help="rows, columns, inner size"
    )
    parser.add_argument("--ranks", type=int, help="simulate so many ranks instead of MPI's")
    args = parser.parse_args()
    sizes = args.sizes
    results = comm.run(args.ranks, multiply, *sizes) if args.ranks else [multiply(*sizes)]
    for got, panels in results:
        if got is not None:
            print(f"{got.shape}: as NumPy has it; {panels:,} bytes of panels on rank 0")


if __name__ == "__main__":
    main()
