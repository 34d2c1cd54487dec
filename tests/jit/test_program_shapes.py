"""Programs that reshape, have quotients of sizes, and call functions of NumPy's defined in Python."""

import copy
from typing import Any

import numpy as np
import pytest

import dcarray as dc
from dcarray.core.counters import settle
from dcarray.core.errors import ProgramError

N, M, K = dc.symbol("N"), dc.symbol("M"), dc.symbol("K")


def check(program: Any, *args: Any, exact: bool = True, serves: bool = True) -> None:
    """Compare a call of a program with the function as it is written: results, errors, and arguments
    afterwards."""
    given, want = copy.deepcopy(args), copy.deepcopy(args)
    with np.errstate(all="ignore"):
        try:
            expected = program.written(*want)
        except Exception as error:
            with pytest.raises(type(error)):
                program(*given)
            return
        before = settle().loops
        found = program(*given)
    assert (settle().loops - before == 1) is serves
    pairs = zip(*[x if type(x) is tuple else (x,) for x in (found, expected)], strict=True)
    for a, b in [*pairs, *zip(given, want, strict=True)]:
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype and a.shape == b.shape and a.flags.c_contiguous == b.flags.c_contiguous
        if exact:
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(b).max(initial=0.0))


# ---- sizes that guards make equal ---------------------------------------------------------------------
def test_sizes_that_have_to_be_equal() -> None:
    @dc.program
    def grid(nx: int, ny: int, p: dc.types.float64[N, M], q: dc.types.float64[N, M]):  # type: ignore[no-untyped-def]
        b = np.zeros((ny, nx))
        b[1:-1, 1:-1] = p[1:-1, 2:] - q[:-2, 1:-1]
        p[1:-1, 1:-1] += b[1:-1, 1:-1]
        return np.reshape(p @ np.reshape(q, (ny, 1, nx))[:, 0].T, (ny, ny))

    assert "NX" not in str(grid.region().arrays) and "nx" not in str(grid.region().arrays)
    for ny, nx in ((5, 7), (7, 5), (2, 2), (1, 1), (3, 40)):
        r = np.random.default_rng(ny)
        p, q = r.random((ny, nx)), r.random((ny, nx))
        check(grid, nx, ny, p, q, exact=False, serves=min(nx, ny) > 1)
        check(grid, nx + 1, ny, p, q, exact=False, serves=False)


# ---- reshapes -----------------------------------------------------------------------------------------
@dc.program
def joined(x: dc.types.float64[N, M]):  # type: ignore[no-untyped-def]
    n, m = x.shape
    return np.reshape(x + 1.0, (n * m,)) * 2.0, (x * x).reshape(m, n), x.flatten()


@dc.program
def split(n: int, m: int, x: dc.types.float64[K]):  # type: ignore[no-untyped-def]
    y = np.reshape(x * 2.0, (n, m))
    y[0] += 1.0
    z = np.reshape(y, (m, n))
    return z @ np.reshape(x, (n, m))


@dc.program
def of_memory(x: dc.types.float64[N, M]):  # type: ignore[no-untyped-def]
    n, m = x.shape
    y = np.zeros((n, m))
    y[:] = x[::-1]
    return np.reshape(y, (m, n)) + np.reshape(x[:, ::-1], (m, n))


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (1, 5), (5, 1), (7, 8), (2, 3), (3, 2), (0, 4), (16, 33)])
def test_shapes(shape: tuple[int, int]) -> None:
    n, m = shape
    x = np.random.default_rng(n).random(shape)
    check(joined, x)
    check(of_memory, x)
    check(split, n, m, x.ravel(), exact=False, serves=n > 0)
    check(split, n + 1, m, x.ravel(), exact=False)


def test_slices_with_steps() -> None:
    for shape in ((4, 6), (5, 7), (6, 5), (9, 12), (1, 3), (2, 2), (1, 1)):
        check(pooled_values, np.random.default_rng(1).random(shape))


@dc.program
def pooled_values(x: dc.types.float64[N, M]):  # type: ignore[no-untyped-def]
    n, m = x.shape
    out = np.zeros((n // 2, m // 3))
    for i in range(n // 2):
        for j in range(m // 3):
            out[i, j] = np.max(x[2 * i : 2 * i + 2, 3 * j : 3 * j + 3])
    a, b = x[::2] * 2.0, x[:, 1::3] + 1.0
    a[-1] += n % 2 + m // 4
    return out, a, b


@pytest.mark.parametrize("change", ["x[0] = 5.0", "y[0] = 5.0", "x *= 2.0"])
def test_a_view_that_is_written(change: str, tmp_path: Any) -> None:
    """NumPy's reshape is a view: a program that writes it, or what it is of, does not copy silently."""
    text = f"""
import numpy as np
import dcarray as dc

N, M = dc.symbol("N"), dc.symbol("M")

def plain(a: dc.types.float64[N, M]):
    n, m = a.shape
    x = a + 1.0
    y = np.reshape(x, (n * m,))
    {change}
    return x + 0.0, y + 0.0

def in_a_loop(a: dc.types.float64[N, M]):
    n, m = a.shape
    x = a + 1.0
    y = np.reshape(x, (n * m,))
    for k in range(3):
        y = np.reshape(x, (n * m,))
        {change}
    return x + 0.0, y + 0.0
"""
    (tmp_path / "views.py").write_text(text)
    names: dict[str, Any] = {}
    exec(compile(text, str(tmp_path / "views.py"), "exec"), names)
    for name in ("plain", "in_a_loop"):
        program = dc.program(names[name])
        try:
            program.compile()
        except ProgramError:
            continue
        check(program, np.random.default_rng(0).random((3, 4)))


# ---- functions with definitions ----------------------------------------------------------------------
@dc.program
def line(a: float, b: float, n: int):  # type: ignore[no-untyped-def]
    return np.linspace(a, b, n), np.linspace(a, 2, n, endpoint=False, dtype=np.float32), np.linspace(0, 1, n)


def test_linspace() -> None:
    r = np.random.default_rng(0)
    for _ in range(20):
        a, b = (float(x) for x in r.normal(size=2) * 10.0 ** r.integers(-9, 9, 2))
        check(line, a, b, int(r.integers(2, 40)))
    check(line, 0.0, 5e-324, 6)
    check(line, -0.0, -0.0, 3)
    for n in (0, 1, -1):
        check(line, 0.0, 1.0, n, serves=False)


@dc.program
def histograms(a: dc.types.float64[N], w: dc.types.float64[N], bins: int):  # type: ignore[no-untyped-def]
    counts, edges = np.histogram(a, bins)
    sums, _ = np.histogram(a, bins, weights=w)
    return counts, edges, sums


def test_histograms() -> None:
    r = np.random.default_rng(0)
    for n, bins in ((1000, 10), (1000, 7), (50, 1), (1, 3), (300, 299)):
        w = r.integers(0, 9, n) * 0.5
        for a in (r.random(n), r.integers(0, 12, n) / 10.0, np.linspace(0, 1, n), r.normal(size=n) * 1e-300):
            check(histograms, a, w, bins)
    check(histograms, np.ones(5), np.ones(5), 4)
    for a in (np.array([1.0, np.nan]), np.array([1.0, np.inf]), np.zeros(0)):
        check(histograms, a, np.ones(len(a)), 3, serves=False)
    check(histograms, np.ones(4), np.ones(4), 0)


@dc.program
def covariances(x: dc.types.float64[N, M]):  # type: ignore[no-untyped-def]
    return np.cov(x), np.cov(x, rowvar=False), np.cov(x.T, bias=True)


@dc.program
def factor(a: dc.types.float64[N, N]):  # type: ignore[no-untyped-def]
    return np.linalg.cholesky(a)


@dc.program
def solved(a: dc.types.float64[N, N], b: dc.types.float64[N, M], v: dc.types.float64[N]):  # type: ignore[no-untyped-def]
    return np.linalg.inv(a), np.linalg.solve(a, b), np.linalg.solve(a, v)


@dc.program
def solved_complex(a: dc.types.complex128[N, N], v: dc.types.complex128[N]):  # type: ignore[no-untyped-def]
    return np.linalg.inv(a), np.linalg.solve(a, v)


def test_matrices() -> None:
    r = np.random.default_rng(0)
    for n in (1, 2, 3, 8, 33):
        a, b = r.random((n, n)) - 0.5, r.random((n, 3))
        if n > 1:  # else NumPy warns
            check(covariances, r.random((n, 9)), exact=False)
        s = a @ a.T + np.eye(n)
        assert np.allclose(factor(s), np.linalg.cholesky(s), rtol=1e-9)
        for x, y in zip(solved(a, b, b[:, 0].copy()), solved.written(a, b, b[:, 0].copy()), strict=True):
            assert x.shape == y.shape and np.allclose(x, y, rtol=1e-6, atol=1e-8)
        c = a + 1j * (r.random((n, n)) - 0.5)
        for x, y in zip(solved_complex(c, c[0].copy()), solved_complex.written(c, c[0].copy()), strict=True):
            assert np.allclose(x, y, rtol=1e-6, atol=1e-8)


def test_matrices_that_have_no_result() -> None:
    for a in (np.zeros((3, 3)), np.ones((2, 2))):
        with pytest.raises(np.linalg.LinAlgError):
            factor(a - 2.0)
        with pytest.raises(np.linalg.LinAlgError):
            solved(a, a, a[0].copy())
    swapped = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert np.array_equal(solved(swapped, swapped, swapped[0].copy())[0], swapped)


def test_absolute_values_of_complex_numbers() -> None:
    @dc.program
    def sizes(z: dc.types.complex128[N], out: dc.types.float64[N]):  # type: ignore[no-untyped-def]
        for k in range(len(z)):
            out[k] = abs(z[k])

    r = np.random.default_rng(0)
    z = (r.normal(size=400) + 1j * r.normal(size=400)) * 10.0 ** r.integers(-150, 150, 400)
    check(sizes, z, np.zeros(400))
