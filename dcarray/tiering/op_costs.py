"""What the elements of an operation take: in NumPy's loop, and in a kernel.

Constants, measured once, that depend on what NumPy has on this processor: its loops over vectors of doubles
for what a C library has for single numbers need AVX-512 on x86.
"""

from __future__ import annotations

import platform
from functools import cache

import numpy as np

from dcarray.ir.ops import OPS
from dcarray.lowering.runtime import libm

__all__ = ["CHOICE", "CONVERSION", "CONVERTED", "DIVISION", "of"]

# Nanoseconds for a unit of `Op.cost` on eight bytes, on a Xeon with AVX-512.
_UNIT = 0.04
# What NumPy's loops take for an element more than a kernel's, on every machine where that was measured: on
# a Zen 5 it is more for `sqrt`, `hypot` and `copysign` too, on a Xeon with AVX-512 it is not.
_SLOW = {
    "deg2rad": 1.5, "floor_divide": 10.0, "fmod": 5.0, "heaviside": 1.0, "rad2deg": 1.5, "remainder": 4.0,
    "sign": 0.3, "where": 1.2,
}  # fmt: skip
CHOICE = 0.7
"""Nanoseconds of NumPy's for an element of a choice by a mask that a fold gathers instead."""
DIVISION = 1.5
"""Nanoseconds that a kernel takes more than NumPy where integers are divided by one number."""
CONVERSION, CONVERTED = 0.22, 0.08
"""Nanoseconds for an element that has to be converted first: by NumPy, part by part, and in a kernel."""
_COMPLEX = {"absolute": 28.0, "conjugate": 0.0, "negative": 0.0, "real": 0.0, "imag": 0.0, "cast": 0.0}
_SHUFFLED = 1.4  # what these take in a kernel, which separates real and imaginary parts, of what NumPy takes
# Nanoseconds of what NumPy has one element at a time, of doubles and of float32: everywhere, and (measured on
# a Zen 3) without AVX-512.
_ONE_BY_ONE = {"sin": (6.0, 0.0), "cos": (6.0, 0.0), "hypot": (16.0, 4.0)}
_WITHOUT = {
    "exp": (4.5, 1.0), "exp2": (4.0, 2.0), "expm1": (8.0, 8.0), "log": (4.0, 1.5), "log2": (4.0, 2.5),
    "log10": (7.5, 6.0), "log1p": (8.0, 8.0), "cbrt": (15.0, 14.0), "tan": (10.0, 10.0),
    "arcsin": (10.0, 7.0), "arccos": (10.0, 7.0), "arctan": (8.0, 10.0), "sinh": (14.0, 14.0),
    "cosh": (9.0, 9.0), "tanh": (12.0, 2.0), "arcsinh": (20.0, 20.0), "arccosh": (15.0, 15.0),
    "arctanh": (20.0, 20.0), "logaddexp": (18.0, 18.0), "logaddexp2": (18.0, 18.0), "power": (13.0, 5.5),
    "array_power": (13.0, 5.5), "float_power": (13.0, 13.0), "arctan2": (18.0, 20.0),
}  # fmt: skip
# What a kernel with loops of its own takes of that: `dcarray.lowering.cpu.llvm.math.exact_functions`.
_OURS = {"exp": 0.45, "sin": 0.65, "cos": 0.65, "power": 0.2}


def of(name: str, loop: str, exponent: float | None = None) -> tuple[float, float]:
    """Nanoseconds for an element, without those for memory.

    Parameters
    ----------
    name : str
        The operation, of `dcarray.ir.ops`.
    loop : str
        The dtypes of its operands and its result.
    exponent : float, optional
        The one of a power.

    Returns
    -------
    theirs, ours : float
        What NumPy's loop takes, and what a kernel takes.
    """
    if exponent in (-1.0, 0.0, 0.5, 2.0):  # NumPy takes roots and reciprocals for these
        return of("sqrt", loop)
    cost = OPS[name].cost - 1.0 if name in OPS else 1.0
    char, slow = loop[0], _SLOW.get(name, 0.0)
    if char in "FD":
        took = _UNIT * _COMPLEX.get(name, 4.0 * cost + 4.0)
        return took + slow, took * _SHUFFLED
    took = _UNIT * cost * np.dtype(char).itemsize / 8  # as many vectors as they fill
    if char in "fd":
        took = max(took, _one_by_one(name)[char == "f"])
        if char == "d" and name in _OURS and _is_ours(name, exponent):
            return took, took * _OURS[name]
    return took + slow, took


def _one_by_one(name: str) -> tuple[float, float]:
    if name in _WITHOUT and not _vectors():
        return _WITHOUT[name]
    return _ONE_BY_ONE.get(name, (0.0, 0.0))


@cache
def _vectors() -> bool:
    """Has NumPy loops over vectors of doubles for what a C library has?  Where it does not say, it may."""
    try:
        known = np.lib.introspect.opt_func_info(func_name="^tan$")["tan"]["dd"]["current"]
    except (AttributeError, KeyError):
        return True
    return not known.startswith("baseline")


def _is_ours(name: str, exponent: float | None) -> bool:
    """Has a kernel a loop of its own, and if it is a power, for this exponent?"""
    if name == "power" and (exponent is None or not libm.is_half_integer(exponent)):
        return False
    return _serves(name)


@cache
def _serves(name: str) -> bool:
    return platform.machine() in ("x86_64", "AMD64") and libm.matches_glibc(name)
