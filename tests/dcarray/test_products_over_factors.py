"""Products that are assigned to one of their factors, beside plain NumPy."""

import numpy as np
import pytest

import dcarray as dc
from dcarray.lowering.runtime import matmul_tiles, openblas


def whole(x, m):
    x[:] = x @ m


def stacked(x, m):
    rows, columns = x.shape
    cube = x.reshape(4, rows // 4, columns)
    cube[:] = np.reshape(np.reshape(cube, (4, rows // 4, 1, columns)) @ m, (4, rows // 4, columns))


def shifted(x, m):
    x[1:] = x[:-1] @ m


def twice(x, m):
    x[:] = x @ m
    y = x * 2.0
    x[::2] = (x[::2] + 1) @ m
    return y + x


def left(x, m):
    n = m.shape[0]
    x[:n] = m @ x[:n]


def read_again(x, m):
    product = x @ m
    x[:] = product
    return product + x[0]


def kept(x, m):
    old = x + 0.0
    before = x[3]
    x[:] = x @ m
    return old - x + before


@pytest.mark.parametrize("program", [whole, stacked, shifted, twice, left, read_again, kept])
@pytest.mark.parametrize("dtype", "dF")
@pytest.mark.parametrize("threads", [1, 2])
def test_programs(monkeypatch, program, dtype, threads):
    monkeypatch.setattr(openblas, "threads", lambda: 4)
    monkeypatch.setattr(matmul_tiles, "MIN_MULTIPLICATIONS", 1)
    rng = np.random.default_rng(5)
    x = rng.integers(-4, 4, (256, 96)).astype(dtype)
    m = rng.integers(-3, 3, (96, 96)).astype(dtype)
    for _ in range(3):
        plain, ours = x.copy(), dc.asarray(x.copy())
        want = program(plain, m)
        with dc.options(jit="eager", eager_below=0, threads=threads, debug=True):
            got = program(ours, dc.asarray(m))
            dc.evaluate(ours)
            np.testing.assert_array_equal(np.asarray(ours), plain)
            if want is not None:
                np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.skipif(not openblas.is_available(), reason="NumPy does not bring OpenBLAS along")
def test_exceptions_are_told(monkeypatch):
    monkeypatch.setattr(openblas, "threads", lambda: 4)
    monkeypatch.setattr(matmul_tiles, "MIN_MULTIPLICATIONS", 1)
    x = np.ones((256, 96))
    x[200, :2] = np.inf, -np.inf
    ours = dc.asarray(x.copy())
    with dc.options(jit="eager", eager_below=0, threads=2), pytest.warns(RuntimeWarning, match="in matmul"):
        whole(ours, np.ones((96, 96)))  # NumPy itself looks at the flags of one of BLAS's threads
        dc.evaluate(ours)
    got = np.asarray(ours)
    assert np.isnan(got[200]).all() and (np.delete(got, 200, 0) == 96).all()


def test_nothing_is_copied_in_case_of_an_exception():
    report = dc.report().bytes
    cube, m = dc.asarray(np.ones((4, 64, 96))), np.ones((96, 96))
    with dc.options(jit="eager", eager_below=0, threads=2):
        cube[:] = np.reshape(np.reshape(cube, (4, 64, 1, 96)) @ m, (4, 64, 96))
        dc.evaluate(cube)
    assert (np.asarray(cube) == 96).all()
    assert dc.report().bytes == report
