"""Versions of a region whose sizes are not known: what is worth it, or possible, for some sizes only.

A pass that finds a product in loops decides by the sizes whether it is worth a library call, and one that
makes temporaries whether these are too large.  Where sizes are symbols, there are two versions: in one the
passes do so, and say what has to hold of the sizes; the `general` one is for all others.  Whoever runs the
region chooses.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable
from contextvars import ContextVar, Token
from typing import Any

from dcarray.ir import dims
from dcarray.ir.nodes import Array, Dim, Region

#: The fewest multiplications in all for which products in loops are worth their library calls (measured: one
#: product of 34 x 34 matrices).
MIN_WORK = 40_000
#: The most elements of a temporary that is no array of the region as it is written, and larger than those.
MAX_ELEMENTS = 1 << 22

_ACTIVE: ContextVar[Version | None] = ContextVar("version", default=None)


class Version:
    """The decisions of passes about a region by its sizes, while the object is entered (``with version:``).

    Parameters
    ----------
    region : Region
        As it is written.
    general : bool
        Whether nothing is done that is only for some sizes.
    """

    def __init__(self, region: Region, general: bool = False) -> None:
        self.region, self.general = region, general
        self._work: list[Dim] = []
        self._shapes: set[tuple[Dim, ...]] = set()
        self._tokens: list[Token[Version | None]] = []

    def __enter__(self) -> Version:
        self._tokens.append(_ACTIVE.set(self))
        return self

    def __exit__(self, *exc: object) -> None:
        _ACTIVE.reset(self._tokens.pop())

    def worth(self, extents: Iterable[Dim]) -> None:
        """Note something that is worth it if the extents' product, a number of operations, is large."""
        self._work.append(dims.simplify(math.prod(extents)))

    def needs(self, arrays: Iterable[Array]) -> None:
        """Note temporaries, which may vanish again."""
        self._shapes.update(array.shape for array in arrays)

    def relations(self, final: Region) -> list[Any]:
        """Return the relations of sizes for which this version is, whose region is ``final`` after the
        passes."""
        written = {array.name: array.shape for array in self.region.arrays}
        shapes = [a.shape for a in final.arrays if a.role == "temp" and written.get(a.name) != a.shape]
        large = [n for n in shapes if n in self._shapes and not no_larger(n, self.region)]
        found = [dims.simplify(math.prod(shape)) <= MAX_ELEMENTS for shape in dict.fromkeys(large)]
        known = frozenset(symbol.name for symbol in self.region.symbols)
        if self._work and all(dims.free_symbols(work) <= known for work in self._work):
            found.append(dims.simplify(sum(self._work)) >= MIN_WORK)
        return [relation for relation in found if relation not in (True, False)]


def active(extents: Collection[Dim]) -> Version | None:
    """Return the version that is being compiled, whose sizes decide about these extents.  None if the extents
    are known, or if there is but one version."""
    return None if all(type(extent) is int for extent in extents) else _ACTIVE.get()


def no_larger(shape: tuple[Dim, ...], region: Region) -> bool:
    """Whether an array that a region is given has all these extents among its own."""
    wanted = Counter(shape)
    return any(wanted <= Counter(array.shape) for array in region.arrays if array.role != "temp")
