"""Lists of numbers, and lists of these, as values that loops read and write: their elements as an array.

A loop that only indexes them gets the elements in an array, and what it has written goes back into the same
lists.  Lists are taken whose elements are all Python's floats or all its ints, whose rows have one length,
and of which no two are one object, so that an element has one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from dcarray.core.native import BUILT

__all__ = ["ListElements", "list_elements"]

_DTYPES = {float: np.dtype(np.float64), int: np.dtype(np.int64)}
_MAX_DEPTH = 8


def read_numbers(rows: list[list[Any]], kind: type, width: int, array: np.ndarray[Any, Any], /) -> bool:
    """Fill an array with the numbers of lists; False if one is of another length, or has an element that is
    not of just this type, or an int of more than 64 bits."""
    if set(map(len, rows)) != {width} or set(map(type, chain.from_iterable(rows))) != {kind}:
        return False
    try:
        array.reshape(len(rows), width)[...] = rows
    except OverflowError:
        return False
    return True


def write_numbers(rows: list[list[Any]], kind: type, width: int, array: np.ndarray[Any, Any], /) -> None:
    """Put the elements of an array into lists of this length."""
    for row, values in zip(rows, array.reshape(len(rows), width).tolist(), strict=True):
        row[:] = values


if BUILT:  # else it takes longer
    from dcarray._native.extension import read_numbers, write_numbers


class ListElements:
    """The elements of a nested list of numbers.

    Attributes
    ----------
    given : list
    array : numpy.ndarray
        Of float64 or int64.
    """

    __slots__ = ("_kind", "_rows", "array", "given")

    def __init__(
        self, given: list[Any], rows: list[list[Any]], kind: type, array: np.ndarray[Any, Any]
    ) -> None:
        self.given, self.array = given, array
        self._rows, self._kind = rows, kind  # the lists of numbers, in order, and their type

    def write_back(self) -> None:
        """Write the array's elements to the lists."""
        write_numbers(self._rows, self._kind, self.array.shape[-1], self.array)


def list_elements(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return values with `ListElements` for lists; all lists stay as they are if one cannot be taken, or a
    list occurs twice."""
    seen: set[int] = set()
    found = []
    for value in values:
        if type(value) is list:
            made = _elements(value, seen)
            if made is None:
                return tuple(values)
            found.append(made)
        else:
            found.append(value)
    return tuple(found)


def _elements(value: list[Any], seen: set[int]) -> ListElements | None:
    """Return the elements of a list; None if it cannot be taken.  The identities of its lists are added to
    ``seen``."""
    level, shape = [value], [len(value)]
    for _ in range(_MAX_DEPTH):
        before = len(seen)
        seen.update(map(id, level))
        if len(seen) - before < len(level) or not shape[-1]:
            return None
        if type(level[0][0]) is not list:
            break
        level = list(chain.from_iterable(level))
        if set(map(type, level)) != {list} or set(map(len, level)) != {len(level[0])}:
            return None
        shape.append(len(level[0]))
    kind: type = type(level[0][0])
    if kind not in _DTYPES:
        return None
    array = np.empty(shape, _DTYPES[kind])
    return ListElements(value, level, kind, array) if read_numbers(level, kind, shape[-1], array) else None
