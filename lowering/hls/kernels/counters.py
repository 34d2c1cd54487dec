"""C statements that count through the points of a domain, so that no division is needed for coordinates."""

from __future__ import annotations

from collections.abc import Iterator

from ..network.boxes import Box, Point


def counters(name: str, start: Point) -> Iterator[str]:
    """Yield declarations of the counters ``<name>0``, ``<name>1``, ... of a point, one per axis."""
    for axis, x in enumerate(start):
        yield f"int64_t {name}{axis} = {x};"


def advance(name: str, start: Point | None, shape: Point) -> Iterator[str]:
    """Yield the statement that moves the counters to the next point; the first axis is not limited."""
    text = ""
    for axis, n in enumerate(shape):
        low = start[axis] if start is not None else 0
        body = f" {{ {name}{axis} = {low};{text} }}" if axis else ""
        text = f" if (++{name}{axis} == {low + n}){body}" if axis else f" ++{name}0;"
    if text:
        yield text.strip()


def is_inside(name: str, box: Box) -> str:
    """Return the C condition that the counters of a point are inside of a box."""
    terms = [
        f"{name}{axis} >= {f} && {name}{axis} < {f + n}"
        for axis, (f, n) in enumerate(zip(box.first, box.shape, strict=True))
    ]
    return " && ".join(terms) or "true"
