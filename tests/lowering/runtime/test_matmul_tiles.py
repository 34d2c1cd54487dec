"""Products in tiles: the same as NumPy's, whatever the layout, also over their first factor."""

import pickle

import numpy as np
import pytest
from callers import together
from hypothesis import given, settings
from hypothesis import strategies as st

from dcarray.ir.nodes import Array, Call, Index, Region, Window
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.cpu.llvm.routines.gemm import gemm
from dcarray.lowering.cpu.llvm.routines.routine import NO_KERNEL
from dcarray.lowering.program import code_cache, loaded_plan, serialise
from dcarray.lowering.runtime import array_memory, matmul_tiles, openblas

pytestmark = pytest.mark.skipif(not openblas.is_available(), reason="NumPy does not bring OpenBLAS along")


@pytest.fixture(autouse=True)
def several(monkeypatch):
    """OpenBLAS has several threads, and every product is large enough."""
    monkeypatch.setattr(openblas, "threads", lambda: 4)
    monkeypatch.setattr(matmul_tiles, "MIN_MULTIPLICATIONS", 1)
    monkeypatch.setattr(matmul_tiles, "_WORTH", 100.0)
    matmul_tiles.tile_shape.cache_clear()
    yield
    matmul_tiles.tile_shape.cache_clear()


def launch(char):
    return code_cache.of(None).loaded(gemm(char), NO_KERNEL)


def filled(rng, shape, char):
    values = rng.integers(-9, 9, shape)
    return (values + 1j * rng.integers(-9, 9, shape) if char in "FD" else values).astype(char)


def laid(rng, shape, char, how):
    """An array that lies by rows or by columns, alone or inside of a larger one."""
    rows, columns = shape[::-1] if "turned" in how else shape
    ahead = 5 if "inside" in how else 0
    array = filled(rng, (rows + ahead, columns + ahead), char)[ahead // 2 :, ahead // 2 :][:rows, :columns]
    return array.T if "turned" in how else array


HOWS = ("plain", "turned", "inside", "turned inside")


@given(st.data())
@settings(max_examples=24, deadline=None)
def test_products(data):
    m, n, k = (data.draw(st.integers(1, most)) for most in (300, 300, 40))
    char, threads = data.draw(st.sampled_from("fdFD")), data.draw(st.sampled_from((1, 2, 3, 5)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    a = laid(rng, (m, k), char, data.draw(st.sampled_from(HOWS)))
    b = laid(rng, (k, n), char, data.draw(st.sampled_from(HOWS)))
    whole = filled(rng, (m + 2, n + 3), char)
    out, want = whole[1 : m + 1, 2 : n + 2], whole.copy()
    want[1 : m + 1, 2 : n + 2] = a @ b  # of small integers, so exact in every order
    flags = matmul_tiles.multiply(out, a, b, launch(char), threads)
    assert flags in (0, None)
    if flags is None:
        assert (min(matmul_tiles.tile_shape(m, n, k, 4)) > 0 and m <= 16 and n <= 48) or 1 in (m, n, k)
    else:
        np.testing.assert_array_equal(whole, want)


@given(st.data())
@settings(max_examples=16, deadline=None)
def test_products_over_their_first_factor(data):
    m, n = data.draw(st.integers(1, 400)), data.draw(st.integers(1, 60))
    char = data.draw(st.sampled_from("fdFD"))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    inside = data.draw(st.booleans())
    whole = filled(rng, (m + 2, n + 3) if inside else (m, n), char)
    a = whole[1:-1, 2:-1] if inside else whole
    b = laid(rng, (n, n), char, data.draw(st.sampled_from(HOWS)))
    want = whole.copy()
    (want[1:-1, 2:-1] if inside else want)[...] = a @ b
    if matmul_tiles.multiply(a, a, b, launch(char), data.draw(st.sampled_from((2, 3)))) is not None:
        np.testing.assert_array_equal(whole, want)


@given(st.data())
@settings(max_examples=24, deadline=None)
def test_products_with_their_own_transpose(data):
    m, k = data.draw(st.integers(1, 300)), data.draw(st.integers(1, 40))
    char, threads = data.draw(st.sampled_from("fdFD")), data.draw(st.sampled_from((1, 2, 3, 5)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    a = laid(rng, (m, k), char, data.draw(st.sampled_from(HOWS)))
    whole = filled(rng, (m + 2, m + 3), char)
    out, want = whole[1 : m + 1, 2 : m + 2], whole.copy()
    want[1 : m + 1, 2 : m + 2] = a @ a.T.copy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matmul_tiles, "_MIN_SIDE", 1)
        patch.setattr(openblas, "threads", lambda: data.draw(st.sampled_from((2, 3, 9))))
        flags = matmul_tiles.multiply(out, a, a.T, launch(char), threads)
    assert flags in (0, None) and (flags == 0 or m <= 16 or k == 1)
    if flags == 0:
        np.testing.assert_array_equal(whole, want)


def test_half_a_product_is_the_same_on_both_sides():
    x, out = np.random.default_rng(6).random((700, 300)), np.empty((700, 700))
    assert matmul_tiles.multiply(out, x, x.T, launch("d"), 3) is None  # four blocks of less than 256
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openblas, "threads", lambda: 2)
        assert matmul_tiles.multiply(out, x, x.T, launch("d"), 3) == 0
    np.testing.assert_allclose(out, x @ x.T.copy(), rtol=1e-13)
    assert out.tobytes() == out.T.tobytes()


def test_what_is_left_to_the_library(monkeypatch):
    rng = np.random.default_rng(1)
    x, y, out = (filled(rng, (200, 200), "d") for _ in range(3))
    before = out.copy()

    def left(out, a, b):
        return matmul_tiles.multiply(out, a, b, launch("d"), 2) is None

    assert left(out, x[:, ::2], y[::2])
    assert left(out[::2, ::2], x[::2], y[:, ::2])
    assert left(out, x[::-1], y)
    assert left(out.T, x, y)
    assert left(out, x, x.T)  # too small to be halved
    assert left(out, x, out)
    assert left(out[1:], out[:-1], y)  # rows that others read
    assert left(out, out.T, y)
    monkeypatch.setattr(openblas, "threads", lambda: 1)  # the user wants it so
    assert left(out, x, y)
    np.testing.assert_array_equal(out, before)


def test_last_bits_do_not_depend_on_our_threads():
    rng = np.random.default_rng(3)
    x, y = rng.random((90, 700)).astype("f"), rng.random((700, 500)).astype("f")
    found = []
    for threads in (1, 2, 3):
        out = np.empty((90, 500), "f")
        assert matmul_tiles.multiply(out, x, y, launch("f"), threads) == 0
        found.append(out.tobytes())
    assert found[0] == found[1] == found[2]


def test_flags_of_every_tile():
    x, y, out = np.ones((640, 64)), np.ones((64, 96)), np.empty((640, 96))
    assert matmul_tiles.multiply(out, x, y, launch("d"), 3) == 0
    for row in (0, 333, 639):
        bad = x.copy()
        bad[row, 5] = np.inf
        bad[row, 6] = -np.inf
        assert matmul_tiles.multiply(out, bad, y, launch("d"), 3) == 8
        assert np.isnan(out[row]).all() and np.isfinite(np.delete(out, row, 0)).all()
    assert matmul_tiles.multiply(out, x * 1e200, y * 1e200, launch("d"), 3) & 2


@given(*[st.integers(1, 5000)] * 3, st.sampled_from((2, 3, 8, 64, 200)), st.sampled_from((0, 1, 500)))
def test_tiles_are_few_and_not_empty(m, n, k, threads, most):
    rows, columns = matmul_tiles.tile_shape(m, n, k, threads, most)
    assert rows > 0 and 0 < columns <= n
    assert -(-m // rows) * -(-n // columns) <= max(matmul_tiles._MAX_TILES, 1)
    if most:
        assert columns == n


def test_products_of_several_threads_at_once():
    rng = np.random.default_rng(2)
    a, b = filled(rng, (400, 300), "d"), filled(rng, (300, 300), "d")
    want, wrong, code = a @ b, [], launch("d")

    def work(_):
        for _ in range(20):
            over = a.copy()
            if matmul_tiles.multiply(over, over, b, code, 2) != 0 or not np.array_equal(over, want):
                wrong.append(over)

    together(4, work)
    assert not wrong


def product(m, n, over):
    def window(name, r, c):
        return Window(name, (r, c), (Index(0, 1, 0), Index(0, 1, 1)))

    a, b = window("a", m, n), window("b", n, n)
    arrays = [
        Array("a", np.dtype("d"), (m, n), "inout" if over else "in"),
        Array("b", np.dtype("d"), (n, n), "in"),
    ]
    arrays += [] if over else [Array("o", np.dtype("d"), (m, n), "inout")]
    return Region((), tuple(arrays), (Call("blas.matmul", (a, b), (a if over else window("o", m, n),)),))


@pytest.mark.parametrize("over", [False, True])
@pytest.mark.parametrize("travels", [False, True])
def test_plans(monkeypatch, over, travels):
    plan = compile_region(product(500, 200, over))
    made = loaded_plan.deserialised(serialise.serialised(plan, [])) if travels else plan
    rng = np.random.default_rng(3)
    a, b, o = filled(rng, (500, 200), "d"), filled(rng, (200, 200), "d"), np.zeros((500, 200))
    want, given_ = a @ b, [a, b] if over else [a, b, o]
    seen = []
    multiply = matmul_tiles.multiply
    monkeypatch.setattr(matmul_tiles, "multiply", lambda *args: seen.append(multiply(*args)) or seen[-1])
    assert made.run(given_, [array_memory.address_of(x) for x in given_], (), 2) == 0
    assert seen == [0]
    np.testing.assert_array_equal(a if over else o, want)
    assert pickle.loads(serialise.serialised(plan, []))


@pytest.mark.parametrize("usable", [True, False])
def test_over_its_factor_without_threads(monkeypatch, usable):
    if not usable:
        monkeypatch.setattr(openblas, "is_available", lambda: False)
    plan = compile_region(product(50, 20, True), threads=1)
    rng = np.random.default_rng(4)
    a, b = filled(rng, (50, 20), "d"), filled(rng, (20, 20), "d")
    want = a @ b
    plan.run([a, b], [array_memory.address_of(x) for x in (a, b)], (), 1)
    np.testing.assert_array_equal(a, want)
