"""How much of the halo of an array is read, or holds what the neighbours have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dcarray.ir.nodes import Window

__all__ = ["Box", "Halo", "ValidHalos", "bounds", "boxes_around", "is_dense_box", "margins"]

Box = tuple[tuple[int, int], ...]

_MAX_HALOS = 8  # halos of one array that are remembered


@dataclass(frozen=True)
class Halo:
    """How much of the halo of an array a statement reads, or holds what the neighbours have.

    Parameters
    ----------
    widths : tuple of (int, int)
        Elements before and after a rank's own along each axis.
    corners : bool
        Also those before or after along several axes.
    rim : float, optional
        Only of elements so near to one of the array's own ends.
    """

    widths: tuple[tuple[int, int], ...]
    corners: bool
    rim: float = math.inf

    def __or__(self, other: Halo) -> Halo:
        pairs = zip(self.widths, other.widths, strict=True)
        widths = tuple((max(a[0], b[0]), max(a[1], b[1])) for a, b in pairs)
        return Halo(widths, self.corners or other.corners, max(self.rim, other.rim))

    @property
    def attrs(self) -> tuple[tuple[str, Any], ...]:
        """What a ``comm.halo`` call says of it."""
        found = (("widths", self.widths), ("corners", self.corners))
        return found if self.rim == math.inf else (*found, ("rim", self.rim))

    def within(self, other: Halo) -> bool:
        """Has another halo all that this one has?"""
        return other | self == other

    def __bool__(self) -> bool:
        return any(map(any, self.widths))


@dataclass(frozen=True)
class ValidHalos:
    """What of the halo of an array holds what the neighbours have: halos, none of which is within another.

    A wide one may be left of which only the rim holds, beside a narrow one that holds all.
    """

    halos: tuple[Halo, ...] = ()

    def has(self, halo: Halo) -> bool:
        """Is all of a halo valid?"""
        return any(halo.within(one) for one in self.halos)

    def exchanged(self, halo: Halo) -> ValidHalos:
        """What is valid after an exchange."""
        for one in self.halos:  # of two without corners all sides are there
            if not (one.corners or halo.corners) and one.rim == halo.rim:
                halo = halo | one
        return self if self.has(halo) else _without_covered((*self.halos, halo))

    def written(self, margin: float) -> ValidHalos:
        """What is valid after a statement that writes nothing nearer to the array's own ends."""
        if not margin:
            return ValidHalos()
        return _without_covered([replace(one, rim=min(one.rim, margin)) for one in self.halos])

    def __bool__(self) -> bool:
        return bool(self.halos)


def _without_covered(halos: Sequence[Halo]) -> ValidHalos:
    """Halos without those that are within others; the oldest are forgotten."""
    found: list[Halo] = []
    for halo in halos:
        if not any(halo.within(one) for one in found):
            found = [*(one for one in found if not one.within(halo)), halo]
    return ValidHalos(tuple(found[-_MAX_HALOS:]))


def margins(target: Window, extents: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """How many elements of an array of such extents a window leaves out at both ends of each axis."""
    return tuple((low, extent - high) for (low, high), extent in zip(bounds(target), extents, strict=True))


def bounds(window: Window) -> Box:
    """The smallest box that the elements of a window are in, if it has any."""
    found = []
    for ix in window.index:
        last = ix.offset + (0 if ix.axis is None else ix.stride * (window.shape[ix.axis] - 1))
        found.append((min(ix.offset, last), max(ix.offset, last) + 1))
    return tuple(found)


def is_dense_box(window: Window) -> bool:
    """Whether a window is all of that box, and each element once."""
    axes = sorted(ix.axis for ix in window.index if ix.axis is not None)
    return axes == [*range(len(window.shape))] and all(
        n == 1 or (n > 1 and abs(ix.stride) == 1)
        for ix in window.index
        for n in (1 if ix.axis is None else window.shape[ix.axis],)
    )


def boxes_around(shape: Sequence[int], inner: Box) -> list[Box]:
    """Boxes that make up what is around one."""
    found: list[Box] = []
    for axis, (low, high) in enumerate(inner):
        rest = [(0, n) for n in shape[axis + 1 :]]
        for begin, end in ((0, low), (high, shape[axis])):
            if begin < end:
                found.append((*inner[:axis], (begin, end), *rest))
    return found
