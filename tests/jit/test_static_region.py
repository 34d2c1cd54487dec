"""Regions of functions for one call: sizes are numbers, integer arguments constants."""

import numpy as np
import pytest

import dcarray as dc
from dcarray.ir import interp
from dcarray.jit.program.static_region import static_region

N = dc.symbol("N")


def sweep(A, B, steps, weight, scale=0.5):
    B[1:-1, 1:-1] = weight * (A[1:-1, 1:-1] + A[:-2, 1:-1])
    for _ in range(steps):
        A[1:-1, 1:-1] = scale * (B[1:-1, 1:-1] + B[:-2, 1:-1])
    return np.sum(A, axis=0)


@dc.program
def halves(A: dc.types.float32[N, N], weight: float):
    return A[1:] * weight + N


@dc.program
def repeated(A: dc.types.float64[8], count: int):
    for _ in range(count):
        A[1:] = A[1:] + A[:-1]


def test_a_region_of_examples_gives_what_the_function_does():
    rng = np.random.default_rng(0)
    A, B = rng.random((20, 30)), rng.random((20, 30))
    found = static_region(sweep, (A, B, 3), {"weight": np.float64(3.0)})
    assert not found.region.symbols
    got = interp.run(found.region, {name: array.copy() for name, array in found.memory.items()})
    want = sweep(A, B, 3, np.float64(3.0))
    np.testing.assert_array_equal(got["A"], A)
    np.testing.assert_array_equal(got["B"], B)
    np.testing.assert_array_equal(got[found.traced.results[0].name], want)


def test_what_is_not_given_follows_from_annotations():
    found = static_region(halves, sizes={"N": 30})
    assert found.memory["A"].shape == (30, 30) and found.memory["A"].dtype == np.float32
    got = interp.run(found.region, dict(found.memory))[found.traced.results[0].name]
    np.testing.assert_array_equal(got, halves(found.memory["A"], found.memory["weight"].item()))


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: static_region(halves), ValueError, "the size N is not known"),
    (lambda: static_region(repeated), ValueError, "the value of the argument count has to be given"),
    (lambda: static_region(halves, (np.ones((3, 4), np.float32),)), ValueError, r"of shape \(3, 3\)"),
    (lambda: static_region(sweep), ValueError, "the argument A has neither a value nor a type"),
    (lambda: static_region(3), TypeError, "a Python function is expected"),
    (lambda: static_region(sweep, ("a", 1, 2, 3.0)), TypeError, "the argument A is neither"),
])  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()
