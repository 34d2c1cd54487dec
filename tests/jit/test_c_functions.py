"""Functions of `math` and powers of scalars in loops: the C library's bits, Python's and NumPy's errors."""

from typing import Any

import numpy as np
import pytest
from compare_accelerated import alike
from written import written

import dcarray as dc
from dcarray.ir.ops import C_LIBRARY, OPS, loop_dtype
from dcarray.lowering.runtime import numpy_loops

R = np.random.default_rng(11)


def function(line: str) -> Any:
    return written(f"""
import math
import numpy as np
def f(x, y, s, n):
    for i in range(n):
        {line}
    return x, s
""")


NAMES = [name.removeprefix("c_") for name in C_LIBRARY if OPS[name].nin == 1]


@pytest.mark.parametrize("name", NAMES)
def test_functions(name: str) -> None:
    x = R.uniform(1.0, 3.0, 400) if name == "acosh" else R.uniform(0.01, 0.99, 400)
    f = function(f"x[i] = math.{name}(x[i]) + s\n        s = math.{name}(y[i])")
    assert alike(f, x, x[::-1].copy(), 0.25, 400) or name in ("acosh", "atanh")  # which no kernel has
    x[300] = -2.0  # of which some are errors, after many turns
    alike(f, x, x[::-1].copy(), 0.25, 400)
    for odd in (np.inf, -np.inf, np.nan, 0.0, 1.0, -1.0, 1e4):
        x[300] = odd
        alike(f, x, x[::-1].copy(), 0.25, 400)


@pytest.mark.parametrize("line", [
    "x[i] = x[i] ** 2 + y[i] ** s",  # NumPy's scalars
    "x[i] = 2 ** x[i] - 1.5 ** y[i]",
    "s = s * 0.5 + x[i]\n        x[i] = float(s) ** 2 - float(y[i]) ** 0.5",  # Python's floats
    "x[i] = math.pow(x[i], 3) + math.atan2(y[i], x[i]) + math.log(i + 1)",
    "x[i] = math.radians(x[i]) * math.degrees(y[i]) + math.fabs(-x[i])",
    "x[i] = math.floor(x[i] * 9) % 5 - math.ceil(y[i] * 7) % n + math.floor(i)",
    "x[math.floor(x[i] * 9)] += math.exp(-y[i])",
    "s = math.sin(0.5) + math.exp(1)\n        x[i] += s ** i",
])  # fmt: skip
def test_powers_and_other_functions(line: str) -> None:
    x, y = R.uniform(0.1, 0.9, 300), R.uniform(0.1, 0.9, 300)
    f = function(line)
    assert alike(f, x, y, 1.7, 300)
    for odd in (-0.5, 0.0, np.nan, np.inf, 1e300):
        x[200] = y[210] = odd
        alike(f, x, y, 1.7, 300)
    alike(f, x, y, -600.0, 300)


def test_squares_have_the_bits_of_the_library() -> None:
    """Which are those of the product for all but some thousandths of all numbers."""
    x = R.uniform(0.5, 4.0, 40_000) * 2.0 ** R.integers(-60, 60, 40_000)
    x[:9] = 0.0, -0.0, 1e-200, 1e150, -1e-30, 2.0**-40, 2.0**40, -3.0, 5e-324
    assert any(v * v != v**2 for v in x.tolist())
    for value in ("float(x[i]) ** 2", "math.pow(x[i], 2)", "float(x[i]) ** 2 - s * 0.5"):
        f, mine, theirs = function(f"x[i] = s = {value}"), x.copy(), x.copy()
        with dc.options(jit="eager", cache_dir=None):
            found = dc.accelerate(f)(mine, mine, 0.5, len(x))[1]
        assert found == f(theirs, theirs, 0.5, len(x))[1] and mine.tobytes() == theirs.tobytes()


def test_powers_of_narrow_scalars() -> None:
    x = R.uniform(0.1, 0.9, 50).astype("f4")
    assert not alike(function("x[i] = x[i] ** 2.5"), x, x, 1.0, 50)


def test_without_the_library(monkeypatch: Any) -> None:
    """Where its functions are not found, the interpreter computes what Python does."""
    monkeypatch.setattr(numpy_loops, "_of_c", lambda *_: None)
    numpy_loops.find.cache_clear()
    try:
        x = R.uniform(0.1, 0.9, 40)
        with dc.options(cache_dir=None):
            alike(function("x[i] = math.expm1(x[i] * 0.125) + 3"), x, x, 1.0, 40)
    finally:
        numpy_loops.find.cache_clear()


def test_dtypes_of_results() -> None:
    double = np.dtype("d")
    assert loop_dtype("c_exp", (double,)) == loop_dtype("c_pow", (double, double)) == double
    assert loop_dtype("c_exp", (np.dtype("f"),)) is None is loop_dtype("c_exp", (double, double))
