"""Counters of points, as statements of C: a point is counted on, not divided for."""

from __future__ import annotations

from collections.abc import Iterator

from ..network.boxes import Box, Point


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
