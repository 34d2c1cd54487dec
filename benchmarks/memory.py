"""Measures the peak memory of NPBench's benchmarks: ``python -m benchmarks memory --suite PATH --size M``.

Each framework runs each benchmark in a separate process.  The figure is the peak of resident memory minus the
resident memory after the creation of inputs and before the first call: for the first call, and for one more
after all compilation.  Memory of libraries and caches that are loaded in between is therefore included.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .document import GENERATED, write_section
from .measure import described, machine
from .npbench_suite import asked_for

MB = 1e6
_ROOT = Path(__file__).resolve().parents[1]


def measured(suite: Path, bench: str, size: str, framework: str, seconds: float) -> dict[str, Any]:
    """Run one process; return the bytes of ``inputs``, and the peaks of the ``first`` and a ``settled``
    call."""
    words = [
        sys.executable,
        "-m",
        "benchmarks.memory_worker",
        str(suite),
        bench,
        size,
        framework,
        str(seconds),
    ]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        env = {**os.environ, "PYTHONPATH": str(_ROOT), "DCARRAY_CACHE_DIR": folder}
        done = subprocess.run(words, capture_output=True, text=True, env=env, cwd=folder)
    if done.returncode:
        return {"wrong": (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]}
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def line(name: str, row: Mapping[str, Mapping[str, Any]]) -> str:
    """Return one benchmark's line of the table."""
    wrong = [f"{who}: {told['wrong']}" for who, told in row.items() if "wrong" in told]
    if wrong:
        return f"{name:<26}  {'; '.join(wrong)}"
    text = f"{name:<26}{row['numpy']['inputs'] / MB:10.1f}"
    for call in ("first", "settled"):
        theirs, ours = row["numpy"][call] / MB, row["dcarray"][call] / MB
        text += f"{theirs:12.1f}{ours:10.1f}{ours - theirs:+10.1f}"
    return text


def summary(rows: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Return sentences with the number of benchmarks below NumPy's peak, and those above it by excess."""
    good = {name: row for name, row in rows.items() if not any("wrong" in told for told in row.values())}
    parts = []
    for call in ("first", "settled"):
        above = {n: r["dcarray"][call] - r["numpy"][call] for n, r in good.items()}
        worst = sorted([n for n in above if above[n] > 0], key=lambda n: -above[n])
        told = ", ".join([f"{n} {above[n] / MB:+.1f}" for n in worst])
        parts.append(
            f"{call} call: {len(good) - len(worst)} of {len(good)} not above NumPy's"
            + f"; {told}" * bool(told)
        )
    return "\n".join(parts)


def section(here: Mapping[str, Any], rows: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Return the document's section: the table, and the benchmarks above NumPy's peak."""
    lines = [
        GENERATED,
        "",
        f"`python -m benchmarks memory --suite PATH --json FILE`: {described(here)}.  MB above",
        "the process with its inputs, at the highest: in the first call, and in one more when nothing is",
        "compiled any more.",
        "",
        "| benchmark | inputs | first: NumPy | dcarray | more | settled: NumPy | dcarray | more |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, row in sorted(rows.items()):
        cells = [f"{row['numpy']['inputs'] / MB:.1f}"]
        for call in ("first", "settled"):
            theirs, ours = row["numpy"][call] / MB, row["dcarray"][call] / MB
            cells += [f"{theirs:.1f}", f"{ours:.1f}", f"{ours - theirs:+.1f}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n\n" + summary(rows).replace("\n", "\n\n")


def main(argv: Sequence[str]) -> int:
    """Run the benchmarks and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks memory", description=__doc__)
    parser.add_argument("--suite", type=Path, default=os.environ.get("NPBENCH"), metavar="PATH",
                        help="a checkout of spcl/npbench (default: $NPBENCH)")  # fmt: skip
    parser.add_argument("--size", default="S", help="S, M, L or paper")
    parser.add_argument("--only", default="", metavar="WORD", help="as of npbench")
    parser.add_argument("--warm", type=float, default=10.0, metavar="SECONDS", help="longest time to warm up")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="add the bytes to those of other runs there"
    )
    parser.add_argument("--docs", type=Path, metavar="FILE",
                        help="write what is in --json into a section, as of docs/performance.md")  # fmt: skip
    args = parser.parse_args(argv)
    chosen = asked_for(parser, args.suite, args.only)
    if sys.platform != "linux":
        parser.error("the high-water mark is read from /proc: on Linux only")
    if args.docs and not args.json:
        parser.error("--docs writes what is in --json")
    here = machine()
    before = json.loads(args.json.read_text()) if args.json and args.json.exists() else {"size": args.size}
    if before["size"] != args.size:
        parser.error(f"{args.json} has figures of size {before['size']}")
    known: dict[str, dict[str, dict[str, Any]]] = before.get("rows", {})
    print(f"{described(here)}\nNPBench, size {args.size}: MB above the process with its inputs\n")
    print(f"{'benchmark':<26}{'inputs':>10}" + f"{'NumPy':>12}{'dcarray':>10}{'':>10}" * 2)
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    for bench in chosen:
        if args.size in bench.sizes:
            rows[bench.name] = {
                name: measured(bench.suite, bench.name, args.size, name, args.warm)
                for name in ("numpy", "dcarray")
            }
            print(line(bench.name, rows[bench.name]), flush=True)
            if args.json and not any("wrong" in told for told in rows[bench.name].values()):
                known[bench.name] = rows[bench.name]
                told = {"machine": here, "size": args.size, "rows": known}
                args.json.write_text(json.dumps(told, indent=1) + "\n")
    print("\n" + summary(rows))
    if args.docs:
        write_section(args.docs, f"Peak memory, size {args.size}", section(here, known))
    return int(any("wrong" in told for row in rows.values() for told in row.values()))
