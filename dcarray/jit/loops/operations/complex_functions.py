"""The functions of `cmath` for traced code: Python source with the steps of CPython's C code.

For numbers that CPython treats in a special way (infinities, NaN, very large or small numbers, and those for
which it raises an error) an ``assert`` fails, and Python runs the loop.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from functools import cache
from typing import Any

from ..entry.entry_values import Function
from ..entry.guards import described

__all__ = ["written"]


def exp(z: Any) -> Any:
    z = complex(z)
    assert math.isfinite(z.real) and math.isfinite(z.imag) and z.real <= 708.0
    size = math.exp(z.real)
    return complex(size * math.cos(z.imag), size * math.sin(z.imag))


def _log(z: Any) -> Any:
    z = complex(z)
    a, b = abs(z.real), abs(z.imag)
    assert a <= 1e300 and b <= 1e300 and (a >= 1e-300 or b >= 1e-300)
    size = abs(z)
    if size >= 0.71 and size <= 1.73:
        large = a if a > b else b
        small = b if a > b else a
        real = math.log1p((large - 1) * (large + 1) + small * small) / 2.0
    else:
        real = math.log(size)
    return complex(real, math.atan2(z.imag, z.real))


def log(z: Any, base: Any = None) -> Any:
    if base is None:
        return _log(z)
    return _log(z) / _log(base)


def log10(z: Any) -> Any:
    w = _log(z)
    return complex(w.real / 2.302585092994045684, w.imag / 2.302585092994045684)


def _root(z: Any) -> Any:
    a, b = abs(z.real), abs(z.imag)
    assert a <= 1e300 and b <= 1e300 and (a >= 1e-300 or b >= 1e-300)
    a = a / 8.0
    size = 2.0 * math.sqrt(a + abs(complex(a, b / 8.0)))
    other = b / (2.0 * size)
    real = size if z.real >= 0.0 else other
    return complex(real, math.copysign(other if z.real >= 0.0 else size, z.imag))


def sqrt(z: Any) -> Any:
    z = complex(z)
    return complex(0.0, z.imag) if z.real == 0.0 and z.imag == 0.0 else _root(z)


def cosh(z: Any) -> Any:
    z = complex(z)
    assert abs(z.real) <= 708.0 and math.isfinite(z.imag)
    return complex(math.cos(z.imag) * math.cosh(z.real), math.sin(z.imag) * math.sinh(z.real))


def sinh(z: Any) -> Any:
    z = complex(z)
    assert abs(z.real) <= 708.0 and math.isfinite(z.imag)
    return complex(math.cos(z.imag) * math.sinh(z.real), math.sin(z.imag) * math.cosh(z.real))


def tanh(z: Any) -> Any:
    z = complex(z)
    assert abs(z.real) <= 708.0 and math.isfinite(z.imag)
    tx, ty = math.tanh(z.real), math.tan(z.imag)
    cx = 1.0 / math.cosh(z.real)
    both = tx * ty
    below = 1.0 + both * both
    return complex(tx * (1.0 + ty * ty) / below, ((ty / below) * cx) * cx)


def cos(z: Any) -> Any:
    z = complex(z)
    return cosh(complex(-z.imag, z.real))


def sin(z: Any) -> Any:
    z = complex(z)
    w = sinh(complex(-z.imag, z.real))
    return complex(w.imag, -w.real)


def tan(z: Any) -> Any:
    z = complex(z)
    w = tanh(complex(-z.imag, z.real))
    return complex(w.imag, -w.real)


def acos(z: Any) -> Any:
    z = complex(z)
    assert abs(z.real) <= 1e150 and abs(z.imag) <= 1e150
    one, two = sqrt(complex(1.0 - z.real, -z.imag)), sqrt(complex(1.0 + z.real, z.imag))
    imag = math.asinh(two.real * one.imag - two.imag * one.real)
    return complex(2.0 * math.atan2(one.real, two.real), imag)


def acosh(z: Any) -> Any:
    z = complex(z)
    assert abs(z.real) <= 1e150 and abs(z.imag) <= 1e150
    one, two = sqrt(complex(z.real - 1.0, z.imag)), sqrt(complex(z.real + 1.0, z.imag))
    real = math.asinh(one.real * two.real + one.imag * two.imag)
    return complex(real, 2.0 * math.atan2(one.imag, two.real))


def asinh(z: Any) -> Any:
    z = complex(z)
    assert abs(z.real) <= 1e150 and abs(z.imag) <= 1e150
    one, two = sqrt(complex(1.0 + z.imag, -z.real)), sqrt(complex(1.0 - z.imag, z.real))
    real = math.asinh(one.real * two.imag - two.real * one.imag)
    return complex(real, math.atan2(z.imag, one.real * two.real - one.imag * two.imag))


def asin(z: Any) -> Any:
    z = complex(z)
    w = asinh(complex(-z.imag, z.real))
    return complex(w.imag, -w.real)


def _right_atanh(z: Any) -> Any:
    size = abs(z.imag)
    assert z.real <= 1e150 and size <= 1e150 and (z.real != 1.0 or size > 1e-150)
    below = (1.0 - z.real) * (1.0 - z.real) + size * size
    imag = -math.atan2(-2.0 * z.imag, (1.0 - z.real) * (1.0 + z.real) - size * size) / 2.0
    return complex(math.log1p(4.0 * z.real / below) / 4.0, imag)


def atanh(z: Any) -> Any:
    z = complex(z)
    left = math.copysign(1.0, z.real) < 0.0
    w = _right_atanh(-z if left else z)
    return -w if left else w


def atan(z: Any) -> Any:
    z = complex(z)
    w = atanh(complex(-z.imag, z.real))
    return complex(w.imag, -w.real)


def phase(z: Any) -> Any:
    z = complex(z)
    assert math.isfinite(z.real) and math.isfinite(z.imag)
    return math.atan2(z.imag, z.real)


def polar(z: Any) -> Any:
    return abs(complex(z)), phase(z)


def rect(r: Any, phi: Any) -> Any:
    r, phi = float(r), float(phi)
    assert math.isfinite(r) and math.isfinite(phi)
    real = r if phi == 0.0 else r * math.cos(phi)
    return complex(real, r * phi if phi == 0.0 else r * math.sin(phi))


def isfinite(z: Any) -> Any:
    z = complex(z)
    return math.isfinite(z.real) and math.isfinite(z.imag)


def isinf(z: Any) -> Any:
    z = complex(z)
    return math.isinf(z.real) or math.isinf(z.imag)


def isnan(z: Any) -> Any:
    z = complex(z)
    return math.isnan(z.real) or math.isnan(z.imag)


_WRITTEN: dict[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        acos, acosh, asin, asinh, atan, atanh, cos, cosh, exp, isfinite, isinf, isnan, log, log10, phase,
        polar, rect, sin, sinh, sqrt, tan, tanh,
    )
}  # fmt: skip
_SAMPLES = (0.5 + 0.25j, -1.25 + 3.5j, 0.75 - 0.125j, -0.3 - 7.1j, 1.0 + 0.7j, 2.0 - 0.0j)


@cache
def written(name: str) -> Function | None:
    """Return the source for a function of `cmath`; None if there is none, or this Python's differs."""
    function = _WRITTEN.get(name)
    if function is None or not _is_as_expected(name, function):
        return None
    return described(function)


def _is_as_expected(name: str, function: Callable[..., Any]) -> bool:
    own = getattr(cmath, name)
    given = [(z.real, z.imag) if name == "rect" else (z,) for z in _SAMPLES]
    return all(repr(own(*args)) == repr(function(*args)) for args in given)
