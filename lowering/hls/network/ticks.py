"""Ticks: the time steps of processes on streams, one for each point of their raster."""

from __future__ import annotations

from collections.abc import Mapping

from .boxes import Point, distance
from .nodes import Fifo, Work


def tick_span(work: Work, fifos: Mapping[str, Fifo]) -> tuple[int, int]:
    """Return the first and last tick at which a process receives an element or computes a point."""
    spans = [(line.lead, fifos[line.source].vectors) for line in work.inputs]
    spans += [(0, work.vectors)] if work.box.size else []
    if not spans:
        return 0, -1
    first = min(distance(box.first, work.raster) - lead for lead, box in spans)
    return first, max(distance(box.last, work.raster) - lead for lead, box in spans)


def point_of(tick: int, raster: Point) -> Point:
    """Return the point of the raster at a tick; its first coordinate may be out of range."""
    coordinates: list[int] = []
    for n in reversed(raster[1:]):
        tick, x = divmod(tick, max(n, 1))  # nothing happens in an empty raster
        coordinates.append(x)
    return (*([tick] if raster else []), *reversed(coordinates))
