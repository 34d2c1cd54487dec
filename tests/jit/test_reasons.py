"""Reasons why loops are not compiled name the change that helps, and that change does help."""

from typing import Any

import numpy as np
import pytest
from written import written

import dcarray as dc

N = 3000
LOOP = "def f(x, n):\n    {start}\n    for i in range(n):\n        {step}\n    return a"
CASES = [
    ("a = 0.0", "a = a + x[i : i + 1]", "begin with a = np.zeros", "a = np.zeros(1)"),
    ("a = x[:2]", "a = a.sum()", "begin with a = np.float64(0)", "a = np.float64(0)"),
    ("a = 0", "a = max(a, x[i])", "an extremum of a number of type int and", "a = x[0]"),
]


@pytest.mark.parametrize(("start", "step", "reason", "instead"), CASES)
def test_the_change_helps(start: str, step: str, reason: str, instead: str) -> None:
    x: Any = np.arange(N, dtype="f4") if "max(a, x" in step else np.arange(float(N))
    with dc.options(jit="eager"):
        for begun in (start, instead):
            f = written("import numpy as np\n" + LOOP.format(start=begun, step=step))
            wanted = f(x, N)
            dc.report(reset=True)
            g = dc.accelerate(f)
            assert [np.array_equal(g(x, N), wanted) for _ in range(3)] == [True] * 3
            report = dc.report()
            said = " ".join(one.function for one in report.fallbacks)
            assert (reason in said) == (begun == start), said
            assert (report.loops > 0) == (begun == instead), said
