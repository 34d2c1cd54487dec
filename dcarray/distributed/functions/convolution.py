"""Distributed `numpy.convolve`, `correlate`, `polymul` and `polydiv`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.api.functions.common import operand
from dcarray.comm.algorithms.line_convolution import convolve
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.distributed.function_dispatch import DISTRIBUTED, dist_operand, require

from .numpy_source import decomposition_of

MAX_TERMS = 256  # of a quotient, each of which takes a step of its own


def _vector(value: Any) -> DistArray:
    x = dist_operand(value, (list, tuple))
    require(x.ndim == 1 and x.size and x.dtype.char in "?bBhHiIlLqQefdgFD")
    return x


def _convolution(function: Callable[..., Any], default_mode: str) -> Callable[..., Any]:
    def implementation(a: Any, v: Any, mode: Any = default_mode) -> Any:
        x, other = _vector(a), _vector(v)
        require(mode in ("full", "same", "valid"))
        if function is np.convolve and other.size > x.size:
            x, other = other, x
        require(other.size <= x.size)
        return convolve(x, other.gather(), mode, function)

    return implementation


DISTRIBUTED[np.convolve] = _convolution(np.convolve, "full")
DISTRIBUTED[np.correlate] = _convolution(np.correlate, "valid")


# ---- polynomials -------------------------------------------------------------------------------------
@decomposition_of(np.polymul)
def _polymul(a1: Any, a2: Any) -> Any:
    require(not isinstance(a1, np.poly1d) and not isinstance(a2, np.poly1d))
    factors = [np.trim_zeros(operand(a), "f") for a in (a1, a2)]
    require(all(a.ndim == 1 and a.size for a in factors))
    return np.convolve(*factors)


@decomposition_of(np.polydiv)
def _polydiv(u: Any, v: Any) -> Any:
    require(not isinstance(u, np.poly1d) and not isinstance(v, np.poly1d))
    a, b = (np.atleast_1d(operand(x)) + 0.0 for x in (u, v))
    m, n = len(a) - 1, len(b) - 1
    require(a.ndim == b.ndim == 1 and m - n < MAX_TERMS)
    dtype = np.result_type(np.empty(0, a.dtype), np.empty(0, b.dtype))
    scale, quotient, remainder = 1.0 / b[0], np.zeros(max(m - n + 1, 1), dtype), a.astype(dtype)
    for k in np.arange(m - n + 1):
        quotient[k] = factor = scale * remainder[k]
        remainder[k : k + n + 1] -= factor * b
    is_zero = np.isclose(remainder, 0, rtol=1e-14)
    first = m if bool(is_zero.all()) else int(np.argmin(is_zero))
    return quotient, remainder[first:]
