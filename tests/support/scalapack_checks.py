"""Checks of ScaLAPACK by processes under MPI, where it is installed: ``python -m scalapack_checks``."""

from collections.abc import Callable

import numpy as np

from dcarray.comm import Layout, world
from dcarray.comm.algorithms import factorisations, scalapack
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.transport.protocol import Array


def refused(why: str, function: Callable[..., DistArray], *arguments: DistArray) -> None:
    try:
        function(*arguments)
    except np.linalg.LinAlgError as error:
        assert why in str(error)
    else:
        raise AssertionError(f"{function.__name__} takes what is not {why}")


def main() -> None:
    comm = world()
    assert scalapack.is_available(comm)

    def piece(x: Array) -> DistArray:
        return DistArray.from_whole(x, Layout.chosen(x.shape, comm.size), comm)

    rng = np.random.default_rng(0)
    for dtype in "fdFD":
        near = 1e-2 if dtype in "fF" else 1e-8
        for n, m in ((150, 33), (7, 1), (1, 1)):
            a, b = rng.standard_normal((n, n)).astype(dtype), rng.standard_normal((n, m)).astype(dtype)
            if dtype in "FD":
                a += (1j * rng.standard_normal((n, n))).astype(dtype)
            well = a @ a.conj().T + n * np.eye(n, dtype=dtype)
            got = factorisations.solve(piece(a), piece(b))
            assert got.dtype == dtype
            for found, want in (
                (got, np.linalg.solve(a, b)),
                (factorisations.cholesky(piece(well)), np.linalg.cholesky(well)),
            ):
                np.testing.assert_allclose(found.gather(), want, rtol=near, atol=near)
    for n in (4, 9, 70):
        refused("Singular", factorisations.solve, piece(np.ones((n, n))), piece(np.ones(n)))
        refused("Singular", factorisations.solve, piece(np.diag(np.arange(float(n)))), piece(np.ones(n)))
        refused("positive definite", factorisations.cholesky, piece(np.diag(np.arange(n, 0, -1.0) - 2)))
        refused("positive definite", factorisations.cholesky, piece(np.full((n, n), np.nan)))
    print("ended", flush=True)


if __name__ == "__main__":
    main()
