"""Consecutive statements on small arrays are one kernel, which gives what they give one by one."""

import numpy as np
import pytest

from dcarray.ir import interp
from dcarray.ir.text import parse
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.program.small_statements import joined

TEXT = """region(SYMBOLS) {
  in A: f64[N, 4];  in X: f64[4];  temp T: f64[N];  out Y: f64[N];  inout S: f64[]
  T[i] add= multiply(A[i, j], X[j]) init 0.0 for i<N, j<4
  Y[i] = sqrt(absolute(subtract(T[i], X[0]))) for i<N
  S[] add= Y[i] init 0.0 for i<N
}
"""


def region(size: str, symbols: str = ""):
    return parse(TEXT.replace("N", size).replace("SYMBOLS", symbols))


@pytest.mark.parametrize(
    ("size", "symbols", "kernels"), [("4", "", 1), ("4000", "", 3), ("n", "n: int>=1", 3)]
)
def test_the_number_of_kernels(size: str, symbols: str, kernels: int) -> None:
    plan = compile_region(region(size, symbols), "cpu", threads=1)
    assert plan.stats["kernels"] == kernels
    n = 4 if symbols else int(size)
    rng = np.random.default_rng(0)
    memory = {"A": rng.random((n, 4)), "X": rng.random(4), "Y": np.zeros(n), "S": np.array(7.0)}
    values = {"n": n} if symbols else {}
    want = interp.run(region(size, symbols), {k: v.copy() for k, v in memory.items()}, values)
    arrays = [memory[name] for name in plan.arrays]
    assert plan.run(arrays, [a.ctypes.data for a in arrays], [*values.values()], 1) == 0
    for name in ("Y", "S"):
        np.testing.assert_allclose(memory[name], want[name], rtol=1e-15)


@pytest.mark.parametrize(("stop", "new", "statements"), [(None, None, 1), (0, 0, 1), (1, 1, 2), (2, 1, 2)])
def test_a_run_may_end_before_the_same_statement(stop: int | None, new: int | None, statements: int) -> None:
    made, place = joined(region("4"), stop)
    assert place == new and len(made.body) == statements
