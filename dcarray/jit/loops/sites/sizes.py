"""Sizes of a site's values: lengths of arrays, lists and tuples, and ints.  Sizes that were seen to change
are symbols in a plan.

Values of one *kind* differ only in their sizes.  The first plan of a kind holds for the sizes of its values.
When other sizes come, the next plan has symbols for those that differ.  Sizes whose difference has always
been the same, such as ``n`` and a length of ``n + 1``, share a symbol.  If such a relation turns out not to
hold, a plan without it replaces the last one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from dcarray.core.strides import c_strides
from dcarray.ir.records import record

from ..entry.guard_checks import C_ORDER
from ..entry.guards import ARRAYS
from ..entry.lists import ListElements
from ..entry.sizes import LARGEST, SymbolicSize

__all__ = ["Place", "SizePattern", "SizesSeen", "kind_of", "open_guards", "places_of"]

_ARRAY, _LIST, _INT, _INTS = "array", "list", "int", "ints"
_REMEMBERED, _LONGEST = 8, 64  # sizes that a relation holds for; items of a tuple that are sizes

Sizes = tuple[int, ...]


class Place(NamedTuple):
    """The place of a size among the values: an int (``axis`` -1), an item of a tuple of ints, or the length
    of an array's or list's axis."""

    value: int
    axis: int

    def of(self, values: Sequence[Any]) -> int:
        """Return the size."""
        value = values[self.value]
        if self.axis < 0:
            size = value
        elif type(value) is tuple:
            size = value[self.axis]
        else:
            size = value.shape[self.axis]
        assert type(size) is int
        return size


def kind_of(
    values: Sequence[Any], guards: Iterable[Any], lengths: bool = True
) -> tuple[tuple[Any, ...], Sizes]:
    """Return the kind of values with these guards, and their sizes.

    Only arrays in C order have sizes apart from their kind.  Without ``lengths`` only ints and lists do.
    """
    kind: list[Any] = []
    sizes: list[int] = []
    for k, guard in enumerate(guards):
        part = guard
        value = values[k] if k < len(values) else None
        if type(value) is int:
            sizes.append(value)
            part = _INT
        elif type(guard) is not tuple or not (lengths or type(value) is ListElements):
            pass
        elif type(value) in ARRAYS and len(guard) == 5:
            dtype, shape, strides, *rest = guard
            if shape and strides == tuple([dtype.itemsize * n for n in c_strides(shape)]):
                sizes += shape
                part = (_ARRAY, dtype, len(shape), *rest)
        elif type(value) is ListElements:
            sizes += value.shape
            part = (_LIST, value.array.dtype, len(value.shape), value.mixed, value.ragged, value.of_tuples)
        elif type(value) is tuple and 0 < len(value) <= _LONGEST and all(type(n) is int for n in value):
            sizes += value
            part = (_INTS, len(value))
        kind.append(part)
    return tuple(kind), tuple(sizes)


def places_of(kind: Sequence[Any]) -> tuple[Place, ...]:
    """Return the places of the sizes of a kind, in order."""
    places: list[Place] = []
    for k, one in enumerate(kind):
        if type(one) is str and one == _INT:
            places.append(Place(k, -1))
        elif type(one) is tuple and one and type(one[0]) is str and one[0] in (_ARRAY, _LIST, _INTS):
            places += [Place(k, axis) for axis in range(one[1] if one[0] == _INTS else one[2])]
    return tuple(places)


def open_guards(kind: Sequence[Any], guards: Sequence[Any], sized: Collection[int]) -> tuple[Any, ...] | None:
    """Return the guards of values of a kind, where the guards of the values at the positions ``sized`` leave
    out the sizes; None if a guard cannot."""
    opened = list(guards)
    for k in sized:
        one = kind[k]
        if one == _INT or one[0] == _INTS:
            opened[k] = None
        elif one[0] == _ARRAY and one[-1]:  # a plain one
            opened[k] = (C_ORDER, one[1], one[3], one[2])
        else:
            return None
    return tuple(opened)


@record(frozen=True, slots=True)
class SizePattern:
    """The form of the sizes in a plan: each is a number, a symbol, or a symbol plus a number.

    Attributes
    ----------
    firsts : tuple of int
        For each symbol, the position of the size that is its value.
    parts : tuple of (int, int)
        For each size the number of its symbol (-1: none), and the number that is added.
    all_sizes : bool
        Whether the plan leaves out rewrites that are faster for some sizes only
        (`dcarray.ir.analysis.versions`).
    """

    firsts: tuple[int, ...]
    parts: tuple[tuple[int, int], ...]
    all_sizes: bool = False

    def fits(self, sizes: Sequence[int]) -> bool:
        """Whether sizes match the pattern: its numbers are equal to theirs, and its sums hold."""
        firsts = [sizes[k] for k in self.firsts]
        return all(
            n == (added if symbol < 0 else firsts[symbol] + added)
            for n, (symbol, added) in zip(sizes, self.parts, strict=True)
        )

    def described(self, k: int, texts: Sequence[str]) -> int | SymbolicSize:
        """Return the size number ``k``: an int, or an expression of the symbols named ``texts``."""
        symbol, added = self.parts[k]
        return added if symbol < 0 else SymbolicSize(((texts[symbol], 1),), added)

    def least(self, symbol: int, places: Sequence[Place], ints: Collection[int]) -> int:
        """Return the least value that a symbol may have, given that lengths are not negative.  The values at
        the positions ``ints`` are ints, not lengths."""
        added = [-n for k, (one, n) in enumerate(self.parts) if one == symbol and places[k].value not in ints]
        return max(added, default=-LARGEST)


class SizesSeen:
    """The sizes that values of a kind have had, and the patterns of the plans for this kind.

    Parameters
    ----------
    counters : collection of int
        The positions of the sizes that are loop variables of loops around the site: these are symbols from
        the first plan on.

    Attributes
    ----------
    patterns : list of SizePattern
    exact : bool
        Whether no further sizes become symbols, since a plan with them could not be made.
    """

    __slots__ = ("_counters", "_seen", "exact", "patterns")

    def __init__(self, counters: Collection[int]) -> None:
        self._counters = counters
        self._seen: list[Sizes] = []
        self.patterns: list[SizePattern] = []
        self.exact = False

    def pattern(self, sizes: Sizes) -> SizePattern:
        """Return the pattern for a new plan that serves these sizes."""
        return self._pattern([sizes] if self.exact else [*self._seen, sizes])

    def note(self, sizes: Sizes, pattern: SizePattern) -> None:
        """Note that a plan of this pattern, for these sizes among others, will be made."""
        self._seen = [*self._seen[1 - _REMEMBERED :], sizes]
        if pattern not in self.patterns:
            self.patterns.append(pattern)

    def is_general(self, pattern: SizePattern) -> bool:
        """Whether a pattern has symbols for sizes other than loop variables."""
        return any(k not in self._counters for k, (symbol, _) in enumerate(pattern.parts) if symbol >= 0)

    def _pattern(self, seen: Sequence[Sizes]) -> SizePattern:
        columns = [*zip(*seen, strict=True)]
        ways = [tuple([n - column[0] for n in column]) for column in columns]
        firsts: list[int] = []
        known: dict[tuple[int, ...], int] = {}
        parts: list[tuple[int, int]] = []
        for k, (column, way) in enumerate(zip(columns, ways, strict=True)):
            if k in self._counters:  # never related to others: they all change by one, say
                parts.append((len(firsts), 0))
                firsts.append(k)
            elif not any(way):
                parts.append((-1, column[0]))
            elif way in known:
                symbol = known[way]
                parts.append((symbol, column[0] - columns[firsts[symbol]][0]))
            else:
                known[way] = len(firsts)
                parts.append((len(firsts), 0))
                firsts.append(k)
        return SizePattern(tuple(firsts), tuple(parts))
