"""What runs keep in case of an exception, and where temporaries lie: results, what NumPy says, and how much
memory that takes."""

import tracemalloc
import warnings

import numpy as np
import pytest

import dcarray as dc

SIZE = 512  # arrays of 2 MB


def gemm(c, a, b):
    c[:] = 1.5 * a @ b + 1.2 * c


def chain(c, a, b):
    return a @ b @ c @ a


def in_shapes(c, a, b):
    flat = np.reshape(c, (-1,))
    for n in (2, 4, 8):
        parts = np.reshape(c, (n, -1))
        flat[:] = np.reshape(np.transpose(parts) * 1.5, (-1,)) + np.reshape(a, (-1,))
        c *= b


def products_in_shapes(c, a, b):
    for n in (2, 4):
        parts = np.reshape(c, (n * SIZE, SIZE // n))
        parts[:] = np.reshape(np.reshape(parts, (SIZE, SIZE)) @ b, (n * SIZE, SIZE // n))
        c += a


def inputs(kind):
    rng = np.random.default_rng(5)
    c, a, b = (rng.random((SIZE, SIZE)) for _ in range(3))
    if kind == "overflow":
        c[3, 4] = 1.7e308
    elif kind == "product":
        a[5] = b[:, 6] = 1e200
    elif kind == "invalid":
        c[7, 7], a[7, 7] = np.inf, -np.inf
    return c, a, b


def outcome(run, kind, wrap, **state):
    given = inputs(kind)
    arrays = [dc.asarray(x) if wrap else x for x in given]
    with warnings.catch_warnings(record=True) as caught, np.errstate(**state):
        warnings.simplefilter("always")
        result = run(*arrays)
        dc.evaluate(*arrays[:1])
        result = None if result is None else np.asarray(result)
    return result, given, sorted((str(w.message), w.lineno) for w in caught)


@pytest.mark.parametrize("state", [{}, {"all": "ignore"}, {"over": "ignore"}], ids=str)
@pytest.mark.parametrize("kind", ["", "overflow", "product", "invalid"])
@pytest.mark.parametrize("run", [gemm, chain, in_shapes, products_in_shapes])
def test_results_and_warnings_are_numpys(run, kind, state):
    result, arrays, said = outcome(run, kind, False, **state)
    with dc.options(eager_below=0, jit="eager"):
        for _ in range(2):
            ours, mine, told = outcome(run, kind, True, **state)
            with np.errstate(all="ignore"):
                for x, y in zip(arrays, mine, strict=True):
                    np.testing.assert_allclose(y, x, rtol=1e-12)
                if result is not None:
                    np.testing.assert_allclose(ours, result, rtol=1e-12)
            if run is not chain:  # its products overflow or not by the order of their terms
                assert told == said


@pytest.fixture
def most():
    """The memory used at once since it was last asked for, in arrays, without the three that are given."""

    def told():
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        return (most - tracemalloc.get_traced_memory()[0]) / (8 * SIZE * SIZE) - 3

    tracemalloc.start()
    yield told
    tracemalloc.stop()


@pytest.mark.parametrize(("run", "arrays"), [
    (gemm, 2),  # 1.5 * a and the product, where the result is made: no copy of c
    (chain, 2),  # the first product lies where the result will
])  # fmt: skip
def test_memory_of_a_run(most, run, arrays):
    with dc.options(eager_below=0, jit="eager"):
        for _ in range(3):
            most()
            outcome(run, "", True)
    assert arrays <= most() < arrays + 0.3


def test_memory_in_several_shapes_is_copied_once(most):
    with dc.options(eager_below=0, jit="eager"):
        for _ in range(3):
            most()
            outcome(products_in_shapes, "", True)
    assert most() < 2.3
