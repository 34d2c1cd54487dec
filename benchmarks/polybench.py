"""Times PolyBench's fifteen kernels of dense linear algebra: ``python -m benchmarks polybench``.

Each kernel as NumPy statements and as explicit loops, both accelerated, is compared with the statements under
NumPy, alternately; results are checked against NumPy's first.  ``--lists SCALE`` also runs the loops on lists
of lists, with sizes scaled by that factor, for which NumPy's statements are timed again.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import dcarray as dc

from .document import GENERATED, Arguments, write_json, write_section
from .measure import described, machine
from .polybench_kernels import KERNELS, Kernel

__all__ = ["agree", "main", "timed"]

TOLERANCE = 1e-9
"""Of the largest value of an array: sums are added up in another order."""


def agree(got: Sequence[Any], want: Sequence[Any]) -> bool:
    """Whether arguments after a call are equal, up to rounding, to those after another."""
    for a, b in zip(got, want, strict=True):
        x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        if x.shape != y.shape or not np.allclose(x, y, rtol=0, atol=TOLERANCE * max(np.abs(y).max(), 1)):
            return False
    return True


def _fresh(arguments: Sequence[Any], lists: bool = False) -> list[Any]:
    return [(a.tolist() if lists else a.copy()) if isinstance(a, np.ndarray) else a for a in arguments]


def timed(kernel: Kernel, scale: float, warm: float, rounds: int, lists: bool = False) -> dict[str, Any]:
    """Return NumPy's median time in milliseconds, and the median speed-ups of the styles."""
    arguments = kernel.arguments(scale)
    jobs: dict[str, Callable[..., Any]] = {
        "numpy": kernel.statements,
        "statements": dc.accelerate(kernel.statements),
        "lists" if lists else "loops": dc.accelerate(kernel.loops),
    }

    def once(name: str) -> tuple[float, list[Any]]:
        given = _fresh(arguments, name == "lists")
        start = time.perf_counter()
        jobs[name](*given)
        return time.perf_counter() - start, given

    _, want = once("numpy")
    wrong = []
    for name in jobs:
        with dc.options(
            jit="eager"
        ):  # plans are ready before the first run: Python would take minutes for it
            _, got = once(name)
        end = time.perf_counter() + (warm if name != "numpy" else 0)
        for _ in range(50):
            _, got = once(name)
            if time.perf_counter() > end:
                break
        if not agree(got, want):
            wrong.append(name)
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name in jobs:
            time.sleep(0.1)  # idle threads of BLAS keep a core busy
            times[name].append(once(name)[0])
    row: dict[str, Any] = {
        "name": kernel.name,
        "numpy": 1e3 * statistics.median(times["numpy"]),
        "wrong": wrong,
    }
    for name in jobs:
        if name != "numpy":
            row[name] = statistics.median(a / b for a, b in zip(times["numpy"], times[name], strict=True))
    return row


def section(here: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the document's section with the table, in Markdown."""
    out = [
        GENERATED,
        "",
        f"`python -m benchmarks polybench`: {described(here)}.  Times as fast as NumPy's "
        "statements, medians.",
        "",
        "| kernel | NumPy | statements | loops | the paper's |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        figures = f"{row['numpy']:.1f} ms | {row['statements']:.2f} | {row['loops']:.2f} | {row['least']}"
        out.append(f"| {row['name']} | {figures} |")
    return "\n".join(out)


def main(arguments: list[str]) -> int:
    """Print the table; return exit status 1 if a result is wrong, else 0."""
    parser = Arguments("polybench", __doc__, "kernels")
    parser.add_argument("--scale", type=float, default=1.0, help="times the usual sizes (default: 1)")
    parser.add_argument("--warm", type=float, default=2.0, help="seconds of calls that do not count")
    parser.add_argument("--rounds", type=int, default=7, help="rounds that do")
    parser.add_argument(
        "--lists", type=float, metavar="SCALE", help="also on lists, at this part of the sizes"
    )
    args = parser.parse_args(arguments)
    chosen = [kernel for kernel in KERNELS if args.only in kernel.name]
    if not chosen or args.scale <= 0 or args.rounds < 1 or (args.lists is not None and args.lists <= 0):
        parser.error("there is no such kernel" if not chosen else "scales and rounds are positive")
    here = machine()
    print(described(here))
    print(f"{'times as fast as NumPy':<24}{'NumPy, ms':>12}{'statements':>14}{'loops':>10}{'at least':>10}")
    rows = []
    for kernel in chosen:
        row = timed(kernel, args.scale, args.warm, args.rounds)
        row["least"] = kernel.least
        if args.lists is not None:
            small = timed(kernel, args.lists, args.warm, args.rounds, lists=True)
            row["lists"], row["wrong"] = small["lists"] / small["statements"], row["wrong"] + small["wrong"]
        rows.append(row)
        text = f"{row['numpy']:>12.2f}{row['statements']:>14.2f}{row['loops']:>10.2f}{row['least']:>10}"
        text += f"   lists: {row['lists']:.3f} of our statements" if "lists" in row else ""
        text += f"   WRONG: {', '.join(row['wrong'])}" if row["wrong"] else ""
        print(f"{row['name']:<24}{text}", flush=True)
    write_json(args.json, {"machine": here, "rows": rows})
    write_section(args.docs, "PolyBench", section(here, rows))
    return 1 if any(row["wrong"] for row in rows) else 0
