"""Tests whether NumPy's functions of doubles have the bits of the GNU C library's."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["MAX_EXPONENT", "is_half_integer", "matches_glibc"]

MAX_EXPONENT = 4.75
"""The bound of the exponents of exact powers."""


def matches_glibc(name: str) -> bool:
    """Whether a ufunc (``exp``, ``sin``, ``cos`` or ``power``) gives the bits of glibc's function, in version
    2.28 or later."""
    return _CHECKS[name]()


def is_half_integer(exponent: float) -> bool:
    """Whether an exponent is an integer or half-integer in the range for which exact powers exist."""
    return 0 < abs(exponent) < MAX_EXPONENT and (2 * exponent).is_integer()


def _exp() -> bool:
    return _same({"exp": np.exp}, np.linspace(-19.7, 19.7, 1499))


def _circular() -> bool:
    return _same({"sin": np.sin, "cos": np.cos}, np.linspace(-7.3, 1234.5, 499))


def _power() -> bool:
    """Whether NumPy's powers have glibc's bits, except for -1, 0, 0.5 and 2, which NumPy computes itself."""
    bases = np.linspace(0.1, 9.0, 9999)
    bases[0] = np.nan
    plain = {-1.0: 1.0 / bases, 0.0: np.ones(bases.size), 0.5: np.sqrt(bases), 2.0: bases * bases}
    if any(np.power(bases, y).tobytes() != values.tobytes() for y, values in plain.items()):
        return False
    some = bases[1:500]
    return all(_same({"pow": np.power}, some, np.full(some.size, y)) for y in (-1.5, 3.0, 0.7))


_CHECKS: dict[str, Callable[[], bool]] = {"exp": _exp, "sin": _circular, "cos": _circular, "power": _power}


def _same(functions: dict[str, Any], *arguments: Any) -> bool:
    """Whether ufuncs, keyed by their C names, have the bits of glibc's functions for some doubles."""
    name, version = platform.libc_ver()
    try:
        if name != "glibc" or tuple(map(int, version.split(".")[:2])) < (2, 28):
            return False
        library = ctypes.CDLL("libm.so.6")
        for symbol, ufunc in functions.items():
            function = getattr(library, symbol)
            function.argtypes, function.restype = (ctypes.c_double,) * len(arguments), ctypes.c_double
            if list(map(function, *(a.tolist() for a in arguments))) != ufunc(*arguments).tolist():
                return False
    except (OSError, AttributeError, ValueError):
        return False
    return True
