"""Lists of numbers, and lists of these, as values that loops read and write: their elements as an array.

A loop that only indexes them gets the elements in an array, and what it has written goes back into the same
lists.  Lists are taken whose elements are all Python's floats, ints, bools or complex numbers, or floats and
ints in any order, whose rows have one length, and of which no two are one object, so that an element has one
place.  A list of floats and ints is *mixed*: an array of complex numbers, of which the real parts are the
elements' values, and the imaginary parts are 1 for floats and 0 for ints.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from dcarray.core.native import BUILT

__all__ = [
    "ListElements",
    "are_distinct",
    "array_of",
    "elements_of",
    "given",
    "list_elements",
    "mixed_numbers",
]

_DTYPES = {kind: np.dtype(kind) for kind in (bool, int, float, complex)}
_MIXED = np.dtype(complex)
_EXACT = 1 << 53  # the largest int that a float has exactly, as have all before it
_MAX_DEPTH = 8


def read_numbers(
    rows: list[list[Any]], kind: type | None, width: int, array: np.ndarray[Any, Any], /
) -> bool:
    """Fill an array with the numbers of lists; False if one is of another length, or has an element that is
    not of just this type, or an int that is too large.  The kind of mixed lists is None."""
    kinds = set(map(type, chain.from_iterable(rows)))
    if set(map(len, rows)) != {width} or not kinds <= ({float, int} if kind is None else {kind}):
        return False
    into = array.reshape(len(rows), width)
    if kind is None:
        if any(abs(x) > _EXACT for x in chain.from_iterable(rows) if type(x) is int):
            return False
        into.real, into.imag = rows, [[type(x) is float for x in row] for row in rows]
        return True
    try:
        into[...] = rows
    except OverflowError:
        return False
    return True


def write_numbers(
    rows: list[list[Any]], kind: type | None, width: int, array: np.ndarray[Any, Any], /
) -> None:
    """Put the elements of an array into lists of this length."""
    for row, values in zip(rows, array.reshape(len(rows), width).tolist(), strict=True):
        row[:] = [x.real if x.imag else int(x.real) for x in values] if kind is None else values


if BUILT:  # else it takes longer
    from dcarray._native.extension import read_numbers, write_numbers


class ListElements:
    """The elements of a nested list of numbers.

    Attributes
    ----------
    given : list
    array : numpy.ndarray
        Of the dtype of its numbers, or complex128 if it is mixed.
    lists : tuple of int
        The identities of the list and of those in it.
    """

    __slots__ = ("_kind", "_rows", "array", "given", "lists")

    def __init__(
        self, given: list[Any], rows: list[list[Any]], kind: type | None, array: np.ndarray[Any, Any],
        lists: tuple[int, ...],
    ) -> None:  # fmt: skip
        self.given, self.array, self.lists = given, array, lists
        self._rows, self._kind = rows, kind  # the lists of numbers, in order, and their type

    @property
    def mixed(self) -> bool:
        """Whether it has floats and ints, or may get both."""
        return self._kind is None

    def mix(self) -> bool:
        """Make it mixed; False if that is not possible."""
        if self._kind is int or self._kind is float:
            made = np.empty(self.array.shape, _MIXED)
            if not read_numbers(self._rows, None, made.shape[-1], made):
                return False
            self.array, self._kind = made, None
        return self._kind is None

    def write_back(self) -> None:
        """Write the array's elements to the lists."""
        write_numbers(self._rows, self._kind, self.array.shape[-1], self.array)


def list_elements(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return values with `ListElements` for lists; those that cannot be taken stay as they are, and all of
    them if a list occurs twice."""
    found = [elements_of(value, True) or value if type(value) is list else value for value in values]
    return tuple(found if are_distinct(found) else values)


def elements_of(value: list[Any], mixed: bool = False) -> ListElements | None:
    """Return the elements of a list; None if it is empty or ragged, or has other elements than numbers of one
    type, or with ``mixed`` floats and ints."""
    level, shape = [value], [len(value)]
    lists: list[int] = []
    for _ in range(_MAX_DEPTH):
        lists += map(id, level)
        if not shape[-1]:
            return None
        if type(level[0][0]) is not list:
            break
        level = list(chain.from_iterable(level))
        if set(map(type, level)) != {list} or set(map(len, level)) != {len(level[0])}:
            return None
        shape.append(len(level[0]))
    kind: type | None = type(level[0][0])
    if kind not in _DTYPES:
        return None
    array = np.empty(shape, _DTYPES[kind])
    if not read_numbers(level, kind, shape[-1], array):
        if not mixed or kind not in (int, float):
            return None
        kind, array = None, np.empty(shape, _MIXED)
        if not read_numbers(level, kind, shape[-1], array):
            return None
    return ListElements(value, level, kind, array, tuple(lists))


def are_distinct(values: Sequence[Any]) -> bool:
    """Whether no list occurs twice in the `ListElements` among values."""
    lists = [one for value in values if type(value) is ListElements for one in value.lists]
    return len(set(lists)) == len(lists)


def mixed_numbers(array: np.ndarray[Any, Any]) -> list[Any]:
    """Return a list of the numbers in the array of a mixed list."""
    if array.ndim > 1:
        return [*map(mixed_numbers, array)]
    found: list[Any] = [None] * len(array)
    write_numbers([found], None, len(found), np.ascontiguousarray(array))
    return found


def array_of(value: Any) -> Any:
    """Return the array of `ListElements`, and any other value."""
    return value.array if type(value) is ListElements else value


def given(value: Any) -> Any:
    """Return the list that `ListElements` are of, and any other value."""
    return value.given if type(value) is ListElements else value
