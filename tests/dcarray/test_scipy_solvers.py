"""SciPy's iterative solvers, which know NumPy's class of matrices and what has a product with vectors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dcarray as dc

linalg = pytest.importorskip("scipy.sparse.linalg")
optimize = pytest.importorskip("scipy.optimize")

SOLVERS: dict[str, Callable[[Any, Any], Any]] = {
    "cg": lambda a, b: linalg.cg(a, b, rtol=1e-12)[0],
    "gmres": lambda a, b: linalg.gmres(a, b, rtol=1e-12)[0],
    "lsqr": lambda a, b: linalg.lsqr(a, b, atol=1e-13, btol=1e-13)[0],
    "lsmr": lambda a, b: linalg.lsmr(a[:, :7], b, atol=1e-13, btol=1e-13)[0],
    "eigsh": lambda a, b: linalg.eigsh(a, 3, v0=b)[0],
    "svds": lambda a, b: linalg.svds(a[:, :9], 3, v0=b[:9])[1],
    "adjoint": lambda a, b: linalg.aslinearoperator(a + 1j).H @ b,
    "columns": lambda a, b: linalg.aslinearoperator(a) @ a,
    "bounded": lambda a, b: (
        optimize.least_squares(
            lambda x: a @ x - b, np.zeros(12), jac=lambda x: a, bounds=(-1, 1), xtol=1e-12
        ).x
    ),
}


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_take_wrapped_matrices(name: str, pending: bool) -> None:
    rng = np.random.default_rng(3)
    m = rng.random((12, 12))
    a, b = m @ m.T + 12 * np.eye(12), rng.random(12)
    with dc.options(eager_below=0 if pending else 16384):
        x, y = dc.asarray(a), dc.asarray(b)
        got = SOLVERS[name](x * 1 if pending else x, y * 1 if pending else y)
        np.testing.assert_allclose(np.asarray(got), SOLVERS[name](a, b), rtol=1e-7, atol=1e-9)


def test_products_with_vectors_are_plain() -> None:
    x = dc.asarray(np.arange(6.0).reshape(2, 3)) + 1j
    assert type(x.matvec(np.ones(3))) is np.ndarray
    assert x.matvec(np.ones(3)).tolist() == [3 + 3j, 12 + 3j]
    assert x.rmatvec(dc.asarray(np.ones(2))).tolist() == [3 - 2j, 5 - 2j, 7 - 2j]
