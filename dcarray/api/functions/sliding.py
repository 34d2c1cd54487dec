"""Convolutions and correlations of a vector with a shorter one, on all cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.api.array import wrap
from dcarray.core import config
from dcarray.execution.routines import Compiled
from dcarray.lowering.runtime.array_memory import address_of
from dcarray.tiering import policy

from .common import contiguous_array, plain, vector
from .registry import Unserved, implements, launch_of

_ELEMENT = 5.5e-9  # seconds of work that count as one element
# Cost of a result: with a short vector by term; else, where it is a call of BLAS, in all and by term.
_MOST_SHORT_TERMS, _TERM, _CALL, _MORE = 11, 2.5e-10, 1.5e-8, 1e-10
_WORK = 4  # terms in one unit of the scheduler
_SHORTER = 8  # the least ratio of the lengths

# Results before the first and after the last one for which all terms have elements.
ENDS: dict[str, Callable[[int], tuple[int, int]]] = {
    "full": lambda n: (n - 1, n - 1),
    "same": lambda n: (n // 2, n - n // 2 - 1),
    "valid": lambda n: (0, 0),
}
_PRODUCTS = {char: Compiled("convolution", "products", char) for char in "df"}


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    """Return the discrete, linear convolution of two vectors."""
    a, v = vector(a), vector(v)
    if len(v) > len(a):
        a, v = v, a
    return _sliding_products(a, v, mode, True)


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    """Return the cross-correlation of two vectors."""
    return _sliding_products(vector(a), vector(v), mode, False)


def _sliding_products(x: Any, v: Any, mode: Any, turned: bool) -> Any:
    """Return the sliding products of a vector with a shorter one, which may be reversed."""
    routine = _PRODUCTS.get(x.dtype.char)
    if routine is None or type(mode) is not str or mode not in ENDS:
        raise Unserved
    if np.result_type(x.dtype, v.dtype) != x.dtype:  # never with another byte order
        raise Unserved
    terms = len(v)
    seconds = len(x) * (_TERM * terms if terms <= _MOST_SHORT_TERMS else _CALL + _MORE * terms)
    if len(x) < _SHORTER * terms or policy.eager(seconds / _ELEMENT):
        raise Unserved
    launch = launch_of(routine, seconds)
    weights = np.ascontiguousarray(plain(v)[:: -1 if turned else 1], x.dtype)
    elements = contiguous_array(x)
    before, behind = ENDS[mode](terms)
    whole = len(elements) - terms + 1
    result = np.empty((before + whole + behind,), elements.dtype)
    if before:
        result[:before] = np.correlate(elements[:terms], weights, "full")[terms - 1 - before : terms - 1]
    if behind:
        result[-behind:] = np.correlate(elements[-terms:], weights, "full")[terms : terms + behind]
    _run(launch, elements, weights, result[before:], whole)
    return wrap(result)


def _run(launch: Any, elements: Any, weights: Any, result: Any, whole: int) -> None:
    from dcarray.lowering.cpu.llvm.routines.convolution import BLOCK

    terms = len(weights)
    addresses = [address_of(a) for a in (elements, weights, result)]
    work = BLOCK * max(terms // _WORK, 1)
    launch(launch.pack(-(-whole // BLOCK), work, *addresses, whole, terms), config.current().threads)
