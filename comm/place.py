"""How much of the halo of an array is read, or holds what the neighbours have."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Halo"]


@dataclass(frozen=True)
class Halo:
    """How much of the halo of an array a statement reads."""

    widths: tuple[tuple[int, int], ...]
    corners: bool

    def __or__(self, other: Halo) -> Halo:
        pairs = zip(self.widths, other.widths, strict=True)
        widths = tuple((max(a[0], b[0]), max(a[1], b[1])) for a, b in pairs)
        return Halo(widths, self.corners or other.corners)

    def within(self, other: Halo) -> bool:
        """Has another halo all that this one has?"""
        return other | self == other

    def __bool__(self) -> bool:
        return any(map(any, self.widths))
