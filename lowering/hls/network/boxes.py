"""Boxes of points of arrays, and the distance of points in row-major order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

from dcarray.ir.records import record

Point = tuple[int, ...]


@record(frozen=True, slots=True)
class Box:
    """The points from ``first`` on, ``shape`` of them along each axis."""

    first: Point
    shape: Point

    @property
    def size(self) -> int:
        """The number of points."""
        return prod(self.shape)

    def points(self) -> Iterator[Point]:
        """The points in row-major order."""
        return product(*(range(f, f + n) for f, n in zip(self.first, self.shape, strict=True)))

    def has(self, point: Point) -> bool:
        """Whether a point lies inside."""
        return all(f <= x < f + n for x, f, n in zip(point, self.first, self.shape, strict=True))

    def covers(self, other: Box) -> bool:
        """Whether all points of another box, which must not be empty, lie inside."""
        return self.has(other.first) and self.has(other.last)

    def vectors(self, width: int) -> Box:
        """Return the box, of the vectors of ``width`` elements along the last axis that covers this box."""
        if width == 1 or not self.shape:
            return self
        first, count = self.first[-1], self.shape[-1]
        ahead = first // width
        return Box((*self.first[:-1], ahead), (*self.shape[:-1], -(-(first + count) // width) - ahead))

    @property
    def last(self) -> Point:
        """The last point in row-major order; the box must not be empty."""
        return tuple(f + n - 1 for f, n in zip(self.first, self.shape, strict=True))


def distance(vector: Point, raster: Point) -> int:
    """Return the number of points of a raster, in row-major order, between two that differ by ``vector``."""
    points = 0
    for x, n in zip(vector, raster, strict=True):
        points = points * n + x
    return points
