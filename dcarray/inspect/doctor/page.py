"""The doctor's page: the source with its lines' times, as one HTML file without any other resource."""

from __future__ import annotations

import os
from html import escape

from .diagnosis import Line, source_of
from .runs import Run
from .text import remarks
from .ways import Gain

__all__ = ["page", "table"]

_BODY = (
    "body{font:15px/1.45 sans-serif;margin:2em auto;max-width:76em;padding:0 1em;color:#111}p.s{color:#444}"
)
_STYLE = """.doctor table{border-collapse:collapse;width:100%}
.doctor th{text-align:left;border-bottom:2px solid #444}
.doctor td,.doctor th{padding:2px 8px;vertical-align:top}.doctor tr{border-bottom:1px solid #ddd}
.doctor td{text-align:left}.doctor td.n{text-align:right;white-space:nowrap}
.doctor td.c{font-family:monospace;white-space:pre-wrap}
.doctor .bar{display:inline-block;height:.8em;background:#0b559f}"""


def page(plain: Run, gains: list[Gain], lines: list[Line]) -> str:
    """Return the page.

    Times are shown by bars, numbers and shades of one colour, so that no colours have to be distinguished.
    """
    files = list(dict.fromkeys(one.file for one in lines))
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>dcarray doctor</title>'
        f"<style>{_BODY}</style></head><body><h1>dcarray doctor</h1>{table(plain, gains, lines)}"
        '<p class="s">Darker lines and longer bars took more time.</p>'
        + "".join(_source(file, plain) for file in files)
        + "</body></html>\n"
    )


def table(plain: Run, gains: list[Gain], lines: list[Line]) -> str:
    """Return the times of the program, and the table of its hot lines."""
    rows = []
    for one in lines:
        spent = "" if one.accelerated is None else f"{one.accelerated:.3f}"
        bar = f'<span class="bar" style="width:{100 * one.share:.0f}px"></span>'
        rows.append(
            f'<tr><td class="n">{one.seconds:.3f}</td><td class="n">{one.share:.1%}</td><td>{bar}</td>'
            f'<td class="n">{spent}</td><td>{escape(one.place)}</td><td class="c">{escape(one.text)}</td>'
            f"<td>{escape('; '.join(remarks(one)))}</td></tr>"
        )
    heads = ("seconds", "share", "", "under run", "line", "source", "what to know")
    head = "<tr>" + "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr>"
    said = "".join(f"<li>{escape(one.text(plain))}</li>" for one in gains)
    said = f"<p>{plain.seconds:.3f} s as plain Python</p>" + (f"<ul>{said}</ul>" if said else "")
    return f'<div class="doctor"><style>{_STYLE}</style>{said}<table>{head}{"".join(rows)}</table></div>'


def _source(file: str, plain: Run) -> str:
    """Return the table of a file's source."""
    times = {line: seconds for (name, line), seconds in plain.lines.items() if name == file}
    rows = []
    for number, text in enumerate(source_of(file).rstrip("\n").split("\n"), 1):
        seconds = times.get(number, 0.0)
        share = seconds / plain.seconds
        shade = f' style="background:rgba(11,85,159,{0.08 + 0.4 * share:.2f})"' if share >= 0.001 else ""
        spent = f"{seconds:.3f}" if share >= 0.001 else ""
        rows.append(
            f'<tr{shade}><td class="n">{number}</td><td class="n">{spent}</td>'
            f'<td class="n">{f"{share:.1%}" if spent else ""}</td><td class="c">{escape(text)}</td></tr>'
        )
    heads = "".join(f'<th scope="col">{head}</th>' for head in ("line", "seconds", "share", "source"))
    body = f'<div class="doctor"><table><tr>{heads}</tr>{"".join(rows)}</table></div>'
    return f"<h2>{escape(os.path.basename(file))}</h2>{body}"
