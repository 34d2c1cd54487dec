"""Which of NumPy's functions of doubles are those of a C library whose errors are known."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["MAX_EXPONENT", "is_half_integer", "matches_glibc"]

MAX_EXPONENT = 4.75
"""Below this are the exponents of powers of ours."""


def matches_glibc(name: str) -> bool:
    """Is this ufunc the function of glibc, as good as it is since version 2.28?

    Parameters
    ----------
    name : {'exp', 'sin', 'cos', 'power'}
    """
    return _CHECKS[name]()


def is_half_integer(exponent: float) -> bool:
    """Is this one of the whole and half exponents that powers of ours are made for?"""
    return 0 < abs(exponent) < MAX_EXPONENT and (2 * exponent).is_integer()


def _exp() -> bool:
    return _same({"exp": np.exp}, np.linspace(-19.7, 19.7, 1499))


def _circular() -> bool:
    return _same({"sin": np.sin, "cos": np.cos}, np.linspace(-7.3, 1234.5, 499))


def _power() -> bool:
    """Besides, some exponents are NumPy's own."""
    bases = np.linspace(0.1, 9.0, 9999)
    bases[0] = np.nan
    plain = {-1.0: 1.0 / bases, 0.0: np.ones(bases.size), 0.5: np.sqrt(bases), 2.0: bases * bases}
    if any(np.power(bases, y).tobytes() != values.tobytes() for y, values in plain.items()):
        return False
    some = bases[1:500]
    return all(_same({"pow": np.power}, some, np.full(some.size, y)) for y in (-1.5, 3.0, 0.7))


_CHECKS: dict[str, Callable[[], bool]] = {"exp": _exp, "sin": _circular, "cos": _circular, "power": _power}


def _same(functions: dict[str, Any], *arguments: Any) -> bool:
    """Are these ufuncs, by what C calls them, the library's on some doubles?"""
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
