"""Complex numbers of Python and functions of `cmath` in compiled loops: bits and errors are Python's."""

import cmath
import random
import sys

import numpy as np
import pytest
from outcomes import outcome
from written import written

import dcarray as dc
from dcarray.jit.loops.operations import complex_functions
from dcarray.jit.loops.syntax.supported import CMATH


def compiled(value: str, z: list[complex], s: complex = 1.5 - 0.5j) -> bool:
    """Compare the values of an expression of items with Python's; returns whether it was compiled."""
    text = f"""
import cmath
def f(x, s):
    y = []
    for i in range(len(x)):
        z = x[i]
        y.append({value})
    return y
"""
    before = dc.report().loops
    with dc.options(jit="eager", cache_dir=None):
        got = outcome(dc.accelerate(written(text)), (z, s))
    assert got == outcome(written(text), (z, s))
    return dc.report().loops > before


R = random.Random(1)
Z = [complex(R.gauss(0, 2), R.gauss(0, 2)) for _ in range(40)] + [complex(-0.0, 0.5), complex(2, -0.0), 0.3j]
NEAR_ZERO = [complex(a, b) for a in (0.0, -0.0, 1.0) for b in (0.0, -0.0, 2.0)]
ODD = [
    complex("inf"), complex("nan"), complex(0, float("-inf")), 1e308 + 1e308j, 1e-310j, 0j, 1 + 0j, -1j, 800j,
    750 + 0j,
]  # fmt: skip
VALUES = [
    *["z * s", "z / s", "s / z", "z + 1", "1 - z", "z * 2.0", "2 / z", "-z", "+z", "z.conjugate()", "z ** 2"],
    *[
        "z ** 3.0", "z * i", "complex(z.real, i)", "complex(i)", "z if z == s else s", "z if z else s",
        "z != i",
    ],
    *["z.imag + 1j", "abs(z)", "z.real", "z.imag * 2", "(1.5).real + z.imag", "z * 1j + (-1j) / z"],
]  # fmt: skip
MIXED = {"z + 1", "1 - z", "z * 2.0", "2 / z", "z * i", "z.imag + 1j"}  # left to Python from 3.14 on


@pytest.mark.parametrize("value", VALUES)
def test_operators(value: str) -> None:
    assert compiled(value, Z) == (sys.version_info < (3, 14) or value not in MIXED)
    compiled(value, NEAR_ZERO)
    for odd in ODD:
        compiled(value, [1j, odd])
        compiled(value, [1j], odd)


@pytest.mark.parametrize(
    "value", ["z ** -1", "z ** s", "z ** 0.5", "z // 2", "z < s", "divmod(z, s)", "int(z)"]
)
def test_operators_that_are_pythons(value: str) -> None:
    assert not compiled(value, Z)


@pytest.mark.parametrize("name", sorted(CMATH))
def test_functions(name: str) -> None:
    given = {"rect": "z.real, z.imag"}.get(name, "z")
    value = f"cmath.{name}({given})" + ("[0]" if name == "polar" else "")
    assert compiled(value, Z[:-1])
    for odd in [*ODD, *NEAR_ZERO]:
        compiled(value, [odd])
    if name != "rect":
        compiled(value.replace("(z)", "(z.real)"), Z)
        compiled(value.replace("(z)", "(i)"), Z)


def test_functions_are_cpythons() -> None:
    """Also where the tracer has no part in it: to the bit, or with an assertion that fails."""
    for name in sorted(CMATH):
        function = complex_functions._WRITTEN[name]
        for z in [*Z, *NEAR_ZERO, *ODD, *[complex(R.uniform(-9, 9), R.uniform(-9, 9)) for _ in range(200)]]:
            args = (z.real, z.imag) if name == "rect" else (z,)
            try:
                found = repr(function(*args))
            except (AssertionError, ArithmeticError, ValueError):
                continue
            assert found == repr(getattr(cmath, name)(*args)), (name, z)
    assert compiled("cmath.log(z, 2)", Z)


@pytest.mark.parametrize("start", ["0", "0.0", "-0.0", "1", "0j", "np.complex128(0)"])
@pytest.mark.parametrize(
    "loop", ["while abs(z) <= 2 and k < n:", "for k in range(n):\n            if k and abs(z) > 2: break"]
)
@pytest.mark.parametrize("step", ["z * z + c", "z ** 2 + c", "c + z * z", "2 * z + c"])
def test_numbers_that_become_complex(start: str, loop: str, step: str) -> None:
    text = f"""
import numpy as np
def f(y, n):
    total = 0
    for c in y:
        z, k = {start}, 0
        {loop}
            z = {step}
            k += 1
        total += k
    return total
"""
    before = dc.report().loops
    for y in (Z, NEAR_ZERO, np.array(Z)):
        with dc.options(jit="eager", cache_dir=None):
            g = dc.accelerate(written(text))
            assert g(y, 30) == written(text)(y, 30) == g(y, 30)
    assert dc.report().loops > before or start == "-0.0" or "break" in loop or "**" in step
