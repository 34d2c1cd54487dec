"""Drawings of regions: arrays and statements as a data-flow graph, as SVG text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import prod
from typing import Any

from dcarray.ir.analysis.traffic import fused_traffic
from dcarray.ir.nodes import Array, Branch, Call, Compute, Region, Stmt, While
from dcarray.ir.windows import loads

from .formula import Names, domain_of, dtype_text, statement_lines
from .graph_layout import Placed, place

_CHAR, _LINE, _PAD, _LONGEST = 6.65, 15.0, 9.0, 92
_MARGIN, _WIDEST = 24.0, 1500.0
_TONES = {  # fill, border
    "in": ("#e3edf9", "#5b87b8"),
    "out": ("#dff3e4", "#3f9a5b"),
    "kernel": ("#ffffff", "#3d4756"),
    "call": ("#f3ebfa", "#7f5aa8"),
}
_STYLE = (
    "text{font-family:system-ui,'Segoe UI',sans-serif;fill:#222a35}"
    ".f{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:11px}"
    ".h{font-size:11px;fill:#5c6675}.t{font-size:15px;font-weight:600}.s{font-size:12px;fill:#5c6675}"
    ".e{fill:none;stroke:#8993a3;stroke-width:1.4}.m{stroke:#d08a1c;stroke-width:2}"
    ".o{stroke-dasharray:4 3}"
)


@dataclass(frozen=True)
class Node:
    """A box of the graph: ``kind`` decides its colour, ``head`` is small print above, ``lines`` are its
    code."""

    kind: str
    head: str
    lines: tuple[str, ...] = ()

    @property
    def size(self) -> tuple[float, float]:
        longest = max((len(line) for line in (self.head, *self.lines)), default=0)
        rows = len(self.lines) + bool(self.head)
        return longest * _CHAR + 2 * _PAD, rows * _LINE + 2 * _PAD - 5


@dataclass(frozen=True)
class Panel:
    """A graph with a title.  The class of an edge is "" (data), "m" (data through a temporary in memory) or
    "o" (order only)."""

    title: str
    note: str
    nodes: dict[str, Node]
    edges: dict[tuple[str, str], str]


def size_text(count: float) -> str:
    """Return a number of bytes as text with a unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if count >= 100 or unit == "B" else f"{count:.3g} {unit}"


def shape_text(shape: Sequence[Any] | None) -> str:
    """Return a shape as text, such as ``2000 x 2000``; empty for None."""
    if shape is None:
        return ""
    return " x ".join(map(str, shape)) if shape else "scalar"


def _pill(array: Array, names: Names) -> Node:
    parts = [names.get(array.name, array.name), shape_text(array.shape), dtype_text(array.dtype)]
    if all(isinstance(d, int) for d in array.shape):
        parts.append(size_text(prod(array.shape) * array.dtype.itemsize))
    return Node("out" if array.role == "out" else "in", "", ("  ".join(parts),))


def _box(stmt: Stmt, number: int, region: Region, where: str, noun: str, names: Names) -> Node:
    kind = "call" if isinstance(stmt, Call) else "kernel"
    cost = fused_traffic(stmt, region)
    head = [
        f"{noun if kind == 'kernel' else kind} {number}",
        shape_text(domain_of(stmt)),
        size_text(cost.bytes),
        where,
    ]
    lines = [part for line in statement_lines(stmt, names) for part in _wrap(line)]
    return Node(kind, "  ·  ".join(filter(None, head)), tuple(lines))


def _wrap(line: str) -> list[str]:
    out = []
    while len(line) > _LONGEST:
        cut = line.rfind(" ", 20, _LONGEST)
        cut = cut if cut > 0 else _LONGEST
        out.append(line[:cut])
        line = "    " + line[cut:].lstrip()
    return [*out, line]


def _touched(stmt: Stmt) -> tuple[list[str], list[str]]:
    """Return the names of the arrays that a statement reads and writes."""
    if isinstance(stmt, Call):
        return [w.array for w in stmt.reads], [w.array for w in stmt.writes]
    if isinstance(stmt, Compute):
        into = stmt.target.array
        again = [into] if stmt.combine is not None and stmt.init is None else []
        bodies = (stmt.body,) if stmt.init is None else (stmt.body, stmt.init)
        return [node.window.array for body in bodies for node in loads(body)] + again, [into]
    inner = (*stmt.then, *stmt.orelse) if isinstance(stmt, Branch) else stmt.body
    pairs = [_touched(one) for one in inner]
    read = [name for names, _ in pairs for name in names]
    if isinstance(stmt, While | Branch):
        read += [node.window.array for node in loads(stmt.cond)]
    return read, [name for _, names in pairs for name in names]


def panel(
    region: Region,
    title: str,
    note: str,
    where: Mapping[Any, str] | None = None,
    noun: str = "kernel",
    names: Names | None = None,
) -> Panel:
    """Return the graph of a region.

    Parameters
    ----------
    region : Region
    title, note : str
        The panel's heading and the line below it.
    where : mapping, optional
        ``Stmt.loc`` to the user's line, for the heads of the boxes.
    noun : str
        The word for a box of code.
    names : mapping, optional
        Array name to the name shown for it (for a scalar: its value).

    Returns
    -------
    Panel
    """
    names = names or {}
    arrays = {a.name: a for a in region.arrays}
    root = {a.name: a.base or a.name for a in region.arrays}
    nodes: dict[str, Node] = {}
    edges: dict[tuple[str, str], str] = {}
    writer: dict[str, str] = {}
    for number, stmt in enumerate(region.body, 1):
        me = f"s{number}"
        reads, writes = _touched(stmt)
        nodes[me] = _box(stmt, number, region, (where or {}).get(stmt.loc, ""), noun, names)
        for name in reads:
            base = root[name]
            if base not in writer:
                if not arrays[base].shape:
                    continue  # a scalar: its name in the formula says enough
                nodes.setdefault(f"a{base}", _pill(arrays[base], names))
                writer[base] = f"a{base}"
            if writer[base] != me:
                edges[writer[base], me] = "m" if arrays[base].role == "temp" else ""
        for name in writes:
            base = root[name]
            if base in writer and writer[base] not in (me, f"a{base}"):
                edges.setdefault((writer[base], me), "o")
            writer[base] = me
    for a in region.arrays:
        if a.role in ("out", "inout") and a.base is None and writer.get(a.name, "a").startswith("s"):
            nodes[f"o{a.name}"] = Node("out", "", _pill(a, names).lines)
            edges[writer[a.name], f"o{a.name}"] = ""
    return Panel(title, note, nodes, edges)


def _curve(points: Sequence[tuple[float, float]], start: float, end: float) -> str:
    """Return a smooth path through the points, leaving and entering vertically."""
    (x0, y0), *rest = points
    y0 += start
    path = [f"M{x0:.1f} {y0:.1f}"]
    for k, (x, y) in enumerate(rest):
        y -= end if k == len(rest) - 1 else 0
        middle = (y0 + y) / 2
        path.append(f"C{x0:.1f} {middle:.1f} {x:.1f} {middle:.1f} {x:.1f} {y:.1f}")
        x0, y0 = x, y
    return "".join(path)


def _node_svg(node: Node, x: float, y: float) -> str:
    width, height = node.size
    left, top = x - width / 2, y - height / 2
    fill, border = _TONES[node.kind]
    radius = height / 2 if node.kind in ("in", "out") else 6
    out = [
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius:.1f}" '
        f'fill="{fill}" stroke="{border}" stroke-width="1.3"/>'
    ]
    at = top + _PAD + 8
    for css, line in (("h", node.head), *(("f", line) for line in node.lines)):
        if line:
            text = escape(line).replace("  ", "&#160; ")
            out.append(f'<text class="{css}" x="{left + _PAD:.1f}" y="{at:.1f}">{text}</text>')
            at += _LINE
    return "".join(out)


def _panel_svg(drawn: Panel, where: Placed, x: float, y: float) -> str:
    out = [f'<g transform="translate({x:.1f} {y:.1f})"><text class="t" y="0">{escape(drawn.title)}</text>']
    out.append(f'<text class="s" y="19">{escape(drawn.note)}</text><g transform="translate(0 36)">')
    for (a, b), css in drawn.edges.items():
        start, end = (drawn.nodes[n].size[1] / 2 for n in (a, b))
        path = _curve(where.route[a, b], start, end + 5)
        out.append(f'<path class="e {css}" marker-end="url(#p)" d="{path}"/>')
    out += [_node_svg(node, *where.centre[name]) for name, node in drawn.nodes.items()]
    return "".join([*out, "</g></g>"])


#: What the kinds of boxes are, and the edges of class "m".
LEGEND = {
    "in": "input", "out": "result", "kernel": "kernel", "call": "library call", "m": "temporary in memory",
}  # fmt: skip


def _legend_svg(x: float, y: float, legend: Mapping[str, str]) -> str:
    out = []
    for kind, name in legend.items():
        if kind == "m":
            continue
        fill, border = _TONES[kind]
        out.append(
            f'<rect x="{x}" y="{y - 10}" width="14" height="12" rx="3" fill="{fill}" stroke="{border}"/>'
        )
        out.append(f'<text class="s" x="{x + 20}" y="{y}">{name}</text>')
        x += 40 + 7 * len(name)
    out.append(f'<path class="e m" d="M{x} {y - 4}h24"/><text class="s" x="{x + 30}" y="{y}">')
    return "".join([*out, f"{legend['m']}</text>"])


def draw(rows: Sequence[Sequence[Panel]], legend: Mapping[str, str] = LEGEND) -> str:
    """Return rows of panels as one SVG text; a row that is too wide becomes a column."""
    x, y, right = _MARGIN, 40.0, 640.0
    bodies: list[str] = []
    for row in rows:
        placed = [place({n: node.size for n, node in p.nodes.items()}, list(p.edges)) for p in row]
        titles = [7.6 * max(len(p.title), len(p.note)) for p in row]
        widths = [max(q.width, title) for q, title in zip(placed, titles, strict=True)]
        beside = sum(widths) < _WIDEST
        x, deepest = _MARGIN, 0.0
        for drawn, where, width in zip(row, placed, widths, strict=True):
            bodies.append(_panel_svg(drawn, where, x, y))
            right, deepest = max(right, x + width + _MARGIN), max(deepest, where.height)
            x, y = (x + width + 60, y) if beside else (x, y + where.height + 90)
        x, y = _MARGIN, y + deepest + 90 if beside else y
    total, bottom = right, y + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total:.0f}" height="{bottom:.0f}" '
        f'viewBox="0 0 {total:.0f} {bottom:.0f}"><style>{_STYLE}</style><defs><marker id="p" '
        'viewBox="0 0 8 8" refX="4" refY="4" markerWidth="7" markerHeight="7" orient="auto" '
        'markerUnits="userSpaceOnUse"><path d="M0 0L8 4L0 8z" fill="#6b7686"/></marker></defs>'
        f'<rect width="100%" height="100%" rx="10" fill="#fbfcfe"/>{"".join(bodies)}'
        f"{_legend_svg(_MARGIN, round(bottom) - 16, legend)}</svg>"
    )
