"""Products with a large matrix are recorded, so that several share the pass over it."""

import numpy as np
import pytest

import dcarray as dc
from dcarray.ir.passes import fusion_profit
from dcarray.tiering import blas_sharing

M, N = 330, 220


@pytest.fixture(autouse=True)
def wide():
    """Matrices of these tests count as large."""
    with pytest.MonkeyPatch.context() as patch, dc.options(jit="eager"):
        patch.setattr(blas_sharing, "LEAST_UNCACHED", 1 << 16)
        patch.setattr(fusion_profit, "OUT_OF_LAST_CACHE", 1 << 16)
        yield


def given(seed=0, n=N):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((M, n))
    return A, rng.standard_normal(n), rng.standard_normal(M)


def atax(A, p, r):
    return (A @ p) @ A


def bicg(A, p, r):
    return r @ A, A @ p


def transposed(A, p, r):
    return A.T @ r, np.dot(p, A.T)


def update(A, p, r):
    A += np.outer(r, p) + np.outer(r, p)
    p += 1.2 * r @ A + 3
    r += 1.5 * A @ p
    return A, p, r


def mvt(A, p, r):
    r += A @ (p * 2)
    p += r @ A


def sums(A, p, r):
    return 1.5 * A @ p + 2.5 * (A * A) @ p, (A * A).sum(axis=0)


@pytest.mark.parametrize("function", [atax, bicg, transposed, update, mvt, sums])
@pytest.mark.parametrize("dtype", ["d", "f"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_same_as_numpy(function, dtype, order):
    plain, ours = ([a.astype(dtype, order) for a in given()] for _ in range(2))
    want = function(*plain)
    got = dc.accelerate(function)(*ours)
    tolerance = 1e-12 if dtype == "d" else 1e-4
    wanted = (want if isinstance(want, tuple) else (want,)) if want is not None else ()
    results = (got if isinstance(got, tuple) else (got,)) if got is not None else ()
    for a, b in zip((*wanted, *plain), (*results, *ours), strict=True):
        assert type(b) is np.ndarray and b.dtype == a.dtype and b.shape == a.shape
        np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance * 1e3)


def test_one_pass_for_both():
    A, p, r = map(dc.asarray, given())
    assert str(dc.explain(bicg, A, p, r)).startswith("2 statements recorded, 1 kernel run")
    assert str(dc.explain(atax, A, p, r)).startswith("2 statements recorded, 1 kernel run")


def test_a_product_alone_is_the_librarys():
    A, p, _ = given()
    np.testing.assert_array_equal(np.asarray(dc.asarray(A) @ dc.asarray(p)), A @ p)


def test_results_do_not_depend_on_threads():
    A, p, r = given()
    found = []
    for threads in (1, 2, 5):
        with dc.options(threads=threads):
            results = bicg(dc.asarray(A), dc.asarray(p), dc.asarray(r))
            found.append([np.asarray(x).tobytes() for x in results])
    assert found[0] == found[1] == found[2]


def test_errors_are_numpys():
    A, p, _ = given()
    for f in (lambda A: A @ p[1:], lambda A: np.dot(p, A)):
        with pytest.raises(ValueError) as want:
            f(A)
        with pytest.raises(ValueError) as got:
            f(dc.asarray(A))
        assert str(got.value) == str(want.value)


def test_infinities_raise_flags():
    A, p, r = given()
    A[5, 7] = np.inf
    A[6, 7] = -np.inf
    with np.errstate(invalid="raise"), pytest.raises(FloatingPointError):
        dc.evaluate(*bicg(dc.asarray(A), dc.asarray(p), dc.asarray(np.abs(r))))


def test_views_of_vectors_beside_a_matrix():
    @dc.accelerate
    def f(A, x, tail):
        x += A @ x
        tail *= 2
        return x + 0

    A, p, _ = given()
    A = np.ascontiguousarray(A[:N])
    want = p + A @ p
    want[3:] *= 2
    got = f(A, p, p[3:])
    np.testing.assert_allclose(p, want, rtol=1e-12)
    np.testing.assert_array_equal(got, p)
