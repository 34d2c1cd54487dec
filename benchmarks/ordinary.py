"""Times ordinary programs on arrays of medium size: ``python -m benchmarks programs``.

Each runs with NumPy, accelerated, and unchanged on arrays of dcarray, alternately, after all compilation.
The table has NumPy's median time and the medians of the ratios within a round.
"""

from __future__ import annotations

import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import dcarray as dc

from .document import GENERATED, Arguments, write_json, write_section
from .measure import described, machine
from .programs import Program, programs

__all__ = ["main", "plain", "timed"]

_LEAST = 5  # rounds, however long they take


def plain(value: Any) -> list[Any]:
    """Return a flat list of the arrays and scalars in a result, evaluated, as NumPy's arrays."""
    if isinstance(value, (tuple, list)):
        return [one for inner in value for one in plain(inner)]
    return [np.asarray(value)]


def _contenders(function: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    def wrapped(*arguments: Any) -> list[Any]:
        given = [dc.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments]
        return plain(function(*given))

    return {"numpy": function, "accelerated": dc.accelerate(function), "wrapped": wrapped}


def timed(program: Program, warm: float, seconds: float) -> dict[str, Any]:
    """Return NumPy's median time in milliseconds, and the median speed-ups of the other ways."""
    name, function, arguments = program
    contenders = _contenders(function)

    def once(run: Callable[..., Any]) -> float:
        given = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        start = time.perf_counter()
        run(*given)
        return time.perf_counter() - start

    end, rounds = time.perf_counter() + warm, 0
    while rounds < _LEAST or time.perf_counter() < end:
        for run in contenders.values():
            once(run)
        rounds += 1
    times: dict[str, list[float]] = {key: [] for key in contenders}
    end = time.perf_counter() + seconds
    while len(times["numpy"]) < _LEAST or time.perf_counter() < end:
        order = list(contenders) if len(times["numpy"]) % 2 else list(contenders)[::-1]
        for key in order:
            times[key].append(once(contenders[key]))
    ratios = {
        key: statistics.median(a / b for a, b in zip(times["numpy"], times[key], strict=True))
        for key in contenders
        if key != "numpy"
    }
    return {"name": name, "numpy": 1e3 * statistics.median(times["numpy"]), **ratios}


def summary(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield sentences that summarise all rows."""
    for key in ("accelerated", "wrapped"):
        mean = math.exp(statistics.fmean(math.log(row[key]) for row in rows))
        below = sum(row[key] < 0.95 for row in rows)
        yield f"{key}: geometric mean {mean:.2f}, {below} of {len(rows)} below 0.95"


def section(here: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the document's section with the table, in Markdown."""
    out = [
        GENERATED,
        "",
        f"`python -m benchmarks programs`: {described(here)}.  Times as fast as NumPy, medians.",
        "",
        *(f"* {sentence}" for sentence in summary(rows)),
        "",
        "| program | NumPy | accelerated | wrapped |",
        "|---|---:|---:|---:|",
    ]
    for row in rows:
        figures = f"{row['numpy']:.2f} ms | {row['accelerated']:.2f} | {row['wrapped']:.2f}"
        out.append(f"| {row['name']} | {figures} |")
    return "\n".join(out)


def main(arguments: list[str]) -> int:
    """Print the table; return exit status 0, even if NumPy is faster."""
    parser = Arguments("programs", __doc__, "programs")
    parser.add_argument("--scale", type=float, default=1.0, help="times the usual numbers of elements")
    parser.add_argument("--warm", type=float, default=2.0, help="seconds of calls that do not count")
    parser.add_argument("--seconds", type=float, default=1.5, help="seconds of calls that do")
    args = parser.parse_args(arguments)
    chosen = [program for program in programs(args.scale) if args.only in program[0]]
    if not chosen:
        parser.error(f"no program has {args.only!r} in its name")
    warnings.simplefilter("ignore")
    here = machine()
    print(described(here))
    print(f"{'times as fast as NumPy':<24}{'NumPy, ms':>12}{'accelerated':>14}{'wrapped':>10}")
    rows = []
    for program in chosen:
        row = timed(program, args.warm, args.seconds)
        rows.append(row)
        figures = f"{row['numpy']:>12.2f}{row['accelerated']:>14.2f}{row['wrapped']:>10.2f}"
        print(f"{row['name']:<24}{figures}", flush=True)
    for sentence in summary(rows):
        print(sentence)
    write_json(args.json, {"machine": here, "rows": rows})
    write_section(args.docs, "Ordinary programs", section(here, rows))
    return 0
