"""Draws of random numbers: NumPy's C functions that return one random number each.

Their first argument is the address of a bit generator's interface (``bitgen_t``), whose state in memory they
change.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

import numpy as np

__all__ = ["BINOMIAL", "DRAWS", "Draw", "address", "reference"]

_F8, _I8, _U8 = np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.uint64)
_C_TYPES: dict[np.dtype[Any], Any] = {_F8: ctypes.c_double, _I8: ctypes.c_int64, _U8: ctypes.c_uint64}


class Draw(NamedTuple):
    """A function that draws a number: the dtypes of its arguments after the generator, the dtype of its
    result, a method of `numpy.random.Generator` that gives the same numbers, and arguments to test that."""

    arguments: tuple[np.dtype[Any], ...]
    result: np.dtype[Any]
    method: str
    trial: tuple[float, ...] = ()


DRAWS = {
    "random_standard_uniform": Draw((), _F8, "random"),
    "random_uniform": Draw((_F8, _F8), _F8, "uniform", (0.0, 3.0)),
    "random_standard_normal": Draw((), _F8, "standard_normal"),
    "random_normal": Draw((_F8, _F8), _F8, "normal", (0.5, 2.0)),
    "random_lognormal": Draw((_F8, _F8), _F8, "lognormal", (0.5, 2.0)),
    "random_standard_exponential": Draw((), _F8, "standard_exponential"),
    "random_exponential": Draw((_F8,), _F8, "exponential", (2.0,)),
    "random_standard_gamma": Draw((_F8,), _F8, "standard_gamma", (2.5,)),
    "random_gamma": Draw((_F8, _F8), _F8, "gamma", (2.5, 3.0)),
    "random_beta": Draw((_F8, _F8), _F8, "beta", (2.5, 3.0)),
    "random_chisquare": Draw((_F8,), _F8, "chisquare", (2.5,)),
    "random_laplace": Draw((_F8, _F8), _F8, "laplace", (0.5, 2.0)),
    "random_logistic": Draw((_F8, _F8), _F8, "logistic", (0.5, 2.0)),
    "random_gumbel": Draw((_F8, _F8), _F8, "gumbel", (0.5, 2.0)),
    "random_weibull": Draw((_F8,), _F8, "weibull", (2.5,)),
    "random_rayleigh": Draw((_F8,), _F8, "rayleigh", (2.5,)),
    "random_pareto": Draw((_F8,), _F8, "pareto", (2.5,)),
    "random_power": Draw((_F8,), _F8, "power", (2.5,)),
    "random_standard_cauchy": Draw((), _F8, "standard_cauchy"),
    "random_standard_t": Draw((_F8,), _F8, "standard_t", (2.5,)),
    "random_wald": Draw((_F8, _F8), _F8, "wald", (2.5, 3.0)),
    "random_vonmises": Draw((_F8, _F8), _F8, "vonmises", (0.5, 2.0)),
    "random_triangular": Draw((_F8, _F8, _F8), _F8, "triangular", (0.5, 2.0, 3.0)),
    "random_geometric": Draw((_F8,), _I8, "geometric", (0.2,)),
    # its last argument is the address of `BINOMIAL` words of memory for what it computes once
    "random_binomial": Draw((_F8, _I8, _U8), _I8, "binomial", (40, 0.6)),
    "random_poisson": Draw((_F8,), _I8, "poisson", (12.5,)),
    # its arguments: the least number, the range, the mask of as many bits, and whether the mask is used
    "random_bounded_uint64": Draw((_U8, _U8, _U8, _U8), _I8, "integers", (0, 7)),
}
"""The functions that a call may name, by their names."""
BINOMIAL = 18
"""The size of what `numpy.random.Generator.binomial` keeps, in words of 64 bits."""


@cache
def address(name: str) -> int | None:
    """Return the address in this process of NumPy's C function ``name``.  None if NumPy has no such function,
    or if a trial gives other numbers than the generator's method."""
    draw = DRAWS[name]
    try:
        import numpy.random._generator as library

        function = getattr(ctypes.CDLL(library.__file__), name)
        pointer = ctypes.cast(function, ctypes.c_void_p).value
        one, other = (np.random.Generator(np.random.SFC64(11)) for _ in range(2))
        kept = np.zeros(BINOMIAL, np.uint64)
        others = {"random_bounded_uint64": (0, 6, 7, 0), "random_binomial": (0.6, 40, kept.ctypes.data)}
        given = others.get(name, draw.trial)
        handle = one.bit_generator.ctypes.bit_generator.value
        if pointer is None or handle is None:
            return None
        drawn = [_function(name, pointer)(handle, *given) for _ in range(8)]
        if drawn != [getattr(other, draw.method)(*draw.trial) for _ in range(8)]:
            return None
    except (ImportError, AttributeError, OSError, ValueError):
        return None
    return pointer


def _function(name: str, at: int) -> Any:
    draw = DRAWS[name]
    kinds = (ctypes.c_void_p, *[_C_TYPES[dtype] for dtype in draw.arguments])
    return ctypes.CFUNCTYPE(_C_TYPES[draw.result], *kinds)(at)


def reference(writes: tuple[Any, ...], reads: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    """Draw one number: the reference of the call ``random.draw`` in `ir.ops.CALLS`."""
    name = attrs["function"]
    at = address(name)
    if at is None:
        raise NotImplementedError(f"this NumPy has no {name}")
    left = iter(reads[3:])
    arguments = [next(left)[()].item() if value is None else value for value in attrs["given"]]
    writes[2][...] = _function(name, at)(int(reads[2][()]), *arguments)
