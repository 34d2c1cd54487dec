"""Products of a large matrix with one of few rows or columns."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import recorded_products
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.lowering.cpu.llvm.libraries import LIBRARIES
from dcarray.lowering.cpu.llvm.object_code import engine
from dcarray.lowering.cpu.llvm.routines.routine import NO_KERNEL
from dcarray.lowering.cpu.llvm.routines.skinny_products import skinny as routine
from dcarray.lowering.runtime import skinny_products


def loaded(char: str, bits: int, monkeypatch: pytest.MonkeyPatch | None = None) -> Any:
    if monkeypatch is not None:
        narrower = replace(engine.machine(), vector_bits=bits)
        monkeypatch.setattr(engine, "machine", lambda: narrower)
    made = routine(char)
    return made.load(NO_KERNEL, made.compile(made.emit(NO_KERNEL)))


_own: dict[tuple[str, int], Any] = {}


def launch(char: str, bits: int) -> Any:
    if (char, bits) not in _own:
        with pytest.MonkeyPatch.context() as patch:
            _own[char, bits] = loaded(char, bits, patch)
    return _own[char, bits]


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skinny_products, "MIN_BYTES", 0)


def product(a: Any, b: Any, out: Any, bits: int = 0, threads: int = 2) -> int | None:
    bits = min(bits or 512, engine.machine().vector_bits)
    return skinny_products.multiply(out, a, b, launch(out.dtype.char, bits), threads)


def matrix(rows: int, columns: int, dtype: str, order: str, r: Any) -> Any:
    """By rows, by columns, or a part of a larger one."""
    whole = r.standard_normal((rows + 3, columns + 5)).astype(dtype)
    if order == "part":
        return whole[2 : 2 + rows, 1 : 1 + columns]
    return np.asarray(whole[:rows, :columns], order=order)


@given(
    st.integers(2, 16), st.integers(48, 400),
    st.sampled_from([1, 2, 15, 16, 17, 255, 256, 257, 511, 513, 1100]),
    st.sampled_from("fd"), *[st.sampled_from(["C", "F", "part"])] * 3, st.booleans(),
    st.sampled_from([128, 256, 512]), st.integers(1, 3), st.integers(0, 9),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
@example(8, 1000, 1030, "f", "C", "C", "C", False, 512, 3, 0)
@example(3, 3000, 70, "d", "C", "F", "C", True, 256, 2, 0)
def test_every_way_that_they_lie(
    m: int, n: int, k: int, dtype: str, la: str, lb: str, lo: str, turned: bool, bits: int, threads: int,
    seed: int,
) -> None:  # fmt: skip
    r = np.random.default_rng(seed)
    a, b, out = matrix(m, k, dtype, la, r), matrix(k, n, dtype, lb, r), matrix(m, n, dtype, lo, r)
    around = out.base.copy() if out.base is not None else None
    want = a.astype("d") @ b.astype("d")
    if turned:
        a, b, out, want = b.T, a.T, out.T, want.T
    assert product(a, b, out, bits, threads) == 0
    tolerance = (1e-5 if dtype == "f" else 1e-13) * np.sqrt(k)
    np.testing.assert_allclose(out, want, rtol=tolerance, atol=tolerance)
    if lo == "part":  # and nothing else was written
        base = (out.T if turned else out).base
        base[2 : 2 + m, 1 : 1 + n] = around[2 : 2 + m, 1 : 1 + n]
        np.testing.assert_array_equal(base, around)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", "fd")
def test_threads_and_parts_change_no_bit(dtype: str, order: str) -> None:
    r = np.random.default_rng(0)
    a, b = matrix(7, 700, dtype, "C", r), matrix(700, 5000, dtype, order, r)
    made = []
    for threads in (1, 2, 3, 7):
        out = np.empty((7, 5000), dtype)
        assert product(a, b, out, threads=threads) == 0
        made.append(out)
    for out in made[1:]:
        np.testing.assert_array_equal(out, made[0])


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_error_is_like_that_of_blas(order: str) -> None:
    """Long sums of numbers of one sign, in single precision."""
    r = np.random.default_rng(1)
    a, b = r.random((8, 50_000), np.float32), np.asarray(r.random((50_000, 96), np.float32), order=order)
    out, exact = np.empty((8, 96), np.float32), a.astype("d") @ b.astype("d")
    assert product(a, b, out) == 0
    assert np.abs(out / exact - 1).max() < 3 * np.abs(a @ b / exact - 1).max()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("m", "n", "k"), [(3, 100, 333), (9, 49, 17)])
def test_infinities_raise_what_they_raise(m: int, n: int, k: int, order: str) -> None:
    """What fills rows up to a multiple, or is beside the last columns, raises nothing."""
    r = np.random.default_rng(2)
    a, b, out = r.random((m, k)), np.asarray(r.random((k, n)), order=order), np.empty((m, n))
    b[k // 2] = np.inf
    a[-1, 0] = np.nan
    assert product(a, b, out) == 0
    np.testing.assert_array_equal(np.isposinf(out), np.isposinf(a @ b))
    np.testing.assert_array_equal(np.isnan(out), np.isnan(a @ b))
    a[0, k // 2] = 0
    assert product(a, b, out) == 8  # invalid: zero by infinity
    assert np.isnan(out[0]).all()
    a[:], b[:] = 1e200, 1e200
    assert product(a, b, out) == 2  # overflow
    assert np.isposinf(out).all()


def test_in_the_place_of_a_factor() -> None:
    r = np.random.default_rng(3)
    a, b = r.standard_normal((4, 200)), r.standard_normal((200, 200))
    want = a @ b
    assert product(a, b, a) == 0
    np.testing.assert_allclose(a, want, rtol=1e-10, atol=1e-10)
    assert product(b[:4], b, b[:4]) is None  # the large one is read where it lies


@pytest.mark.parametrize(("a", "b"), [
    (np.ones((1, 100)), np.ones((100, 100))),
    (np.ones((17, 100)), np.ones((100, 100))),
    (np.ones((4, 100)), np.ones((100, 200))[:, ::2]),
    (np.ones((4, 100)), np.ones((100, 40))),
    (np.ones((4, 100), complex), np.ones((100, 100), complex)),
])  # fmt: skip
def test_what_is_left_to_others(a: Any, b: Any) -> None:
    out = np.full((len(a), b.shape[1]), 7, a.dtype)
    assert skinny_products.multiply(out, a, b, None, 2) is None  # type: ignore[arg-type]
    assert (out == 7).all()


@pytest.mark.parametrize("stacked", [False, True])
def test_plans_use_it(monkeypatch: pytest.MonkeyPatch, stacked: bool) -> None:
    """Where the rows are few; for others there is another plan."""
    served = recorded_products.served(monkeypatch)
    r = np.random.default_rng(4)
    w, bias = r.standard_normal((300, 500)).astype("f"), r.standard_normal(500).astype("f")
    with dc.options(jit="eager", eager_below=0, cache_dir=None):
        for rows in (8, 40, 4, 200, 12):
            shape = (2, rows // 2, 300) if stacked else (rows, 300)
            x = r.standard_normal(shape).astype("f")
            got = np.asarray(np.maximum(dc.asarray(x) @ dc.asarray(w) + bias, 0))
            np.testing.assert_allclose(got, np.maximum(x @ w + bias, 0), rtol=1e-4, atol=1e-4)
    assert [int(np.prod(shape[:-1])) for shape in served] == [8, 4, 12]


def test_warnings_are_those_of_numpy() -> None:
    w = np.full((300, 500), 1e300)
    x = np.full((3, 300), 1e300)
    with dc.options(jit="eager", eager_below=0), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        np.asarray(dc.asarray(x) @ dc.asarray(w) + 1)
    assert {str(w.message) for w in caught} == {"overflow encountered in matmul"}


def test_small_products_are_not_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert skinny_products.is_skinny(8, 30_000, 30_000, 4) and skinny_products.is_skinny(30_000, 2, 1000, 8)
    assert not skinny_products.is_skinny(8, 1000, 1000, 4) and not skinny_products.is_skinny(
        17, 30_000, 30_000, 4
    )
    assert [one.name for one in LIBRARIES["blas.matmul"]] == ["skinny", "numpy"]


@pytest.mark.parametrize(("rows", "said"), [
    (4, "blas.matmul, the large matrix is read once"),
    (1000, "blas.matmul, by NumPy's BLAS, in tiles"),
    (40, "blas.matmul, by NumPy"),
])  # fmt: skip
def test_listings_say_who_makes_a_product(rows: int, said: str) -> None:
    with dc.options(threads=2, eager_below=0):
        w = dc.asarray(np.ones((100, 200)))
        assert said in str(dc.explain(np.maximum(dc.asarray(np.ones((rows, 100))) @ w, 0)))
