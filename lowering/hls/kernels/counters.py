"""Counters of points, as statements of C: a point is counted on, not divided for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..network.boxes import Box, Point, distance
from ..network.nodes import Fifo, Work


def counters(name: str, start: Point) -> Iterator[str]:
    """Declare the counters of a point, one for each axis."""
    for axis, x in enumerate(start):
        yield f"int64_t {name}{axis} = {x};"


def advance(name: str, start: Point | None, shape: Point) -> Iterator[str]:
    """Count to the next point; the first axis goes on for ever."""
    text = ""
    for axis, n in enumerate(shape):
        low = start[axis] if start is not None else 0
        body = f" {{ {name}{axis} = {low};{text} }}" if axis else ""
        text = f" if (++{name}{axis} == {low + n}){body}" if axis else f" ++{name}0;"
    if text:
        yield text.strip()


def is_inside(name: str, box: Box) -> str:
    """Whether the counters of a point are inside of a box."""
    terms = [
        f"{name}{axis} >= {f} && {name}{axis} < {f + n}"
        for axis, (f, n) in enumerate(zip(box.first, box.shape, strict=True))
    ]
    return " && ".join(terms) or "true"


def tick_span(work: Work, fifos: Mapping[str, Fifo]) -> tuple[int, int]:
    """The first tick at which something comes or is computed, and the last."""
    spans = [(line.lead, fifos[line.source].vectors) for line in work.inputs]
    spans += [(0, work.vectors)] if work.box.size else []
    if not spans:
        return 0, -1
    first = min(distance(box.first, work.raster) - lead for lead, box in spans)
    return first, max(distance(box.last, work.raster) - lead for lead, box in spans)


def point_of(tick: int, raster: Point) -> Point:
    """The point of a tick; outside of the raster the first coordinate is out of range."""
    found: list[int] = []
    for n in reversed(raster[1:]):
        tick, x = divmod(tick, max(n, 1))  # nothing happens in an empty raster
        found.append(x)
    return (*([tick] if raster else []), *reversed(found))
