"""Systems of equations and Cholesky factors of distributed matrices, against NumPy."""

import numpy as np
import pytest
from comm_layouts import layouts, scatter
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dcarray.comm.algorithms import factorisations
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.transport import simulated_ranks
from dcarray.comm.transport.protocol import Array


def matrix(rng: np.random.Generator, n: int, dtype: str) -> Array:
    x = rng.standard_normal((n, n))
    return (x + 1j * rng.standard_normal((n, n)) if np.dtype(dtype).kind == "c" else x * 4).astype(dtype)


@settings(max_examples=24, deadline=None, derandomize=True)
@given(st.data())
def test_against_numpy(data: st.DataObject) -> None:
    ranks, n = data.draw(st.integers(1, 7)), data.draw(st.integers(0, 30))
    dtype = data.draw(st.sampled_from(["f4", "f8", "c8", "c16", "i4"]))
    sides = data.draw(st.sampled_from([(n,), (n, 1), (n, 5), (n, 0)]))
    rng = np.random.default_rng(n)
    a = matrix(rng, n, dtype) + n * np.eye(n, dtype=dtype)[::-1]  # large pivots far from the diagonal
    assume(not n or np.linalg.matrix_rank(a) == n)  # two rows of small integers may be dependent
    b = rng.integers(-9, 9, sides).astype(dtype)
    well = a @ a.conj().T + n * np.eye(n, dtype=dtype)
    of_a, of_b = data.draw(layouts((n, n), ranks)), data.draw(layouts(sides, ranks))
    x, low = np.linalg.solve(a, b), np.linalg.cholesky(well)

    def live() -> None:
        comm = simulated_ranks.rank_of_thread()
        piece = DistArray(comm, of_a, scatter(a, of_a, comm.rank))
        got = factorisations.solve(piece, DistArray(comm, of_b, scatter(b, of_b, comm.rank)))
        assert got.dtype == x.dtype and (got.layout.grid, got.layout.axes) == (of_b.grid, of_b.axes)
        tolerance = 2e-3 if x.dtype.char in "fF" else 1e-9
        np.testing.assert_allclose(got.gather(), x, rtol=tolerance, atol=tolerance)
        upper = np.triu(np.full((n, n), 7), 1).astype(dtype)  # is not read
        found = factorisations.cholesky(
            DistArray(comm, of_a, scatter(np.tril(well) + upper, of_a, comm.rank))
        )
        assert found.dtype == low.dtype and found.layout.axes == of_a.axes
        np.testing.assert_allclose(found.gather(), low, rtol=tolerance, atol=tolerance * max(n, 1))

    simulated_ranks.run(ranks, live)


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_several_blocks_of_columns(ranks: int) -> None:
    n = 300
    rng = np.random.default_rng(0)
    a, b = matrix(rng, n, "f8"), rng.random((n, 70))
    well = a @ a.T + np.eye(n)

    def live() -> None:
        comm = simulated_ranks.rank_of_thread()
        of_a, of_b = Layout.chosen((n, n), ranks), Layout.chosen((n, 70), ranks)
        x = factorisations.solve(
            DistArray.from_whole(a, of_a, comm), DistArray.from_whole(b, of_b, comm)
        ).gather()
        np.testing.assert_allclose(a @ x, b, atol=1e-9)
        low = factorisations.cholesky(DistArray.from_whole(well, of_a, comm)).gather()
        np.testing.assert_allclose(low, np.linalg.cholesky(well), atol=1e-9)

    simulated_ranks.run(ranks, live)


def test_what_cannot_be_solved() -> None:
    def live() -> None:
        comm = simulated_ranks.rank_of_thread()

        def piece(x: Array) -> DistArray:
            return DistArray.from_whole(x, Layout.chosen(x.shape, comm.size), comm)

        for n in (4, 9):
            flat = np.ones((n, n))
            with pytest.raises(np.linalg.LinAlgError, match="Singular"):
                factorisations.solve(piece(flat), piece(np.ones(n)))
            with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
                factorisations.cholesky(piece(-np.eye(n)))
            with pytest.raises(np.linalg.LinAlgError, match="not square"):
                factorisations.solve(piece(np.ones((n, 3))), piece(np.ones(n)))
            with pytest.raises(np.linalg.LinAlgError, match="not square"):
                factorisations.cholesky(piece(np.ones((n, n, n))))
            with pytest.raises(ValueError, match="right-hand sides"):
                factorisations.solve(piece(flat), piece(np.ones(n + 1)))
            with pytest.raises(TypeError, match="unsupported"):
                factorisations.cholesky(piece(flat.astype("f2")))

    simulated_ranks.run(3, live)
