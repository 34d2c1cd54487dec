"""Products, norms and factorisations."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc

R = np.random.default_rng(3)
S, V3, V4 = np.float64(2), R.normal(size=3), R.normal(size=4)
A, B = R.normal(size=(3, 4)), R.normal(size=(4, 5))
C, D = R.normal(size=(2, 3, 4)), R.normal(size=(2, 4, 5))
SQUARE = R.normal(size=(4, 4)) + 4 * np.eye(4)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.complex128, np.int64, np.int8, np.bool_, object])
@pytest.mark.parametrize("first", range(10))
def test_products(same, kind, first):
    arrays = [np.asarray(x).astype(kind) for x in (2 * S, 3 * V3, 3 * V4, 3 * A, 3 * B, 3 * C, 3 * D)]
    arrays += [arrays[3][:0], arrays[4][:, :0], arrays[3].T]
    a = arrays[first]
    for b in arrays:
        for f in (np.dot, np.inner, np.outer, np.vdot, np.kron):
            same(f, a, b)
        for axes in (0, 1, 2, ([0], [0]), (0, 1), ([1, 0], [0, 1]), ([-1], [0]), -1, ([5], [0])):
            same(np.tensordot, a, b, axes)


def test_dot_out_in_c_order():
    with dc.options(eager_below=0):
        a, b, out = dc.asarray(A), dc.asarray(B), dc.zeros((3, 5))
        assert np.dot(a, b, out) is out
        np.testing.assert_allclose(np.asarray(out), A @ B)
        with pytest.raises(ValueError, match="C-Array"):
            np.dot(a, b, dc.zeros((3, 10))[:, ::2])


def test_products_out(same):
    same(lambda a, b, out: np.dot(a, b, out), A, B, np.zeros((3, 5), np.float32))
    same(lambda a, b, out: np.dot(a, b, out=out), A, B, np.zeros((5, 3)))
    same(lambda a, b, out: np.outer(a, b, out), A, B, np.zeros((12, 20)))


@pytest.mark.parametrize("text", [
    "ij,jk->ik", "ij,jk", "ij,jk->ki", "ij,jk->", "ij,jk->i", "ij,jk->ijk", "ij,kl->ijkl", "ij,kl->lk",
    "ij,jk->kij", "ij,jj->i", "ij,j k -> i k", "ij,jk->ii", "ij,j", "i,i", "ij,jk->ix", "...j,jk->...k",
])  # fmt: skip
def test_einsum_of_two(same, text):
    for kind in (np.float64, np.int32, np.complex64, np.bool_):
        same(np.einsum, text, (3 * A).astype(kind), (3 * B).astype(kind))
        same(np.einsum, text, (3 * A).astype(kind), (3 * SQUARE).astype(kind))
    same(np.einsum, text, A, B.astype(np.float32))
    same(np.einsum, text, A, B, optimize=True)
    same(np.einsum, text, A)


def test_einsum_of_one_and_of_stacks(same):
    for text in ("ii->i", "ii", "ij->ji", "ij->j", "ij->", "ij", "ji", "ii->ii", "ij->ij"):
        same(np.einsum, text, SQUARE)
    same(np.einsum, "bij,bjk->bik", C, D)
    same(np.einsum, "bij,bjk->ikb", C, D)
    same(np.einsum, "bij,bjk->k", C, D)
    same(np.einsum, "iij->j", R.normal(size=(3, 3, 2)))
    same(np.einsum, "ij,jk,kl->il", A, B, B.T)
    same(np.einsum, A, [0, 1], B, [1, 2])
    same(np.einsum, "ij,jk->ik", A[:, :0], B[:0])


@st.composite
def einstein_sums(draw: Any) -> tuple[str, list[Any], bool]:
    """A text, its operands as they may lie in memory, and whether NumPy is to use BLAS."""
    extents = {c: draw(st.sampled_from([1, 2, 3])) for c in "ijkl"}
    some = st.lists(st.sampled_from("ijkl"), min_size=1, max_size=3, unique=True).map("".join)
    texts = draw(st.lists(some, min_size=1, max_size=2))
    result = draw(st.permutations(sorted(set("".join(texts)))).map("".join))
    result = result[: draw(st.integers(0, len(result)))]
    operands = []
    for text in texts:
        axes = draw(st.permutations(range(len(text))))
        a: Any = R.integers(-4, 4, [extents[text[k]] for k in axes]).astype("d")
        a = a.transpose(np.argsort(axes))
        one = draw(st.sampled_from([False, False, False, True]))
        operands.append(np.broadcast_to(a[:1].copy(), a.shape) if one else a)
    return f"{','.join(texts)}->{result}", operands, draw(st.booleans())


@pytest.mark.one_process("blocks lie in C's order")
@given(einstein_sums())
@settings(max_examples=80, deadline=None)
def test_axes_of_einsum_lie_as_those_of_numpy(given: tuple[str, list[Any], bool]) -> None:
    """What `ravel` gives, a view or a copy, depends on it."""
    text, operands, optimize = given
    want = np.einsum(text, *operands, optimize=optimize)
    with dc.options(jit="off", eager_below=0):
        got: Any = np.einsum(text, *map(dc.asarray, operands), optimize=optimize)
        np.testing.assert_array_equal(np.asarray(got), want)
        if np.ndim(want):
            found = zip(want.shape, got.strides, want.strides, strict=True)
            assert all(mine == theirs for n, mine, theirs in found if n > 1)


@pytest.mark.one_process("blocks lie in C's order")
def test_what_is_written_to_a_raveled_einsum():
    a, b = np.asfortranarray(SQUARE), np.asfortranarray(SQUARE + 1)
    with dc.options(eager_below=0):
        for left, right in ((a, b), (dc.asarray(a), dc.asarray(b))):
            made = np.einsum("ij,jk->ik", left, right)
            made.ravel()[:] = 0
            assert np.asarray(made).all()


def test_norms(same):
    for a in (V3, A, C, A.astype(np.float32), (A * 9).astype(int), A * (1 + 1j), A[:0], V3[:0]):
        for order in (None, 2, 1, np.inf, -np.inf, 0, 3, "fro", "nuc", "bad"):
            for axis in (None, 0, -1, (0, 1), 4):
                same(np.linalg.norm, a, order, axis)
                same(np.linalg.norm, a, order, axis, True)


def test_factorisations(same):
    for f in (np.linalg.inv, np.linalg.det, np.linalg.eigh, np.linalg.svd, np.linalg.qr, np.linalg.slogdet):
        same(f, SQUARE)
        same(f, A)
    same(np.linalg.cholesky, SQUARE @ SQUARE.T)
    same(np.linalg.solve, SQUARE, V4)
    same(np.linalg.solve, SQUARE * 0, V4)
    same(np.linalg.matrix_power, SQUARE, 3)
    same(np.linalg.multi_dot, [A, B, B.T])


def test_array_api_names(same):
    if not hasattr(np.linalg, "matrix_transpose"):
        pytest.skip("NumPy 2.0 and later")
    same(np.linalg.matmul, A, B)
    same(np.linalg.matmul, A, A)
    same(np.linalg.matrix_transpose, C)
    same(np.linalg.matrix_transpose, V3)
    same(np.linalg.tensordot, A, B, axes=1)
    same(np.linalg.diagonal, C, offset=1)
    same(np.linalg.vecdot, A, A)


def test_fft(same):
    for f in (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.fft2, np.fft.fftn, np.fft.fftshift):
        same(f, A)
    same(np.fft.fft, A, 8, 0)
    same(np.fft.fft, A, axis=5)


def test_large_products_do_not_fall_back():
    a, b = R.normal(size=(150, 160)), R.normal(size=(160, 170))
    with dc.options(strict=True, jit="off"):
        x, y = dc.asarray(a.copy()), dc.asarray(b.copy())
        dc.report(reset=True)
        for f in (np.dot, lambda p, q: np.einsum("ij,jk->ik", p, q), lambda p, q: np.tensordot(p, q, 1)):
            np.testing.assert_allclose(np.asarray(f(x, y)), a @ b, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(np.linalg.norm(x), np.linalg.norm(a))
        assert dc.report().fallbacks == ()


@pytest.mark.parametrize("jit", ["off", "eager"])
@pytest.mark.parametrize("offset", [0, 1, -2])
def test_products_of_diagonals(jit, offset):
    a, b = R.normal(size=(5, 4, 4)), R.normal(size=(5, 7))
    with dc.options(eager_below=0, jit=jit):
        got = np.matmul(np.diagonal(dc.asarray(a.copy()), offset, 1, 2).T, dc.asarray(b.copy()))
        np.testing.assert_allclose(np.asarray(got), np.diagonal(a, offset, 1, 2).T @ b)


@pytest.mark.one_process("that nothing is recorded is true of whole arrays")
@pytest.mark.parametrize("kind", "fdFD")
def test_products_of_vectors_that_are_there_are_numpys(kind):
    rng = np.random.default_rng(5)
    part = 1j * rng.random(50_000) if kind in "FD" else 0
    a, b = (rng.random(50_000) + part).astype(kind), (rng.random(50_000) - part).astype(kind)
    dc.evaluate()
    with dc.options(eager_below=16384, jit="eager"):
        x, y = dc.asarray(a), dc.asarray(b)
        dc.report(reset=True)
        for f in (np.dot, np.vdot, np.inner, np.matmul, lambda p, q: p @ q):
            want, got = f(a, b), f(x, y)
            np.testing.assert_allclose(got, want, rtol=1e-4)
            assert type(got) is type(want)
            np.testing.assert_allclose(f(x[::2], y[::-2]), f(a[::2], b[::-2]), rtol=1e-4)
        for shape in ((50_000,), (200, 250)):
            want, got = np.linalg.norm(a.reshape(shape)), np.linalg.norm(x.reshape(shape))
            np.testing.assert_allclose(got, want, rtol=1e-5)
            assert type(got) is type(want)
        assert dc.report().flushes == 0 and not dc.report().fallbacks
        z = x * 2  # pending: the recording that computes it goes on, if it is real
        np.testing.assert_allclose(np.linalg.norm(z), np.linalg.norm(a * 2), rtol=1e-5)
        assert dc.report().flushes == 1 + (kind in "FD")
        z = x * 2
        np.testing.assert_allclose(np.vdot(z, y), np.vdot(a * 2, b), rtol=1e-4)


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.float64, np.complex128])
@pytest.mark.parametrize(
    "text", ["ij,jk->ik", "ij,j->i", "ij,ij->i", "ij,ij->", "ij,kj->", "j,ij->ij", "ij,jk->ki"]
)
def test_large_einsums_that_are_no_work_for_blas(kind, text) -> None:
    rng = np.random.default_rng(5)
    left, _, right = text.partition("->")[0].partition(",")
    a, b = (rng.integers(0, 9, (140,) * len(labels)).astype(kind) for labels in (left, right))
    want = np.einsum(text, a + 1, b)
    for _ in range(3):
        x, y = dc.asarray(a.copy()), dc.asarray(b.copy())
        for first in (dc.asarray(a + 1), x + kind(1)):  # settled, and pending
            got = np.einsum(text, first, y)
            np.testing.assert_array_equal(np.asarray(got), want)
            assert np.asarray(got).dtype == want.dtype
        assert np.vdot(x, x + kind(0)) == np.vdot(a, a)
