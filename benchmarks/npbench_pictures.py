"""Pictures of a run of NPBench, in SVG without any library: a heat map and a bar chart."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
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
from .svg import CHAR, COLUMN, MARGIN, ROW, box, cell, colour, heading, line, picture, scale, text


def _cells(
    y: float,
    left: float,
    names: Sequence[str],
    values: Mapping[str, float],
    told: Mapping[str, tuple[str, str]],
) -> Iterator[str]:
    """Yield a row of cells with coloured speed-ups, or words; ``told`` has the word and tooltip of each."""
    best = max([1.0, *values.values()])
    for k, name in enumerate(names):
        value = values.get(name)
        fill = "url(#none)" if value is None else colour(value)
        word, hint = told[name]
        css = "s m" if value is None else "b m" if value == best else "m"
        shown = word if value is None else ratio(value)
        yield from cell(left + (k + 1) * COLUMN, y, fill, shown, css, f"{name}: {hint}")


_BARS = {"whole-array": "#4a90d0", "all": "#b4cfea"}


def heatmap(told: Mapping[str, Any]) -> str:
    """Return a heat map of benchmarks by frameworks as SVG; the numbers are median speed-ups over NumPy.

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
    left = MARGIN + 12 + CHAR * max(map(len, [*rows, *heads.values()]))
    right = max(left + (len(names) + 1) * COLUMN, 660.0)
    title = f"NPBench, size {told['size']}: speed-up over NumPy"
    out = heading(told, title)
    out += _legend(MARGIN, 66)
    y = 132.0
    for k, name in enumerate(["numpy", *names]):
        out.append(text(left + (k + 0.5) * COLUMN, y - 6, NAMES.get(name, name), "b m"))
    for kind, values in speedups(rows, names).items():
        means = {name: statistics.geometric_mean(values[name]) for name in names if values[name]}
        counts = {name: ("-", f"{len(values[name])} benchmarks") for name in names}
        out += [text(left - 8, y + 14, heads[kind], "b e"), *_cells(y, left, names, means, counts)]
        y += ROW
    for kind, kept in kinds(rows).items():
        out.append(text(MARGIN, y + 24, f"{kind} ({len(kept)})", "b"))
        out.append(line(MARGIN, y + 30, right, y + 30, "#b9c0cb"))
        y += 34
        for name, row in kept.items():
            hints = {n: (verdict(row.get(n, {})), _hint(row, n)) for n in names}
            out.append(text(left - 8, y + 14, name, "e"))
            out.append(text(left + COLUMN - 14, y + 14, time_text(row["numpy"]), "s e"))
            out += _cells(y, left, names, measured(row, names), hints)
            y += ROW
    return picture(right + MARGIN, y + 16, title, out)


def _hint(row: Mapping[str, Mapping[str, Any]], name: str) -> str:
    told = row.get(name, row["numpy"])
    return interval(told) if "speedup" in told else short(told.get("wrong", "the same result as NumPy's"))


def _legend(x: float, y: float) -> Iterator[str]:
    """Yield the legend of the heat map, with the corner at a point."""
    width = 200.0
    yield from scale(x, y, width)
    yield box(x + width + 20, y, 26, 14, "url(#none)")
    yield text(x + width + 54, y + 12, "no speed-up: failed, wrong, too long, or no version of it", "s")
    yield text(x + width + 20, y + 30, "bold", "b")
    yield text(x + width + 54, y + 30, "the fastest of its row, NumPy included", "s")


def bars(told: Mapping[str, Any]) -> str:
    """Return a bar chart of the geometric means of speed-ups over NumPy, as SVG.

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
    left, width, top, thick = MARGIN + 80, 440.0, 112.0, 17.0
    unit, group = width / longest, 2 * thick + 14
    bottom = top + len(names) * group
    title = f"NPBench, size {told['size']}: geometric mean of the speed-up over NumPy"
    out = heading(told, title)
    x = left
    for kind, fill in _BARS.items():
        words = "all benchmarks" if kind == "all" else f"benchmarks in {kind} statements"
        out += [box(x, 64, 14, 14, fill), text(x + 20, 76, words, "s")]
        x += 46 + CHAR * len(words)
    for k in range(int(longest / step) + 1):
        at = left + k * step * unit
        out += [line(at, top - 4, at, bottom, "#dde1e8"), text(at, bottom + 16, f"{k * step:g}", "s m")]
    one = left + unit
    over = [text(one, top - 10, "NumPy", "s m"), line(one, top - 6, one, bottom, "#5c6675")]
    for k, name in enumerate(names):
        y = top + k * group + 3
        label = "b e" if name == "dcarray" else "e"
        out.append(text(left - 10, y + thick + 4, NAMES.get(name, name), label))
        for kind, fill in _BARS.items():
            if name in means[kind]:
                value = means[kind][name]
                out.append(box(left, y, value * unit, thick - 1, fill))
                words = f"{ratio(value)} ({len(found[kind][name])})"
                # What lies behind the words is covered first: not every renderer knows ``paint-order``.
                over += [text(left + value * unit + 6, y + 12, words, css) for css in ("h", "")]
            y += thick
    note = "in brackets: how many benchmarks the framework ran"
    over.append(text(left, bottom + 38, note, "s"))
    return picture(left + width + 90, bottom + 54, title, out + over)
