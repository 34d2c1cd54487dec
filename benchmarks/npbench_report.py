"""The report of a run of NPBench: a section of a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .document import GENERATED, write_section
from .measure import described
from .npbench_figures import (
    LOSS,
    NAMES,
    Rows,
    first_calls,
    frameworks,
    interval,
    kinds,
    measured,
    ratio,
    remarks,
    short,
    summary,
    time_text,
    verdict,
)


def _table(rows: Rows, names: Sequence[str]) -> Iterator[str]:
    titles = [
        "benchmark",
        "NumPy",
        *(NAMES.get(name, name) for name in names),
        "first call",
        "NumPy's first call",
    ]
    yield "| " + " | ".join(titles) + " |"
    yield "|---|" + "---:|" * (len(titles) - 1)
    for bench, row in rows.items():
        cells = [interval(row[n]) if "speedup" in row.get(n, {}) else verdict(row.get(n, {})) for n in names]
        firsts = [row.get(name, {}).get("first") for name in ("dcarray", "numpy")]
        cells += ["" if first is None else f"{first:.3f} s" for first in firsts]
        yield "| " + " | ".join([bench, time_text(row["numpy"]), *cells]) + " |"


def _losses(kind: str, rows: Rows) -> Iterator[str]:
    """Yield lines about the benchmarks of a kind without a right result, or slower than NumPy."""
    speeds = {name: row["dcarray"]["speedup"][0] for name, row in rows.items() if measured(row, ["dcarray"])}
    lost = sorted((name for name in speeds if speeds[name] < LOSS), key=speeds.__getitem__)
    failed = [name for name, row in rows.items() if "wrong" in row.get("dcarray", {})]
    without = f", without a right result: {len(failed)}" if failed else ""
    yield f"Of the {len(rows)} in {kind}, below {LOSS} of NumPy's speed: {len(lost)}{without}."
    yield ""
    for name in [*failed, *lost]:
        row, ours = rows[name], rows[name]["dcarray"]
        spent = f", work {ratio(ours['worked'] / row['numpy']['worked'])}" if ours.get("worked") else ""
        told = f"* {name} {interval(ours) if name in speeds else verdict(ours)}{spent}"
        notes = [f"`{short(note).replace('`', '')}`" for note in remarks(row, "dcarray")]
        yield told + (": " + ", ".join(notes) if notes else "")
    if failed or lost:
        yield ""


def _behind(rows: Rows, names: Sequence[str]) -> Iterator[str]:
    """Yield a sentence about the benchmarks for which another framework is faster than dcarray."""
    peers = [name for name in names if name != "dcarray"]
    found: list[str] = []
    for bench, row in rows.items():
        ours, theirs = measured(row, ["dcarray"]), measured(row, peers)
        best = max(theirs, key=theirs.__getitem__, default="")
        if ours and best and ours["dcarray"] < theirs[best]:
            by = f"{NAMES.get(best, best)} {ratio(theirs[best])}"
            found.append(f"{bench} {ratio(ours['dcarray'])} ({by})")
    if peers:
        yield f"A peer is faster in {len(found)} of {len(rows)}{': ' if found else ''}{', '.join(found)}."


def section(told: Mapping[str, Any]) -> str:
    """Return the document's section with the figures of a run, in Markdown.

    Parameters
    ----------
    told : mapping
        What ``--json`` writes.
    """
    rows: Rows = told["benchmarks"]
    names = frameworks(rows)
    here = {NAMES.get(name, name): value for name, value in told["machine"].items()}
    asked = f"--size {told['size']} --against {','.join(['numpy', *names[1:]])} --rounds {told['rounds']}"
    out = [
        GENERATED,
        "",
        f"`{told.get('command', 'python -m benchmarks npbench --suite PATH ' + asked)}`",
        "",
        f"{described(here)}.  Speed-up over NumPy: median [95% interval] of {told['rounds']} turns.",
        "",
    ]
    for title, means in summary(rows, names).items():
        cells = ", ".join(f"{NAMES.get(name, name)} {value}" for name, value in means.items())
        out.append(f"* Geometric mean, {title}: {cells}.")
    out += [f"* {first_calls(rows)[0].upper()}{first_calls(rows)[1:]}.", ""]
    for kind, part in kinds(rows).items():
        out += [f"Benchmarks of {kind}:", "", *_table(part, names), ""]
    for kind, part in kinds(rows).items():
        out += _losses(kind, part)
    return "\n".join([*out, *_behind(rows, names)]).rstrip() + "\n"


def publish(runs: Sequence[Mapping[str, Any]], docs: Path | None) -> None:
    """Write the sections of a document on runs of what ``--json`` writes, each of a different size."""
    for told in runs:
        write_section(docs, f"NPBench, size {told['size']}", section(told))
