"""Two versions of a region with symbolic sizes: one is for certain sizes only, the `general` one for all.

Some rewrites depend on sizes: loops become a library call if there is work enough, and temporaries are made
if these are not too large.  Where such sizes are symbols, passes do these rewrites in one version and record
the relations of sizes that it needs; they do not in the general version.  At run time the caller chooses.
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
    """The version of a region that passes make while the object is entered (``with version:``).

    Parameters
    ----------
    region : Region
        The region before the passes.
    general : bool
        Whether this is the version for all sizes, in which no rewrite depends on a size.
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
        """Record a rewrite that is profitable if the product of ``extents``, its operations, is large
        enough."""
        self._work.append(dims.simplify(math.prod(extents)))

    def needs(self, arrays: Iterable[Array]) -> None:
        """Record new temporaries, whose sizes must not be too large if they are still there after the
        passes."""
        self._shapes.update(array.shape for array in arrays)

    def relations(self, final: Region) -> list[Any]:
        """Return the relations between sizes under which this version is to run; ``final`` is the region
        after the passes."""
        written = {array.name: array.shape for array in self.region.arrays}
        shapes = [a.shape for a in final.arrays if a.role == "temp" and written.get(a.name) != a.shape]
        large = [n for n in shapes if n in self._shapes and not no_larger(n, self.region)]
        relations = [dims.simplify(math.prod(shape)) <= MAX_ELEMENTS for shape in dict.fromkeys(large)]
        known = frozenset(symbol.name for symbol in self.region.symbols)
        if self._work and all(dims.free_symbols(work) <= known for work in self._work):
            relations.append(dims.simplify(sum(self._work)) >= MIN_WORK)
        return [relation for relation in relations if relation not in (True, False)]


def active(extents: Collection[Dim]) -> Version | None:
    """Return the `Version` that is being made, for a rewrite that depends on ``extents``; None if these are
    all known numbers, or if the region has only one version."""
    return None if all(type(extent) is int for extent in extents) else _ACTIVE.get()


def no_larger(shape: tuple[Dim, ...], region: Region) -> bool:
    """Whether a temporary of this shape is certain to be no larger than an array that the region has anyway:
    if each extent of ``shape`` is also an extent of that array, such as ``(n, m)`` of ``(m, k, n)``."""
    wanted = Counter(shape)
    return any(wanted <= Counter(array.shape) for array in region.arrays if array.role != "temp")
