"""Regions in which sizes that guards make equal are one symbol mean what they did."""

from typing import Any

import numpy as np

from dcarray.ir.interp import run
from dcarray.ir.parse import parse
from dcarray.ir.sizes import with_equal_sizes

TEXT = """
region(N: int>=0, M: int>=0, p: int>=-9, q: int>=-9, T: int>=0) where N-p == 0, M-q-1 == 0, T-3 == 0, p >= 1 {
  inout A: f64[p, M];  in x: f64[q+1];  temp t: f64[N, q+1];  out s: f64[]
  t[i,j] = multiply(A[i,j], x[j]) for i<N, j<M
  s[] add= t[i,j] init 0.0 for i<p, j<q+1
  for k in range(0, T, 1) {
    A[i,j] = add(A[i,j], cast:f64(size(p+q))) for i<N, j<M
    if greater(s[], 0.5) {
      A[p-1,j] = t[p-1,j] for j<q+1
    } else {
      A[i,q] = 0.0 for i<p
    }
  }
}
"""


def test_the_same_meaning() -> None:
    region = parse(TEXT)
    made = with_equal_sizes(region)
    assert "p" not in {n for a in made.arrays for d in a.shape for n in getattr(d, "names", ())}
    assert made.guards == region.guards and made.symbols == region.symbols
    for n, m, seed in ((3, 4, 0), (1, 1, 1), (5, 2, 2)):
        sizes = {"N": n, "M": m, "p": n, "q": m - 1, "T": 3}
        results: list[Any] = []
        for one in (region, made):
            r = np.random.default_rng(seed)
            memory = {"A": r.random((n, m)), "x": r.random(m) - 0.4, "s": np.zeros(())}
            run(one, memory, sizes)
            results.append(memory)
        for name in results[0]:
            np.testing.assert_array_equal(results[0][name], results[1][name])


def test_nothing_to_do() -> None:
    equal = "where N-p == 0, M-q-1 == 0, T-3 == 0, p >= 1"
    region = parse(TEXT.replace(equal, "where p >= 1, N >= p, M >= q+1"))
    assert with_equal_sizes(region) is region
