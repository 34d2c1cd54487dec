"""Counts calls of NPBench's kernels in a process's first seconds: ``python -m benchmarks warmup --npbench
PATH``.

A kernel is called again and again in a fresh process with an empty cache folder.  The table has, for some
times since the process could have made its first call with NumPy, the calls done by then in multiples of
those that NumPy does in that time; imports, planning and compilation are counted.  A call under way counts
by the part of it that has passed.  In geometric means, less than a thousandth counts as that.

NumPy's process and the other follow one another in each round, in alternating order, and figures are medians
of rounds.  ``--peers`` adds JAX and Numba where they are installed, each with the version of the checkout
that has done most by the last of the times.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .document import Arguments, Telling, write_json
from .measure import PAUSE, busy, described, machine, with_bytecode
from .npbench_suite import Benchmark, asked_for

__all__ = ["MARKS", "done_by", "main"]

MARKS = (0.5, 1.0, 2.0, 4.0)  # seconds
PEERS = ("jax", "numba")
_BASE = 2.0  # seconds of calls of NumPy from which its time of a call is taken
_ROOT = Path(__file__).resolve().parents[1]


def done_by(mark: float, before: float, times: Sequence[float]) -> float:
    """Return the calls done until the time ``mark``, of which the first begins after ``before`` seconds."""
    passed, calls = before, 0.0
    for one in times:
        if passed + one > mark:
            return calls + max(mark - passed, 0.0) / one
        passed += one
        calls += 1
    return calls * mark / passed  # calls ended before the time, as there were too many to be worth more


def _process(
    bench: Benchmark, args: argparse.Namespace, name: str, ending: str, seconds: float
) -> dict[str, Any]:
    """Run `warmup_worker` in a new process; return its answer, or the error as ``wrong``."""
    words = [str(bench.suite), bench.name, args.size, name, ending, str(seconds)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        env = {**os.environ, "PYTHONPATH": str(_ROOT), "DCARRAY_CACHE_DIR": folder}
        time.sleep(PAUSE)
        try:
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.warmup_worker", *words], capture_output=True, text=True,
                env=env, cwd=folder, timeout=args.limit,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"wrong": f"not ready after {args.limit:g} s"}
    if done.returncode:
        return {"wrong": (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]}
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _work(bench: Benchmark, args: argparse.Namespace, name: str, ending: str) -> dict[str, Any]:
    """Return medians over rounds: calls done by each time, NumPy's time of a call, the last call's ratio."""
    rounds: list[tuple[list[float], float, float]] = []
    for turn in range(args.rounds):
        found: dict[str, dict[str, Any]] = {}
        for one in ("numpy", name) if turn % 2 == 0 else (name, "numpy"):
            plain = one == "numpy"
            found[one] = _process(bench, args, one, one if plain else ending, _BASE if plain else MARKS[-1])
            if found[one]["wrong"]:
                return {"wrong": f"{one}: {found[one]['wrong']}"}
        calls = found["numpy"]["times"]
        base = statistics.median(calls[1:] or calls)
        before, times = found[name]["before"], found[name]["times"]
        work = [done_by(mark, before, times) * base / mark for mark in MARKS]
        rounds.append((work, base, base / times[-1]))
    return {
        "work": [statistics.median(column) for column in zip(*(work for work, _, _ in rounds), strict=True)],
        "numpy": statistics.median(base for _, base, _ in rounds),
        "last": statistics.median(last for _, _, last in rounds),
        "version": ending,
        "wrong": "",
    }


def _best(bench: Benchmark, args: argparse.Namespace, name: str) -> dict[str, Any]:
    """Return the figures of the version with the most calls by the last time, or an error."""
    tried = [_work(bench, args, name, ending) for ending in bench.endings(name)]
    right = [told for told in tried if not told["wrong"]]
    if right:
        return max(right, key=lambda told: float(told["work"][-1]))
    return tried[0] if tried else {"wrong": "the checkout has no version"}


def _line(bench: str, name: str, told: Mapping[str, Any]) -> str:
    if told["wrong"]:
        return f"{bench:<26}{name:<10}{told['wrong']}"
    work = "".join(f"{value:>9.2f}" for value in told["work"])
    version = "" if name == "dcarray" else f"  {told['version']}"
    return f"{bench:<26}{name:<10}{1e3 * told['numpy']:>9.1f}{work}{told['last']:>11.1f}{version}"


def _means(rows: Mapping[str, Mapping[str, Mapping[str, Any]]], name: str) -> str:
    """Return one framework's geometric means at each time, over the kernels with a right result."""
    right = [row[name]["work"] for row in rows.values() if not row[name]["wrong"]]
    if not right:
        return f"{name}: no kernel"
    told = []
    for mark, column in zip(MARKS, zip(*right, strict=True), strict=True):
        mean = math.exp(statistics.fmean(math.log(max(value, 1e-3)) for value in column))
        told.append(f"{mark:g} s: {mean:.2f} ({sum(value < 0.95 for value in column)} below 0.95)")
    return f"{name}, geometric means of {len(right)} kernels: " + ", ".join(told)


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = Arguments("warmup", __doc__)
    parser.add_argument("names", nargs="*", help="only kernels whose name holds one of these words")
    parser.add_argument(
        "--npbench", type=Path, default=os.environ.get("NPBENCH"), metavar="PATH",
        help="a checkout of spcl/npbench (default: $NPBENCH)",
    )  # fmt: skip
    parser.add_argument("--size", default="M", help="S, M, L or paper")
    parser.add_argument("--peers", action="store_true", help="also JAX and Numba")
    parser.add_argument("--busy", action="store_true", help="beside two processes that are busy all the time")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--limit", type=float, default=120.0, metavar="SECONDS", help="longest time of a process"
    )
    args = parser.parse_args(argv)
    if args.rounds < 1:
        parser.error("--rounds: at least one")
    args.chosen = [b for b in asked_for(parser, args.npbench, ",".join(args.names)) if args.size in b.sizes]
    return args


def main(argv: Sequence[str]) -> int:
    """Print the table; return exit status 1 if a result of dcarray is wrong or missing, else 0."""
    args, tell = _arguments(argv), Telling()
    names = ["dcarray"]
    for peer in PEERS if args.peers else ():
        if importlib.util.find_spec(peer):
            names.append(peer)
        else:
            tell(f"left out: {peer} is not installed")
    with_bytecode()
    here = machine()
    tell(described(here))
    tell(f"NPBench, size {args.size}, beside {2 if args.busy else 0} busy processes: calls done by a time,")
    tell(f"in multiples of NumPy's; medians of {args.rounds} rounds; the last call's times as fast\n")
    marks = "".join(f"{f'{mark:g} s':>9}" for mark in MARKS)
    tell(f"{'kernel':<26}{'':<10}{'NumPy, ms':>9}{marks}{'last call':>11}")
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    with busy(2 if args.busy else 0):
        for bench in args.chosen:
            rows[bench.name] = {}
            for name in names:
                rows[bench.name][name] = _best(bench, args, name)
                tell(_line(bench.name, name, rows[bench.name][name]))
    tell("")
    for name in names:
        tell(_means(rows, name))
    told = {"machine": here, "size": args.size, "busy": args.busy, "marks": MARKS, "kernels": rows}
    write_json(args.json, told)
    flags = [f"--{flag}" for flag in ("peers", "busy") if getattr(args, flag)]
    command = " ".join(["python -m benchmarks warmup --npbench PATH --size", args.size, *flags])
    tell.write(args.docs, "The first seconds", f"`{command}`.")
    return int(any(row["dcarray"]["wrong"] for row in rows.values()))
