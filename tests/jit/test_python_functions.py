"""Python's own functions of numbers in compiled loops: results and errors are Python's."""

from typing import Any

import numpy as np
import pytest
from compare_accelerated import alike
from written import written

pytestmark = pytest.mark.eager

R = np.random.default_rng(5)
X = R.normal(size=200) * 3
ODD = (np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -1.5, 2.5, 1e300)


def function(value: str, kind: str = "float") -> Any:
    return written(f"""
        import math
        import numpy as np
        def f(x, n, s):
            for i in range(n):
                v = {"float(x[i])" if kind == "float" else "x[i]"}
                s = {value}
            return s
    """)


VALUES = [
    *["math.trunc(v) + s", "math.copysign(s + 1.0, v)", "math.fmod(v, 1.5) + s * 0.5", "math.erf(v) + s"],
    *["math.erfc(v) - s", "s + math.isnan(v)", "s + math.isinf(v) * 2 + math.isfinite(v)"],
    *["round(v) + s", "s + v % 0.7", "s + v // 0.7", "divmod(v, -1.3)[0] + s", "divmod(v, 2.0)[1] - s"],
    *["s + any([v > 0, i > 3])", "s + all((v < 1, i % 2))", "s + (int(v) + round(v) + i)"],
    *["s + (any([]) + all([]))", "s + (1, -2, 5)[i % 3]", "s + [0.5, v, -v][int(abs(v)) % 3]"],
    *["s + ((1, 0) if i is None else (2, 3))[1]"],
    *["s + sum([abs(i - 5), abs(5 - i), abs(-i)])", "s * 0.5 + pow(v, 2)", "s + np.clip(v, -1, 1)"],
]


@pytest.mark.parametrize("value", VALUES)
def test_functions(value: str) -> None:
    f = function(value)
    x = X.copy()
    assert alike(f, x, 200, 0.25)
    for odd in ODD:
        x[150] = odd
        alike(f, x, 200, 0.25)


@pytest.mark.parametrize("value", ["round(v, 2) + s", "round(v) + s", "s + np.clip(v, 0, 2)", "v % 1.5 - s"])
def test_functions_of_numpys_scalars(value: str) -> None:
    f = function(value, "numpy")
    x = X.copy()
    assert alike(f, x, 200, np.float64(0.25))
    for odd in ODD:
        x[150] = odd
        alike(f, x, 200, np.float64(0.25))


def test_division_of_floats_by_zero() -> None:
    for value in ("s + v % (i - 150)", "s + v // (i - 150.0)", "s + 1.0 % (v - v)"):
        alike(function(value), X, 200, 0.5)


@pytest.mark.parametrize("value", ["s + round(v, 2)", "s + pow(i, 3, 7)"])
def test_what_stays_pythons(value: str) -> None:
    assert not alike(function(value), X, 200, 0.5)


@pytest.mark.parametrize("n", [0, 1, 50])
@pytest.mark.parametrize("start", ["0.0", "0", "np.float64(0)"])
def test_a_number_of_numpys_as_the_end_of_a_range(n: int, start: str) -> None:
    f = written(f"""
        import numpy as np
        def f(x, n):
            s = {start}
            for i in range(n):
                s += x[i]
            return s
    """)
    assert alike(f, X, np.int64(n)) or not n


@pytest.mark.parametrize("value", ["s + (1, -2, 5)[i % 3 - 1]", "s + (1, -2.0)[i % 2]", "s + (1, 2)[i]"])
def test_items_that_are_left_to_python(value: str) -> None:
    """Of negative indices, of several types, and out of bounds."""
    assert not alike(function(value), X, 200, 0.25)


@pytest.mark.parametrize(
    "ends", ["0, 300 * 10**15, 10**15", "8 * 10**17, 0, -(10**15)", "2**63 - 99, 2**63 - 1"]
)
def test_ranges_of_large_numbers_are_left_to_python(ends: str) -> None:
    f = written(f"""
        def f(n):
            for k in range({ends}):
                n += k & 3
            return n, k
    """)
    assert [alike(f, n) for n in (0, 1)] == [0, 0]
