"""A run of NPBench as pictures, in SVG without any library: a heat map and a bar chart."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from .npbench_figures import (
    NAMES,
    SETS,
    Rows,
    frameworks,
    interval,
    kinds,
    measured,
    ratio,
    short,
    speedups,
    time_text,
    verdict,
)

_STYLE = (
    "text{font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;font-size:12px;fill:#1d2530}"
    ".t{font-size:15px;font-weight:600}.s{fill:#4a5463}.b{font-weight:700}"
    ".m{text-anchor:middle}.e{text-anchor:end}"
    ".h{paint-order:stroke;stroke:#fbfcfe;stroke-width:4px}"
)
_SLOWER, _EVEN, _FASTER = (240, 160, 120), (252, 252, 252), (110, 177, 232)
_ENDS = 10.0  # the colours end at ten times faster and slower
_ROW, _COLUMN, _MARGIN = 20.0, 80.0, 20.0
_CHAR = 7.2  # more than a letter of 12 px takes on average
_BARS = {"whole-array": "#4a90d0", "all": "#b4cfea"}


def _text(x: float, y: float, words: str, css: str = "") -> str:
    return f'<text class="{css}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


def _box(x: float, y: float, width: float, height: float, fill: str, told: str = "") -> str:
    at = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"'
    return f"<rect {at}><title>{escape(told)}</title></rect>" if told else f"<rect {at}/>"


def _line(x: float, y: float, to_x: float, to_y: float, stroke: str) -> str:
    return f'<path d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}" stroke="{stroke}" fill="none"/>'


def _picture(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    faster, even, slower = (_hex(c) for c in (_FASTER, _EVEN, _SLOWER))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}"><title>{escape(title)}</title><style>{_STYLE}</style>'
        f'<defs><linearGradient id="scale"><stop offset="0" stop-color="{slower}"/><stop offset="0.5" '
        f'stop-color="{even}"/><stop offset="1" stop-color="{faster}"/></linearGradient>'
        '<pattern id="none" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6" '
        'fill="#f3f4f6"/><path d="M-1 7L7 -1" stroke="#cdd2da" fill="none"/></pattern></defs>'
        f'<rect width="100%" height="100%" rx="10" fill="#fbfcfe"/>{"".join(parts)}</svg>\n'
    )


def _heading(told: Mapping[str, Any], title: str) -> list[str]:
    here = f"{told['machine']['cpu']}, {told['machine']['cores']} cores"
    return [_text(_MARGIN, 32, title, "t"), _text(_MARGIN, 52, here, "s")]


def _hex(colour: Sequence[float]) -> str:
    return "#" + "".join(f"{round(part):02x}" for part in colour)


def colour(speedup: float) -> str:
    """From orange through white, at 1, to blue, by the logarithm; light enough for dark letters."""
    place = max(-1.0, min(1.0, math.log(speedup) / math.log(_ENDS)))
    end = _FASTER if place > 0 else _SLOWER
    return _hex([a + (b - a) * abs(place) for a, b in zip(_EVEN, end, strict=True)])


def _cells(
    y: float,
    left: float,
    names: Sequence[str],
    values: Mapping[str, float],
    told: Mapping[str, tuple[str, str]],
) -> Iterator[str]:
    """A row of cells: the speed-up on its colour, or a word; ``told`` has that and a hint."""
    best = max([1.0, *values.values()])
    for k, name in enumerate(names):
        x, value = left + (k + 1) * _COLUMN, values.get(name)
        fill = "url(#none)" if value is None else colour(value)
        word, hint = told[name]
        yield _box(x + 1, y + 1, _COLUMN - 2, _ROW - 2, fill, f"{name}: {hint}")
        css = "s m" if value is None else "b m" if value == best else "m"
        yield _text(x + _COLUMN / 2, y + 14, word if value is None else ratio(value), css)


def heatmap(told: Mapping[str, Any]) -> str:
    """Benchmarks by frameworks, as an SVG text; the numbers are medians of the speed-up over NumPy.

    Parameters
    ----------
    told : mapping
        What ``--json`` writes.

    Returns
    -------
    str
    """
    rows: Rows = told["benchmarks"]
    names = frameworks(rows)
    heads = {title: f"geometric mean, {title}" for title in SETS}
    left = _MARGIN + 12 + _CHAR * max(map(len, [*rows, *heads.values()]))
    right = max(left + (len(names) + 1) * _COLUMN, 660.0)
    title = f"NPBench, size {told['size']}: speed-up over NumPy"
    out = _heading(told, title)
    out += _legend(_MARGIN, 66)
    y = 132.0
    for k, name in enumerate(["numpy", *names]):
        out.append(_text(left + (k + 0.5) * _COLUMN, y - 6, NAMES.get(name, name), "b m"))
    for kind, values in speedups(rows, names).items():
        means = {name: statistics.geometric_mean(values[name]) for name in names if values[name]}
        counts = {name: ("-", f"{len(values[name])} benchmarks") for name in names}
        out += [_text(left - 8, y + 14, heads[kind], "b e"), *_cells(y, left, names, means, counts)]
        y += _ROW
    for kind, kept in kinds(rows).items():
        out.append(_text(_MARGIN, y + 24, f"{kind} ({len(kept)})", "b"))
        out.append(_line(_MARGIN, y + 30, right, y + 30, "#b9c0cb"))
        y += 34
        for name, row in kept.items():
            hints = {n: (verdict(row.get(n, {})), _hint(row, n)) for n in names}
            out.append(_text(left - 8, y + 14, name, "e"))
            out.append(_text(left + _COLUMN - 14, y + 14, time_text(row["numpy"]), "s e"))
            out += _cells(y, left, names, measured(row, names), hints)
            y += _ROW
    return _picture(right + _MARGIN, y + 16, title, out)


def _hint(row: Mapping[str, Mapping[str, Any]], name: str) -> str:
    told = row.get(name, row["numpy"])
    return interval(told) if "speedup" in told else short(told.get("wrong", "the same result as NumPy's"))


def _legend(x: float, y: float) -> Iterator[str]:
    """What the colours and marks of the heat map say."""
    width = 200.0
    yield _box(x, y, width, 14, "url(#scale)")
    for value in (1 / _ENDS, _ENDS**-0.5, 1, _ENDS**0.5, _ENDS):
        at = x + width * (math.log(value) / math.log(_ENDS) + 1) / 2
        css = "s" if value == 1 / _ENDS else "s e" if value == _ENDS else "s m"
        yield _text(at, y + 28, f"{value:.2g}", css)
    yield _box(x + width + 20, y, 26, 14, "url(#none)")
    yield _text(x + width + 54, y + 12, "no speed-up: failed, wrong, too long, or no version of it", "s")
    yield _text(x + width + 20, y + 30, "bold", "b")
    yield _text(x + width + 54, y + 30, "the fastest of its row, NumPy included", "s")


def bars(told: Mapping[str, Any]) -> str:
    """Geometric means of the speed-up over NumPy as a bar chart, an SVG text.

    Parameters
    ----------
    told : mapping
        What ``--json`` writes.

    Returns
    -------
    str
    """
    rows: Rows = told["benchmarks"]
    found = speedups(rows, frameworks(rows))
    names = [name for name in found["all"] if found["all"][name]]
    means = {t: {n: statistics.geometric_mean(found[t][n]) for n in names if found[t][n]} for t in _BARS}
    longest = max([1.0, *(value for values in means.values() for value in values.values())])
    step = next((s for s in (0.25, 0.5, 1, 2, 5, 10, 20, 50) if longest / s <= 7), 100)
    left, width, top, thick = _MARGIN + 80, 440.0, 112.0, 17.0
    unit, group = width / longest, 2 * thick + 14
    bottom = top + len(names) * group
    title = f"NPBench, size {told['size']}: geometric mean of the speed-up over NumPy"
    out = _heading(told, title)
    x = left
    for kind, fill in _BARS.items():
        words = "all benchmarks" if kind == "all" else f"benchmarks in {kind} statements"
        out += [_box(x, 64, 14, 14, fill), _text(x + 20, 76, words, "s")]
        x += 46 + _CHAR * len(words)
    for k in range(int(longest / step) + 1):
        at = left + k * step * unit
        out += [_line(at, top - 4, at, bottom, "#dde1e8"), _text(at, bottom + 16, f"{k * step:g}", "s m")]
    one = left + unit
    over = [_text(one, top - 10, "NumPy", "s m"), _line(one, top - 6, one, bottom, "#5c6675")]
    for k, name in enumerate(names):
        y = top + k * group + 3
        label = "b e" if name == "dcarray" else "e"
        out.append(_text(left - 10, y + thick + 4, NAMES.get(name, name), label))
        for kind, fill in _BARS.items():
            if name in means[kind]:
                value = means[kind][name]
                out.append(_box(left, y, value * unit, thick - 1, fill))
                words = f"{ratio(value)} ({len(found[kind][name])})"
                over.append(_text(left + value * unit + 6, y + 12, words, "h"))
            y += thick
    note = "in brackets: how many benchmarks the framework ran"
    over.append(_text(left, bottom + 38, note, "s"))
    return _picture(left + width + 90, bottom + 54, title, out + over)
