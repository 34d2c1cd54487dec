"""Checks in C whether the values at a loop's entry have the guards that its last plan was made for.

A loop that has a plan is usually entered with such values again.  One *check* for each value passes only
values with its guard; for arrays it also gives the address, and requires that nothing is pending on them and
that written ones share no memory with others.  Where a check fails, Python computes the guards.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from dcarray.core.native import BUILT

from .entry_values import DeviceGuard, Function
from .guards import ARRAYS, ObjectGuard
from .tables import Table

__all__ = ["C_ORDER", "Checks", "checks_hold", "checks_of", "span"]

Checks = tuple[tuple[Any, ...], ...]
C_ORDER = object()
"""Begins the guard of a plain array in C order of any shape: dtype, is it writeable, number of axes."""


def checks_hold(checks: Checks, values: tuple[Any, ...], /) -> tuple[int, ...] | None:
    """Return the addresses of the arrays among values, with 0 for other values; None if a check fails.  It
    also fails if something is pending on an array, or if a written array may share memory with another."""
    return None


if BUILT:  # else Python computes the guards at each entry
    from dcarray._native import extension
    from dcarray._native.extension import checks_hold


def checks_of(values: Sequence[Any], guards: Sequence[Any], written: Collection[int]) -> Checks | None:
    """Return for each value at a loop's entry the check by which C code tests that a later value has the same
    guard.  ``written``: the positions of the arrays that the loop writes.  Return None if a value cannot be
    checked in C, or if there is no C module."""
    if not BUILT:
        return None
    checks = [
        _check(value, guard, k in written)
        for k, (value, guard) in enumerate(zip(values, guards, strict=True))
    ]
    return None if None in checks else tuple([check for check in checks if check is not None])


def _check(value: Any, guard: Any, written: bool) -> tuple[Any, ...] | None:
    if type(guard) is tuple and guard[0] is C_ORDER:
        return extension.C_ORDER, *guard[1:], guard[1].itemsize, written
    if isinstance(guard, DeviceGuard):
        return extension.OF_TYPE, type(value)
    if type(value) in ARRAYS:
        dtype, shape, strides, may_write, plain = guard
        kind = extension.PLAIN_ARRAY if plain else extension.WRAPPED_ARRAY
        low, high = span(shape, strides, dtype.itemsize)
        geometry = struct.pack(f"{2 * len(shape)}n", *shape, *strides)
        return kind, dtype, may_write, geometry, low, high, written
    if type(value) is int and type(guard) is int:
        return extension.EQUAL_INT, value
    if type(value) is int:  # a symbol
        return extension.OF_TYPE, int
    if type(value) in (float, complex) or isinstance(value, np.generic):
        return extension.OF_TYPE, type(value)
    if type(value) is tuple and guard is None:  # of ints, that are looked at apart
        return extension.TUPLE, tuple([(extension.OF_TYPE, int)] * len(value))
    if type(value) is tuple:
        inner = [_check(v, m, False) for v, m in zip(value, guard[1], strict=True)]
        return None if None in inner else (extension.TUPLE, tuple(inner))
    if isinstance(guard, ObjectGuard) and isinstance(guard.entry_value, Function):
        return extension.FUNCTION, guard.holds, value
    if type(value) in (list, Table):  # an empty one, which may be longer in the next run, or a copy
        return None
    return extension.IDENTITY, value  # of an immutable type


def span(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """Return the range of bytes (end exclusive) that an array occupies, relative to its first element."""
    low = high = 0
    for stride, n in zip(strides, shape, strict=True):
        if n == 0:
            return 0, 0
        reach = stride * (n - 1)
        low, high = (low + reach, high) if reach < 0 else (low, high + reach)
    return low, high + itemsize
