"""Values of a loop that come again: what C looks at, instead of the marks of all of them.

A loop that has a plan usually comes with what the plan was made for.  Whether it does is found by *checks*,
one for each value, which hold for no other than those with its mark; and what a run has to know of arrays
besides, where they lie and whether those that are written are apart from the others and nothing is pending on
any, is found with them.  What does not pass goes the long way, which decides.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from dcarray.core.native import BUILT

from .entry_values import Function
from .globals import Token
from .guards import ARRAYS

__all__ = ["Checks", "checks_hold", "checks_of", "span"]

Checks = tuple[tuple[Any, ...], ...]
# The kinds of checks, as in `guard_checks.h`.
_PLAIN_ARRAY, _OUR_ARRAY, _VERY_OBJECT, _OF_TYPE, _EQUAL_INT, _HELD, _TUPLE = range(7)


def checks_hold(checks: Checks, values: tuple[Any, ...], /) -> tuple[int, ...] | None:
    """For each value the address of its first element if it is an array, else 0; None if the values are not
    known to be what the checks say, with nothing pending on arrays, and apart where they are written."""
    return None


if BUILT:  # else all goes the long way
    from dcarray._native.extension import checks_hold


def checks_of(values: Sequence[Any], marks: Sequence[Any], written: Collection[int]) -> Checks | None:
    """The checks of values with these marks, of which a run writes the arrays at these positions; None if
    there is one that only its mark tells."""
    found = [
        _check(value, mark, k in written) for k, (value, mark) in enumerate(zip(values, marks, strict=True))
    ]
    return None if None in found else tuple([check for check in found if check is not None])


def _check(value: Any, mark: Any, written: bool) -> tuple[Any, ...] | None:
    if type(value) in ARRAYS:
        dtype, shape, strides, may_write, plain = mark
        kind = _PLAIN_ARRAY if plain else _OUR_ARRAY
        low, high = span(shape, strides, dtype.itemsize)
        geometry = struct.pack(f"{2 * len(shape)}n", *shape, *strides)
        return kind, dtype, may_write, geometry, low, high, written
    if type(value) is int:
        return _EQUAL_INT, value
    if type(value) in (float, complex) or isinstance(value, np.generic):
        return _OF_TYPE, type(value)
    if type(value) is tuple:
        inner = [_check(v, m, False) for v, m in zip(value, mark[1], strict=True)]
        return None if None in inner else (_TUPLE, tuple(inner))
    if isinstance(mark, Token) and isinstance(mark.known, Function):
        return _HELD, mark.holds, value
    return _VERY_OBJECT, value  # of a kind that does not change


def span(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """The first byte that an array may touch, from that of its first element on, and the one after the
    last."""
    low = high = 0
    for stride, n in zip(strides, shape, strict=True):
        if n == 0:
            return 0, 0
        reach = stride * (n - 1)
        low, high = (low + reach, high) if reach < 0 else (low, high + reach)
    return low, high + itemsize
