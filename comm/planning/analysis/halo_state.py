"""The state of halos (copies of neighbours' elements): parts that statements read or that are up to date."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dcarray.ir.nodes import Call, Window

__all__ = [
    "Box", "Halo", "ValidHalos", "Widths", "bounds", "boxes_around", "is_dense_box", "margins", "max_widths",
]  # fmt: skip

Box = tuple[tuple[int, int], ...]
Widths = tuple[tuple[int, int], ...]

_MAX_HALOS = 8  # halos of one array that are recorded


@dataclass(frozen=True)
class Halo:
    """A part of the halo of an array: one that a statement reads, or that is up to date.

    Parameters
    ----------
    widths : tuple of (int, int)
        The widths before and after a rank's own elements along each axis.
    corners : bool
        Whether elements beyond the rank's own along more than one axis belong to this part.
    rim : float, optional
        Only elements within this distance of an end of the whole array belong to this part.
    """

    widths: Widths
    corners: bool
    rim: float = math.inf

    def __or__(self, other: Halo) -> Halo:
        widths = max_widths(self.widths, other.widths)
        return Halo(widths, self.corners or other.corners, max(self.rim, other.rim))

    @classmethod
    def of_call(cls, call: Call) -> Halo:
        """Return the halo of a ``comm.halo`` call."""
        attrs: dict[str, Any] = dict(call.attrs)
        return cls(attrs["widths"], attrs["corners"], attrs.get("rim", math.inf))

    @property
    def attrs(self) -> tuple[tuple[str, Any], ...]:
        """The attributes of a ``comm.halo`` call for this halo."""
        attrs = (("widths", self.widths), ("corners", self.corners))
        return attrs if self.rim == math.inf else (*attrs, ("rim", self.rim))

    def within(self, other: Halo) -> bool:
        """Whether another part of the halo includes this one."""
        return other | self == other

    def __bool__(self) -> bool:
        return any(map(any, self.widths))


@dataclass(frozen=True)
class ValidHalos:
    """The parts of an array's halo that are up to date, none of which is within another.

    For example the elements near the ends of the array in a wide halo, and all elements of a narrow one.
    """

    halos: tuple[Halo, ...] = ()

    def has(self, halo: Halo) -> bool:
        """Whether all elements of a part of the halo are up to date."""
        return any(halo.within(one) for one in self.halos)

    def after_exchange(self, halo: Halo) -> ValidHalos:
        """Return the parts that are up to date after the exchange of one more part."""
        for one in self.halos:  # two halos without corners make one
            if not (one.corners or halo.corners) and one.rim == halo.rim:
                halo = halo | one
        return self if self.has(halo) else _without_covered((*self.halos, halo))

    def after_write(self, margin: float) -> ValidHalos:
        """Return the parts still valid after a write of elements at least `margin` from the array's ends."""
        if not margin:
            return ValidHalos()
        return _without_covered([replace(one, rim=min(one.rim, margin)) for one in self.halos])

    def __bool__(self) -> bool:
        return bool(self.halos)


def _without_covered(halos: Sequence[Halo]) -> ValidHalos:
    """Return halos without those within others; of more than ``_MAX_HALOS`` the oldest are dropped."""
    kept: list[Halo] = []
    for halo in halos:
        if not any(halo.within(one) for one in kept):
            kept = [*(one for one in kept if not one.within(halo)), halo]
    return ValidHalos(tuple(kept[-_MAX_HALOS:]))


def max_widths(*halos: Widths) -> Widths:
    """Return the widths of the smallest halo that includes several halos of one array."""
    return tuple((max(a for a, _ in pairs), max(b for _, b in pairs)) for pairs in zip(*halos, strict=True))


def margins(target: Window, extents: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return the numbers of elements that a window leaves out at both ends of each axis of an array."""
    return tuple((low, extent - high) for (low, high), extent in zip(bounds(target), extents, strict=True))


def bounds(window: Window) -> Box:
    """Return the smallest box (begin, end along each axis) that contains a window which is not empty."""
    box = []
    for ix in window.index:
        last = ix.offset + (0 if ix.axis is None else ix.stride * (window.shape[ix.axis] - 1))
        box.append((min(ix.offset, last), max(ix.offset, last) + 1))
    return tuple(box)


def is_dense_box(window: Window) -> bool:
    """Whether a window has each element of its smallest box exactly once."""
    axes = sorted(ix.axis for ix in window.index if ix.axis is not None)
    return axes == [*range(len(window.shape))] and all(
        n == 1 or (n > 1 and abs(ix.stride) == 1)
        for ix in window.index
        for n in (1 if ix.axis is None else window.shape[ix.axis],)
    )


def boxes_around(shape: Sequence[int], inner: Box) -> list[Box]:
    """Return disjoint boxes that make up the complement of a box."""
    boxes: list[Box] = []
    for axis, (low, high) in enumerate(inner):
        rest = [(0, n) for n in shape[axis + 1 :]]
        for begin, end in ((0, low), (high, shape[axis])):
            if begin < end:
                boxes.append((*inner[:axis], (begin, end), *rest))
    return boxes
