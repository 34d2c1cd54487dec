"""Slight products stay on one thread of OpenBLAS where kernels run in between."""

from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

import dcarray as dc
from dcarray.core.counters import counters
from dcarray.lowering.runtime import openblas, threads
from dcarray.recording import products
from dcarray.tiering import blas_sharing

pytestmark = pytest.mark.skipif(not openblas.is_available(), reason="NumPy does not bring OpenBLAS along")

SMALL = (8, 2000), (2000, 60)


@pytest.fixture
def small_products(monkeypatch: pytest.MonkeyPatch) -> Iterator[blas_sharing.SmallProducts]:
    """One that has seen no kernels since the last product, beside threads of ours."""
    monkeypatch.setattr(threads, "native", SimpleNamespace(has_threads=lambda: True))
    made = blas_sharing.SmallProducts()
    made._kernels = counters.kernels
    monkeypatch.setattr(products, "SMALL_PRODUCTS", made)
    yield made


def alone(small_products: blas_sharing.SmallProducts, *shapes: tuple[int, ...]) -> bool:
    with small_products.context(*shapes) as here:
        return here is not None


def test_the_first_few_after_a_kernel(
    small_products: blas_sharing.SmallProducts, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not alone(small_products, *SMALL)
    for _ in range(2):
        counters.kernels += 1
        found = [alone(small_products, *SMALL) for _ in range(blas_sharing._AFTER_KERNEL + 2)]
        assert found == [True] * blas_sharing._AFTER_KERNEL + [False] * 2
    counters.kernels += 1
    monkeypatch.setattr(threads, "native", SimpleNamespace(has_threads=lambda: False))
    assert not alone(small_products, *SMALL)


def test_neither_large_ones_nor_those_that_nobody_shares_out(
    small_products: blas_sharing.SmallProducts,
) -> None:
    counters.kernels += 1
    for shapes in (((8, 2000), (2000, 300)), ((1000,), (1000,)), ((3, 4), (4, 5)), ((1000, 1000), (1000,))):
        assert not alone(small_products, *shapes)
    assert alone(small_products, *SMALL)
    assert alone(small_products, (300, 300), (300,))


def test_none_where_ranks_make_the_same(small_products: blas_sharing.SmallProducts) -> None:
    def on_a_rank() -> bool:
        counters.kernels += 1
        return alone(small_products, *SMALL)

    assert dc.comm.run(2, on_a_rank) == [False, False]


def test_the_product_is_that_of_one_thread(
    small_products: blas_sharing.SmallProducts, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    enter = openblas.SingleThreaded.__enter__
    monkeypatch.setattr(openblas.SingleThreaded, "__enter__", lambda self: made.append(1) or enter(self))
    rng = np.random.default_rng(1)
    a, b = (rng.random(shape) for shape in SMALL)
    large = rng.random((2000, 300))
    with openblas.SingleThreaded():
        want = a @ b
    made.clear()
    with dc.options(eager_below=1 << 14, jit="off"):
        x, y, z = dc.asarray(a), dc.asarray(b), dc.asarray(large)
        counters.kernels += 1
        np.testing.assert_array_equal(np.asarray(x @ y), want)
        assert len(made) == 1
        np.testing.assert_allclose(np.asarray(x @ z), a @ large)
        assert len(made) == 1
