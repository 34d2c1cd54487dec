"""Figures of a run of NPBench for tables: means, speed-ups, and words for failures."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from .npbench_suite import SCALAR

#: Benchmark, framework, and what the framework made of it (see `npbench.measure`).
Rows = Mapping[str, Mapping[str, Mapping[str, Any]]]

#: Below this share of NumPy's speed a benchmark is told among those that lose.
LOSS = 0.95

NAMES = {"numpy": "NumPy", "numba": "Numba", "jax": "JAX", "pythran": "Pythran", "dace": "DaCe"}
SETS = {"all": frozenset[str](), "whole-array": SCALAR}  # what they leave out
_MARKS = {"no version": "none", "output": "wrong", "not ready": "too long"}  # beginnings of what is wrong


def frameworks(rows: Rows) -> list[str]:
    """Return the frameworks compared with NumPy, in the order of the run."""
    return list(dict.fromkeys(name for row in rows.values() for name in row if name != "numpy"))


def kinds(rows: Rows) -> dict[str, Rows]:
    """Return the benchmarks by kind: whole-array statements, or loops over elements or short rows."""
    parts = {
        "whole-array statements": {name: row for name, row in rows.items() if name not in SCALAR},
        "loops over elements or short rows": {name: row for name, row in rows.items() if name in SCALAR},
    }
    return {kind: part for kind, part in parts.items() if part}


def verdict(told: Mapping[str, Any]) -> str:
    """Return a word for the outcome of one framework and benchmark if there is no speed-up."""
    if not told:
        return "left out"
    if "wrong" not in told:
        return "right"
    return next((mark for begin, mark in _MARKS.items() if told["wrong"].startswith(begin)), "failed")


def speedups(rows: Rows, names: Sequence[str]) -> dict[str, dict[str, list[float]]]:
    """Return the speed-ups of each framework, for all benchmarks and for those in whole-array statements.

    If there are several peers, also those of the best peer for each benchmark.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for title, left_out in SETS.items():
        kept = [measured(row, names) for name, row in rows.items() if name not in left_out]
        found[title] = {name: [row[name] for row in kept if name in row] for name in names}
        peers = [name for name in names if name not in ("numpy", "dcarray")]
        if len(peers) > 1:
            best = [max((row[p] for p in peers if p in row), default=0.0) for row in kept]
            found[title]["best peer"] = [value for value in best if value]
    return found


def measured(row: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> dict[str, float]:
    return {name: row[name]["speedup"][0] for name in names if "speedup" in row.get(name, {})}


def summary(rows: Rows, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the geometric means of `speedups` as text, each with the number of benchmarks."""
    return {
        title: {
            name: f"{statistics.geometric_mean(values):.2f} of {len(values)}" if values else "-"
            for name, values in found.items()
        }
        for title, found in speedups(rows, names).items()
    }


def first_calls(rows: Rows) -> str:
    """Return how many uncached first calls take at most 1.1 times NumPy's time plus 20 ms, and the others."""
    pairs = {
        name: (row["numpy"]["first"], row["dcarray"]["first"])
        for name, row in rows.items()
        if "first" in row["numpy"] and "first" in row.get("dcarray", {})
    }
    late = {name: ours for name, (plain, ours) in pairs.items() if ours > 1.1 * plain + 0.02}
    which = ", ".join(f"{name} {ours:.3f} s instead of {pairs[name][0]:.3f} s" for name, ours in late.items())
    told = f"first calls within 1.1 x NumPy's time and 20 ms: {len(pairs) - len(late)} of {len(pairs)}"
    return f"{told}; not {which}" if late else told


def remarks(row: Mapping[str, Mapping[str, Any]], name: str) -> list[str]:
    """Return the notes of a run about one framework and one benchmark."""
    told = row.get(name, {})
    found = [told["wrong"]] if "wrong" in told else []
    if name == "dcarray":
        found += told.get("notes", []) + sorted(_warnings(told) - _warnings(row["numpy"]))
        if not told.get("warm", {}).get("settled", True):
            found.append("still compiling or interpreting when the turns began")
    return found


def _warnings(told: Mapping[str, Any]) -> set[str]:
    return {text for version in told.get("versions", []) for text in version.get("warnings", [])}


def ratio(value: float) -> str:
    return f"{value:.1g}" if value < 0.01 else f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def time_text(plain: Mapping[str, Any]) -> str:
    """Return NumPy's time as text with a unit."""
    if "wrong" in plain:
        return verdict(plain)
    seconds = plain["seconds"][0] if "seconds" in plain else plain["second"]
    scale, unit = (1, "s") if seconds >= 1 else (1e3, "ms") if seconds >= 1e-3 else (1e6, "us")
    value = seconds * scale
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"


def short(text: str) -> str:
    """Return a text with paths shortened to file names."""
    return re.sub(r"(?<![\w.])(?:~|[A-Za-z]:)?/(?:[^\s/:'\"`]+/)+", "", text)


def interval(told: Mapping[str, Any]) -> str:
    middle, low, high = told["speedup"]
    return f"{ratio(middle)} [{ratio(low)}, {ratio(high)}]"
