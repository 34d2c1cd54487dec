"""What is the same in all iterations of a loop is computed once, before it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from written import written

import dcarray as dc
from dcarray.core.counters import settle
from dcarray.ir.passes import Log
from dcarray.ir.passes.portable.loop_invariants import LOOP_INVARIANTS
from dcarray.ir.text import parse


def test_golden(golden):
    golden(LOOP_INVARIANTS)


@pytest.mark.parametrize("statement", [
    "m[i] = multiply(a[i], 2.0) for i<4",  # is done sooner than it is read
    "m[i] = exp(x[i]) for i<4",  # changes
    "m[i] = multiply(exp(a[i]), size:f64(t)) for i<4",
    "m[i] = exp(m[i]) for i<4",
    "m[i] = checked(less(a[i], 9.0), exp(a[i])) for i<4",
    "m[] = exp(c[]) ",
])  # fmt: skip
def test_what_stays(check: Callable[..., Log], statement: str) -> None:
    scalar = statement.startswith("m[]")
    region = f"""region() {{
          in a: f64[4];  in c: f64[];  inout x: f64[4];  inout m: f64[{"" if scalar else "4"}]
          for t in range(0, 9, 1) {{
            {statement}
            x[i] = add(x[i], m[{"" if scalar else "i"}]) for i<4
          }}
        }}
        """
    if "size" in statement:  # but for its larger part
        log = Log()
        made = LOOP_INVARIANTS.fn(parse(region), log)
        assert len(made.body) == 2 and "kept_0" in str(log)
        return
    check(LOOP_INVARIANTS, region, None)


PROGRAMS = [
    "for t in range(n):\n    M = A @ A\n    x = np.tanh(M @ x)\nreturn x",
    "for t in range(n):\n    x = x * 0.5 + np.exp(w)\nreturn x",
    "M = A * 2\nfor t in range(n):\n    M = A @ A\nreturn M",
    "t = 0\nwhile t < n:\n    e = np.log(w)\n    x += e\n    t += 1\nreturn x",
    "for t in range(n):\n    for k in range(3):\n        y = np.cos(A)\n        x = y @ x + k\nreturn x",
    "for t in range(n):\n    A[0] += 1\n    M = A @ A\n    x = M @ x * 1e-3\nreturn x",
]


@pytest.mark.parametrize("body", PROGRAMS)
@pytest.mark.parametrize("n", [0, 1, 7])
def test_programs(body: str, n: int) -> None:
    lines = "\n".join("    " + line for line in body.split("\n"))
    f = written(f"def f(A, w, x, n):\n{lines}\n", np=np)

    def run(function: Any) -> Any:
        A, w, x = np.linspace(-1, 1, 36).reshape(6, 6), np.linspace(0.5, 2, 6), np.ones(6)
        with np.errstate(all="raise"):
            return function(A, w, x, n), A, x

    want = run(f)
    with dc.options(jit="eager", cache_dir=None):
        g = dc.accelerate(f)
        before = settle().loops
        for _ in range(2):
            for got, expected in zip(run(g), want, strict=True):
                np.testing.assert_allclose(got, expected, rtol=1e-12)
        assert n == 0 or settle().loops > before
