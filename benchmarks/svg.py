"""The parts of heat maps and charts as SVG text, without any library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

_STYLE = (
    "text{font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;font-size:12px;fill:#1d2530}"
    ".t{font-size:15px;font-weight:600}.s{fill:#4a5463}.b{font-weight:700}"
    ".m{text-anchor:middle}.e{text-anchor:end}"
    ".h{stroke:#fbfcfe;stroke-width:4px}"
)
_SLOWER, _EVEN, _FASTER = (240, 160, 120), (252, 252, 252), (110, 177, 232)
ENDS = 10.0  # the colours end at ten times faster and slower
ROW, COLUMN, MARGIN = 20.0, 80.0, 20.0
CHAR = 7.2  # more than a letter of 12 px takes on average


def text(x: float, y: float, words: str, css: str = "") -> str:
    """Return a text whose baseline begins at a point, or with ``css`` "e" ends, or "m" is centred there."""
    return f'<text class="{css}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, fill: str, told: str = "") -> str:
    """Return a rectangle, with the tooltip ``told``."""
    at = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"'
    return f"<rect {at}><title>{escape(told)}</title></rect>" if told else f"<rect {at}/>"


def line(x: float, y: float, to_x: float, to_y: float, stroke: str) -> str:
    """Return a line."""
    return f'<path d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}" stroke="{stroke}" fill="none"/>'


def cell(x: float, y: float, fill: str, words: str, css: str, told: str = "") -> tuple[str, str]:
    """Return the box and the text of a table cell whose corner is at a point."""
    return box(x + 1, y + 1, COLUMN - 2, ROW - 2, fill, told), text(x + COLUMN / 2, y + 14, words, css)


def picture(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    """Return the text of a whole SVG file."""
    faster, even, slower = (hexed(c) for c in (_FASTER, _EVEN, _SLOWER))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}"><title>{escape(title)}</title><style>{_STYLE}</style>'
        f'<defs><linearGradient id="scale"><stop offset="0" stop-color="{slower}"/><stop offset="0.5" '
        f'stop-color="{even}"/><stop offset="1" stop-color="{faster}"/></linearGradient>'
        '<pattern id="none" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6" '
        'fill="#f3f4f6"/><path d="M-1 7L7 -1" stroke="#cdd2da" fill="none"/></pattern></defs>'
        f'<rect width="100%" height="100%" rx="10" fill="#fbfcfe"/>{"".join(parts)}</svg>\n'
    )


def heading(told: Mapping[str, Any], title: str) -> list[str]:
    """Return the title and a line on the machine."""
    here = f"{told['machine']['cpu']}, {told['machine']['cores']} cores"
    return [text(MARGIN, 32, title, "t"), text(MARGIN, 52, here, "s")]


def hexed(colour: Sequence[float]) -> str:
    """Return a colour in CSS notation."""
    return "#" + "".join(f"{round(part):02x}" for part in colour)


def colour(speedup: float) -> str:
    """Return the colour of a speed-up: from orange through white, at 1, to blue, on a logarithmic scale."""
    place = max(-1.0, min(1.0, math.log(speedup) / math.log(ENDS)))
    end = _FASTER if place > 0 else _SLOWER
    return hexed([a + (b - a) * abs(place) for a, b in zip(_EVEN, end, strict=True)])


def scale(x: float, y: float, width: float = 200.0) -> Iterator[str]:
    """Yield the legend of the colours, with the corner at a point."""
    yield box(x, y, width, 14, "url(#scale)")
    for value in (1 / ENDS, ENDS**-0.5, 1, ENDS**0.5, ENDS):
        at = x + width * (math.log(value) / math.log(ENDS) + 1) / 2
        css = "s" if value == 1 / ENDS else "s e" if value == ENDS else "s m"
        yield text(at, y + 28, f"{value:.2g}", css)
