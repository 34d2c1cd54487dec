"""The cost of operations: nanoseconds for an element in a kernel on the processor.

The constants were measured once; some depend on the processor, since NumPy's vector loops of doubles for
functions of the C library, which kernels call, need AVX-512 on x86.
"""

from __future__ import annotations

import platform
from functools import cache

import numpy as np

from dcarray.ir.ops import OPS
from dcarray.lowering.runtime import libm

__all__ = ["kernel_cost"]

# Nanoseconds for a unit of `Op.cost` on eight bytes, on a Xeon with AVX-512.
_UNIT = 0.04
_COMPLEX = {"absolute": 28.0, "conjugate": 0.0, "negative": 0.0, "real": 0.0, "imag": 0.0, "cast": 0.0}
_SHUFFLED = 1.4  # a kernel's factor for these, since it separates real and imaginary parts
# Nanoseconds of functions that NumPy computes one element at a time, for doubles and for float32: everywhere,
# and (measured on a Zen 3) without AVX-512.
_ONE_BY_ONE = {"sin": (6.0, 0.0), "cos": (6.0, 0.0), "hypot": (16.0, 4.0)}
_WITHOUT = {
    "exp": (4.5, 1.0), "exp2": (4.0, 2.0), "expm1": (8.0, 8.0), "log": (4.0, 1.5), "log2": (4.0, 2.5),
    "log10": (7.5, 6.0), "log1p": (8.0, 8.0), "cbrt": (15.0, 14.0), "tan": (10.0, 10.0),
    "arcsin": (10.0, 7.0), "arccos": (10.0, 7.0), "arctan": (8.0, 10.0), "sinh": (14.0, 14.0),
    "cosh": (9.0, 9.0), "tanh": (12.0, 2.0), "arcsinh": (20.0, 20.0), "arccosh": (15.0, 15.0),
    "arctanh": (20.0, 20.0), "logaddexp": (18.0, 18.0), "logaddexp2": (18.0, 18.0), "power": (13.0, 5.5),
    "array_power": (13.0, 5.5), "float_power": (13.0, 13.0), "arctan2": (18.0, 20.0),
}  # fmt: skip
# The factor of kernels with loops of their own: `dcarray.lowering.cpu.llvm.math.exact_functions`.
_EXACT_LOOPS = {"exp": 0.45, "sin": 0.65, "cos": 0.65, "power": 0.2}


def kernel_cost(name: str, loop: str, exponent: float | None = None) -> float:
    """Return the nanoseconds of a kernel for an element of an operation, without those for memory.

    Parameters
    ----------
    name : str
        The operation, of `dcarray.ir.ops`.
    loop : str
        The dtypes of its operands and its result.
    exponent : float, optional
        The exponent of a power.
    """
    if exponent in (-1.0, 0.0, 0.5, 2.0):  # roots and reciprocals are taken for these
        return kernel_cost("sqrt", loop)
    cost = OPS[name].cost - 1.0 if name in OPS else 1.0
    char = loop[0]
    if char in "FD":
        return _UNIT * _COMPLEX.get(name, 4.0 * cost + 4.0) * _SHUFFLED
    took = _UNIT * cost * np.dtype(char).itemsize / 8  # as many vectors as they fill
    if char in "fd":
        took = max(took, _one_by_one(name)[char == "f"])
        if char == "d" and name in _EXACT_LOOPS and _has_exact_loop(name, exponent):
            took *= _EXACT_LOOPS[name]
    return took


def _one_by_one(name: str) -> tuple[float, float]:
    if name in _WITHOUT and not _vectors():
        return _WITHOUT[name]
    return _ONE_BY_ONE.get(name, (0.0, 0.0))


@cache
def _vectors() -> bool:
    """Whether NumPy has vector loops of doubles for functions of the C library; assumed if unknown."""
    try:  # the table behind `np.lib.introspect.opt_func_info`, which takes a millisecond to search it
        from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

        known = str(_multiarray_umath.__cpu_targets_info__["tan"]["dd"]["current"])
    except (ImportError, AttributeError, KeyError):
        return True
    return not known.startswith("baseline")


def _has_exact_loop(name: str, exponent: float | None) -> bool:
    """Whether a kernel has a loop of its own for a function, and for the exponent of a power."""
    if name == "power" and (exponent is None or not libm.is_half_integer(exponent)):
        return False
    return _serves(name)


@cache
def _serves(name: str) -> bool:
    return platform.machine() in ("x86_64", "AMD64") and libm.matches_glibc(name)
