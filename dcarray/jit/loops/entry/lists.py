"""Lists of numbers, and lists of these, as values that loops read and write: their elements as an array.

A loop that only indexes them gets the elements in an array, and what it has written goes back into the same
lists.  Lists are taken whose elements are all Python's floats, ints, bools or complex numbers, or floats and
ints in any order, and no list of which is another's, so that an element has one place.

A list of floats and ints is *mixed*: an array of complex numbers, of which the real parts are the elements'
values, and the imaginary parts are 1 for floats and 0 for ints.  A list of lists that have several lengths,
or of which one occurs twice, is *ragged*: all elements one after the other, and where each list begins.
A list of tuples of one length is taken like one of lists; nothing is written to tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np

from dcarray.core.native import BUILT

__all__ = [
    "MOST_LEVELS", "ListElements", "are_distinct", "array_of", "elements_of", "given", "is_small",
    "list_elements", "mixed_numbers",
]  # fmt: skip

_DTYPES = {kind: np.dtype(kind) for kind in (bool, int, float, complex)}
_MIXED = np.dtype(complex)
_EXACT = 1 << 53  # the largest int that a float has exactly, as have all before it
MOST_LEVELS = 8
"""How many lists may be inside each other in a list of numbers."""
_MOST_ITEMS = 1 << 14


def read_numbers(
    rows: list[list[Any]], kind: type | None, width: int, array: np.ndarray[Any, Any], /
) -> bool:
    """Fill an array with the numbers of lists; False if these do not fit.  That is so if a list has another
    length, an element has another type or is a NaN, which Python finds by identity, or an int is too large.
    ``kind`` is None for mixed lists."""
    kinds = set(map(type, chain.from_iterable(rows)))
    if set(map(len, rows)) != {width} or not kinds <= ({float, int} if kind is None else {kind}):
        return False
    if any(x != x for x in chain.from_iterable(rows)):
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
    rows: list[list[Any]], kind: type | None, width: int, array: np.ndarray[Any, Any],
    before: np.ndarray[Any, Any], /,
) -> None:  # fmt: skip
    """Put the elements of an array that another one has not into lists of this length."""
    size = array.itemsize
    differ = array.reshape(-1, 1).view((np.uint8, size)) != before.reshape(-1, 1).view((np.uint8, size))
    for k in np.flatnonzero(differ.any(axis=-1)).tolist():
        x = array.item(k)
        rows[k // width][k % width] = (x.real if x.imag else int(x.real)) if kind is None else x


if BUILT:  # else it takes longer
    from dcarray._native.extension import read_numbers, write_numbers


class ListElements:
    """The elements of a nested list of numbers.

    Attributes
    ----------
    given : list
    array : numpy.ndarray
        The numbers, with their dtype, or complex128 if the list is mixed; with one axis if it is ragged.
    lists : tuple of int
        The identities of the list and of those in it.
    of_tuples : bool
        Whether its items are tuples, not lists.
    starts, lengths : numpy.ndarray or None
        For a ragged list: where each inner list begins in the array, and its number of elements.
    """

    __slots__ = ("_before", "_kind", "_rows", "array", "given", "lengths", "lists", "of_tuples", "starts")

    def __init__(
        self, given: list[Any], rows: list[list[Any]], kind: type | None, array: np.ndarray[Any, Any],
        lists: tuple[int, ...], starts: np.ndarray[Any, Any] | None = None,
        lengths: np.ndarray[Any, Any] | None = None, of_tuples: bool = False,
    ) -> None:  # fmt: skip
        self.given, self.array, self.lists, self.of_tuples = given, array, lists, of_tuples
        self.starts, self.lengths = starts, lengths
        self._rows, self._kind = rows, kind  # the lists of numbers, each once, and their type
        self._before = array

    @property
    def mixed(self) -> bool:
        """Whether it has floats and ints, or may get both."""
        return self._kind is None

    @property
    def ragged(self) -> bool:
        """Whether it has lists of several lengths, or one list several times."""
        return self.starts is not None

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of its levels; of a ragged list its own, and the number of its elements."""
        return self.array.shape if self.starts is None else (len(self.starts), len(self.array))

    def mix(self) -> bool:
        """Make it mixed; False if that is not possible."""
        if self._kind is int or self._kind is float:
            mixed = np.empty(self.array.shape, _MIXED)
            if not _read(self._rows, None, mixed, self.ragged):
                return False
            self.array = self._before = mixed
            self._kind = None
        return self._kind is None

    def undoing(self) -> Callable[[], None]:
        """Return a function that gives the lists the items back that they have now."""
        held = [(row, [*row]) for row in self._rows]

        def undo() -> None:
            for row, items in held:
                row[:] = items

        return undo

    def keep(self) -> None:
        """Keep a copy of the elements, which a run is about to write."""
        self._before = self.array.copy()

    def write_back(self) -> None:
        """Write the elements to the lists that have changed since `keep`: others may write the other ones."""
        before = _parts(self._rows, self._before, self.ragged)
        for (rows, part), (_, old) in zip(_parts(self._rows, self.array, self.ragged), before, strict=True):
            write_numbers(rows, self._kind, part.shape[-1], part, old)


def _read(rows: list[list[Any]], kind: type | None, array: np.ndarray[Any, Any], ragged: bool) -> bool:
    """Do what `read_numbers` does for lists of one length, or perhaps of several."""
    return all(read_numbers(some, kind, part.shape[-1], part) for some, part in _parts(rows, array, ragged))


def _parts(
    rows: list[list[Any]], array: np.ndarray[Any, Any], ragged: bool
) -> Iterator[tuple[list[list[Any]], np.ndarray[Any, Any]]]:
    """Yield lists of one length, and the part of the array that has their elements."""
    if not ragged:
        yield rows, array
        return
    start = 0
    for row in rows:
        if row:
            yield [row], array[start : start + len(row)]
        start += len(row)


def is_small(value: Sequence[Any]) -> bool:
    """Whether a tuple or list has few levels and items.  One with parts in common may have more items than
    memory could hold."""
    level: list[Sequence[Any]] = [value]
    for _ in range(MOST_LEVELS):
        if sum(map(len, level)) > _MOST_ITEMS:
            return False
        level = [v for one in level for v in one if issubclass(type(v), tuple | list)]
        if not level:
            return True
    return False


def list_elements(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return values with `ListElements` for lists; those that cannot be taken stay as they are, and all of
    them if a list occurs twice."""
    taken = [elements_of(value, True) or value if type(value) is list else value for value in values]
    return tuple(taken if are_distinct(taken) else values)


def elements_of(value: list[Any], loose: bool = False) -> ListElements | None:
    """Return the elements of a list that has numbers of one type on all levels, else None.  Empty and ragged
    lists give None.  With ``loose``, ragged lists of lists, tuples, and floats and ints together are taken,
    too."""
    level, shape, of_tuples = [value], [len(value)], False
    lists: list[int] = []
    for _ in range(MOST_LEVELS):
        lists += map(id, level)
        if not shape[-1]:
            return None
        if of_tuples := type(level[0][0]) is tuple and loose:
            level = list(chain.from_iterable(level))
            if set(map(type, level)) != {tuple} or set(map(len, level)) != {len(level[0])} or not level[0]:
                return None
            shape.append(len(level[0]))
            level = [*map(list, level)]
            break
        if type(level[0][0]) is not list:
            break
        level = list(chain.from_iterable(level))
        if set(map(type, level)) != {list}:
            return None
        shared = len({*map(id, level)}) < len(level)
        if loose and len(shape) == 1 and (len({*map(len, level)}) > 1 or not level[0] or shared):
            return _ragged_elements(value)
        if shared or set(map(len, level)) != {len(level[0])}:  # shared lists may have any number of places
            return None
        shape.append(len(level[0]))
    parts = _numbers(level, shape, loose, False)
    return None if parts is None else ListElements(value, level, *parts, tuple(lists), of_tuples=of_tuples)


def _numbers(
    rows: list[list[Any]], shape: Sequence[int], loose: bool, ragged: bool
) -> tuple[type | None, np.ndarray[Any, Any]] | None:
    """Return the type of the numbers in lists, and an array of them."""
    kind: type = type(next(row[0] for row in rows if row))
    if kind not in _DTYPES:
        return None
    array = np.empty(shape, _DTYPES[kind])
    if _read(rows, kind, array, ragged):
        return kind, array
    if not loose or kind not in (int, float):
        return None
    array = np.empty(shape, _MIXED)
    return (None, array) if _read(rows, None, array, ragged) else None


def _ragged_elements(value: list[list[Any]]) -> ListElements | None:
    """Return the elements of lists of several lengths, or of which one occurs several times."""
    rows = [*{id(row): row for row in value}.values()]
    lengths = [*map(len, rows)]
    ends = [*accumulate(lengths)]
    if not ends[-1]:
        return None
    starts = {id(row): end - n for row, n, end in zip(rows, lengths, ends, strict=True)}
    numbers = _numbers(rows, [ends[-1]], True, True)
    if numbers is None:
        return None
    places = np.array([starts[id(row)] for row in value], np.int64), np.array([*map(len, value)], np.int64)
    return ListElements(value, rows, *numbers, (id(value), *starts), *places)


def are_distinct(values: Sequence[Any]) -> bool:
    """Whether no list occurs twice in the `ListElements` among values."""
    lists = [one for value in values if type(value) is ListElements for one in value.lists]
    return len(set(lists)) == len(lists)


def mixed_numbers(array: np.ndarray[Any, Any]) -> list[Any]:
    """Return a list of the numbers in the array of a mixed list."""
    if array.ndim > 1:
        return [*map(mixed_numbers, array)]
    numbers: list[Any] = [None] * len(array)
    write_numbers(
        [numbers], None, len(numbers), np.ascontiguousarray(array), np.full_like(array, np.nan, order="C")
    )
    return numbers


def array_of(value: Any) -> Any:
    """Return the array of a `ListElements`; any other value as it is."""
    return value.array if type(value) is ListElements else value


def given(value: Any) -> Any:
    """Return the list whose elements a `ListElements` holds; any other value as it is."""
    return value.given if type(value) is ListElements else value
