"""Regions for numbers in place of symbols give the same results."""

import numpy as np
import pytest

from dcarray.ir import interp
from dcarray.ir.parse import parse
from dcarray.ir.sizes import with_sizes
from dcarray.ir.verify import verify

LOOP = """region(N: int>=2, T: int>=0) {
  inout A: f64[N];  temp t: f64[N]
  for k in range(0, T, 1) {
    t[i] = multiply(A[i], size:f64(N+k)) for i<N
    A[i+1] = add(t[i], t[i+1]) for i<N-1
    if less(size:i64(k), size:i64(T-1)) {
      A[0] = t[0]
    }
  }
}"""


def test_results_are_those_of_the_region_with_symbols():
    region = parse(LOOP)
    for n, steps in ((2, 0), (5, 3)):
        fixed = with_sizes(region, {"N": n, "T": steps})
        verify(fixed)
        assert not fixed.symbols and fixed.arrays[0].shape == (n,)
        values = np.random.default_rng(n).random(n)
        want = interp.run(region, {"A": values.copy()}, {"N": n, "T": steps})
        np.testing.assert_array_equal(interp.run(fixed, {"A": values.copy()})["A"], want["A"])


def test_symbols_without_a_value_stay():
    half = with_sizes(parse(LOOP), {"T": 4})
    assert [symbol.name for symbol in half.symbols] == ["N"]
    verify(half)


def test_a_value_that_the_region_is_not_for_is_an_error():
    with pytest.raises(ValueError, match="N is at least 2, not 1"):
        with_sizes(parse(LOOP), {"N": 1})
