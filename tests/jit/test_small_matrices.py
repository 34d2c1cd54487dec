"""`np.linalg.inv`, `solve`, `det` and `cholesky` in loops: compiled for small matrices of float64 that are
well-conditioned, else LAPACK's; errors are NumPy's."""

from typing import Any

import numpy as np
import pytest
from as_written import as_written
from written import written

import dcarray as dc
from dcarray.core.counters import settle
from dcarray.jit.loops.operations.numpy_definitions import MOST_ROWS

pytestmark = pytest.mark.eager(debug=False)

CALLS = [
    "np.linalg.inv(a[k])", "np.linalg.solve(a[k], b[k])", "np.linalg.solve(a[k], b[k, 0])",
    "np.linalg.det(a[k])", "np.linalg.cholesky(a[k] @ a[k].T)",
]  # fmt: skip


def outcomes(call: str, a: np.ndarray[Any, Any]) -> tuple[Any, Any, int]:
    """What a loop gives as it is written and accelerated, and how many runs of compiled code did so."""
    b = a[:, ::-1].real.astype(a.dtype)
    first: Any = eval(call, {"np": np, "a": a, "b": b, "k": 0})
    f = written(
        f"def f(a, b, out):\n    for k in range(len(a)):\n        out[k] = {call}\n    return out", np=np
    )
    g, every = dc.accelerate(f), []
    for run in (lambda *args: as_written(f, *args), g, g):
        before = settle().loops
        try:
            every.append(run(a, b, np.zeros((len(a), *first.shape), a.dtype)))
        except np.linalg.LinAlgError as error:
            every.append(str(error))
    return every[0], every[2], settle().loops - before


def matrices(rows: int, dtype: Any = float) -> np.ndarray[Any, Any]:
    a, b = np.random.default_rng(rows).standard_normal((2, 12, rows, rows))
    a += 2 * np.eye(rows)
    return a + 1j * b if dtype is complex else a.astype(dtype)


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("call", CALLS)
def test_results(call: str, rows: int) -> None:
    want, got, runs = outcomes(call, matrices(rows))
    assert runs == 1
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12 * np.abs(want).max())


@pytest.mark.parametrize("call", CALLS[:3])
def test_complex_matrices(call: str) -> None:
    want, got, runs = outcomes(call, matrices(3, complex))
    assert runs == 1
    np.testing.assert_allclose(got, want, rtol=1e-11)


@pytest.mark.parametrize(("rows", "dtype"), [(MOST_ROWS + 1, float), (3, np.float32), (3, int)])
@pytest.mark.parametrize("call", CALLS)
def test_other_matrices_are_lapacks(call: str, rows: int, dtype: Any) -> None:
    want, got, _ = outcomes(call, matrices(rows, dtype))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("change", ["singular", "nearly", "nan", "inf", "tiny"])
def test_matrices_that_are_no_well_conditioned_ones(call: str, change: str) -> None:
    a = matrices(3)
    match change:
        case "singular":
            a[7] = 1.0
        case "nearly":
            a[7, :, 0] = a[7, :, 2] * (1 + 1e-10)
        case "nan" | "inf":
            a[7, 1, 1] = float(change)
        case "tiny":
            a[7] *= 1e-160
    with np.errstate(all="ignore"):
        want, got, _ = outcomes(call, a)
    if isinstance(want, str):
        assert got == want
    else:
        if change != "tiny":
            np.testing.assert_array_equal(got[7], want[7])
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12)


def test_a_determinant_of_no_rows_and_a_matrix_that_is_not_square() -> None:
    assert outcomes(CALLS[3], np.zeros((4, 0, 0)))[1].tolist() == [1.0] * 4
    f = written(
        "def f(a, out):\n    for k in range(3):\n        out[k] = np.linalg.inv(a)[0, 0]\n    return out",
        np=np,
    )
    with pytest.raises(np.linalg.LinAlgError, match="square"):
        dc.accelerate(f)(np.ones((2, 3)), np.zeros(3))
