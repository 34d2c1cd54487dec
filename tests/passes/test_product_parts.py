"""Parts of products: what is read of a product is what is computed."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from written import written

import dcarray as dc
from dcarray.ir import interp
from dcarray.ir.nodes import Call
from dcarray.ir.parse import parse
from dcarray.ir.passes import Log
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.passes.portable.product_parts import PRODUCT_PARTS


def test_golden(golden):
    golden(PRODUCT_PARTS)


def test_both_operands_are_one_window() -> None:
    """That very object, as a rewrite may leave it."""
    region = parse("""region() {
      inout a: f64[4, 4];  temp t: f64[4, 4];  out r: f64[]
      call blas.matmul(a, a) -> t
      r[] = add(t[3,2], 1.0)
    }""")
    call, last = region.body
    assert isinstance(call, Call)
    one = replace(region, body=(replace(call, reads=(call.reads[0], call.reads[0])), last))
    after = PRODUCT_PARTS.fn(one, Log())
    assert after is not one
    a = np.random.default_rng(0).random((4, 4))
    assert interp.run(after, {"a": a})["r"] == pytest.approx((a @ a)[3, 2] + 1.0)


@pytest.mark.parametrize(("array", "read"), [
    ("out t: f64[9, 9]", "r[i] = t[0,i] for i<9"),  # a result
    ("temp t: f64[9, 9]", "r[i] add= t[j,i] init 0.0 for i<9, j<9"),  # all of it
    ("temp t: f64[9, 9]", "for k in range(0, 2, 1) {\n    r[i] = t[k,i] for i<9\n  }"),  # in a loop
    ("temp t: f64[9, 9]", "t[i,0] = 1.0 for i<9\n  r[i] = t[0,i] for i<9"),  # partly written again
    ("temp t: f64[9, 9]", "r[i] = add(t[i,i], t[0,i]) for i<9"),  # the diagonal, and more
])  # fmt: skip
def test_what_is_computed_as_a_whole(array: str, read: str, check: Callable[..., Log]) -> None:
    text = f"""region() {{
  in a: f64[9, 8];  in b: f64[8, 9];  {array};  inout r: f64[9]
  call blas.matmul(a, b) -> t
  {read}
}}"""
    check(PRODUCT_PARTS, text, None)


def _slice(r: random.Random, n: int) -> tuple[str, int]:
    """The index of some elements along an axis of n, and how many they are."""
    count = r.randint(1, n)
    stride = r.choice([s for s in (1, 2, -1, -2) if abs(s) * (count - 1) < n])
    low = r.randint(0, n - 1 - abs(stride) * (count - 1))
    return f"{low if stride > 0 else low - stride * (count - 1)}+({stride})*", count


def test_random_parts() -> None:
    """Of products that are read in one or two places, also on a diagonal, by what is fused or not."""
    smaller = 0
    for seed in range(40):
        r = random.Random(seed)
        n, m, k = (r.randint(8, 12) for _ in range(3))
        lines = []
        for out in "rs"[: r.randint(1, 2)]:
            (row, rows), (column, columns) = _slice(r, n), _slice(r, m)
            if r.random() < 0.4:
                rows = min(rows, columns)
                lines.append(f"{out}[i,0] = add(t[{row}i,{column}i], 1.0) for i<{rows}")
            else:
                lines.append(f"{out}[i,j] = multiply(t[{row}i,{column}j], 2.0) for i<{rows}, j<{columns}")
        text = "\n  ".join(lines).replace("+(", "+").replace(")*", "*").replace("+-", "-")
        region = parse(f"""region() {{
  in a: f64[{n}, {k}];  in b: f64[{k}, {m}];  temp t: f64[{n}, {m}]
  inout r: f64[12, 12];  inout s: f64[12, 12]
  t[i,j] add= multiply(a[i,l], b[l,j]) init 0.0 for i<{n}, j<{m}, l<{k}
  {text}
}}""")  # fmt: skip
        rng = np.random.default_rng(seed)
        memory: dict[str, Any] = {x.name: rng.random(x.shape) for x in region.arrays if x.role != "temp"}
        want = interp.run(region, {name: x.copy() for name, x in memory.items()})
        log = Log()
        after = CPU.run(region, log, debug=True)
        got = interp.run(after, {name: x.copy() for name, x in memory.items()})
        for name in want:
            np.testing.assert_allclose(got[name], want[name], rtol=1e-13)
        smaller += "product_parts: done" in str(log)
    assert smaller >= 20


def test_in_programs() -> None:
    text = """
from __future__ import annotations
import numpy as np
def f(a: np.float64[N, K], b: np.float64[K, N]):
    t = a @ b
    return np.trace(a @ b), t[0], (b.T @ a.T)[1:, :2].sum(axis=0)
"""
    f = dc.program(written(text, **{n: dc.symbol(n) for n in "NK"}))
    r = np.random.default_rng(0)
    with dc.options(cache_dir=None):
        for n, k in ((30, 20), (8, 1), (2, 3)):
            a, b = r.random((n, k)), r.random((k, n))
            for got, want in zip(f(a, b), f.written(a, b), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-13)
    before, after = f.explain().split("after the passes")
    assert before.count("blas.matmul") == 3 and after.count("blas.matmul") == 2  # the diagonal is a sum


def test_recorded() -> None:
    r = np.random.default_rng(0)
    a, b = r.random((200, 100)), r.random((100, 300))
    x, y = dc.asarray(a), dc.asarray(b)
    found = dc.explain(lambda: np.asarray((x @ y)[0] + 1.0))
    (region,) = [one.final for one in found.regions]
    (call,) = [stmt for stmt in region.body if isinstance(stmt, Call)]
    assert call.reads[0].shape == (1, 100)
    np.testing.assert_allclose(np.asarray((x @ y)[0] + 1.0), (a @ b)[0] + 1.0, rtol=1e-13)
