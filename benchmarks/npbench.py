"""Runs NPBench, from a checkout: ``python -m benchmarks npbench --suite PATH --against numpy,numba``.

Every framework runs every benchmark in a separate process, and the processes run alternately.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .measure import described, interval, machine
from .npbench_figures import first_calls, frameworks, remarks, summary, verdict
from .npbench_report import publish
from .npbench_suite import Benchmark, asked_for

_ROOT = Path(__file__).resolve().parents[1]


class Process:
    """A process that runs `npbench_worker`, and the pipes to it; its caches are in ``folder``."""

    def __init__(
        self, bench: Benchmark, framework: str, python: str, folder: str, args: argparse.Namespace
    ) -> None:
        words = [str(bench.suite), bench.name, args.size, framework]
        command = [python, "-m", "benchmarks.npbench_worker", *words]
        env = {**os.environ, "PYTHONPATH": str(_ROOT), "DCARRAY_CACHE_DIR": folder}
        if os.path.dirname(python):  # tools that are installed beside it, as Pythran's compiler
            env["PATH"] = os.path.dirname(python) + os.pathsep + env.get("PATH", "")
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env,
            cwd=folder,
        )  # fmt: skip

    def ask(self, action: str, argument: object, limit: float) -> dict[str, Any]:
        """Send a command; return the answer, or ``{"wrong": ...}`` if the process ends or takes too long."""
        assert self._child.stdin and self._child.stdout
        try:
            self._child.stdin.write(json.dumps([action, argument]).encode() + b"\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            return {"wrong": f"process ended with status {self._child.wait()}"}
        if not select.select([self._child.stdout], [], [], limit)[0]:
            self.close()
            return {"wrong": f"not ready after {limit:g} s"}
        line = self._child.stdout.readline()
        if not line:
            return {"wrong": f"process ended with status {self._child.wait()}"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        self._child.kill()
        self._child.communicate()


def measure(
    bench: Benchmark, frameworks: Sequence[str], pythons: Mapping[str, str], args: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """Return each framework's results for one benchmark; the first framework is NumPy."""
    found: dict[str, dict[str, Any]] = {}
    running: dict[str, Process] = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        reference = os.path.join(folder, "numpy")
        again = _firsts(bench, frameworks, pythons, args)
        try:
            for name in frameworks:
                process = Process(bench, name, pythons.get(name, sys.executable), folder, args)
                running[name] = process
                found[name] = process.ask("first", reference, _limit(args, name))
                if "first" in found[name]:
                    found[name]["first"] = statistics.median([found[name]["first"], *again[name]])
                if "wrong" not in found[name] and args.rounds:
                    found[name]["warm"] = process.ask("warm", args.warm, args.limit)
                    if name != "numpy":
                        checked = process.ask("check", reference, args.limit)
                        found[name].update({k: v for k, v in checked.items() if v})
                if "wrong" in found[name]:
                    running.pop(name).close()
                    if name == "numpy":
                        return found
            turns: dict[str, list[list[float]]] = {name: [] for name in running}
            worked: dict[str, list[float]] = {name: [] for name in running}
            for _ in range(args.rounds):
                for name in list(running):
                    time.sleep(args.pause)  # until threads of the one before, which spin for work, sleep too
                    told = running[name].ask("run", args.turn, args.limit)
                    if "wrong" in told:
                        found[name].update(told)
                        running.pop(name).close()
                    else:
                        turns[name].append(told["times"])
                        worked[name] += told["worked"]
        finally:
            for process in running.values():
                process.close()
    for name in running:
        if turns[name]:
            medians = [statistics.median(times) for times in turns[name]]
            base = [statistics.median(times) for times in turns["numpy"]]
            found[name]["seconds"] = interval(medians)
            # NumPy itself may have been too slow for more turns
            found[name]["speedup"] = interval([a / b for a, b in zip(base, medians, strict=False)])
            found[name]["times"] = turns[name]
            found[name]["worked"] = statistics.median(worked[name])
    return found


def _firsts(
    bench: Benchmark, frameworks: Sequence[str], pythons: Mapping[str, str], args: argparse.Namespace
) -> dict[str, list[float]]:
    """Return the seconds of the first calls in all but one of ``--first`` processes.

    Frameworks run in alternating order: memory that the previous process has just freed is faster to get
    than memory that the system must provide anew.
    """
    found: dict[str, list[float]] = {name: [] for name in frameworks}
    for k in range(args.first - 1):
        for name in reversed(frameworks) if k % 2 == 0 else frameworks:
            found[name].append(_first(bench, name, pythons, args))
    return found


def _limit(args: argparse.Namespace, name: str) -> float:
    """Return the time limit of a framework's first call, in seconds."""
    limit: float = args.skip_above if name == "numpy" else args.limit
    return limit


def _first(bench: Benchmark, name: str, pythons: Mapping[str, str], args: argparse.Namespace) -> float:
    """Return the seconds of the first call in a new process with empty caches."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = Process(bench, name, pythons.get(name, sys.executable), folder, args)
        try:
            told = process.ask("first", os.path.join(folder, "own"), _limit(args, name))
            return float(told.get("first", math.inf))
        finally:
            process.close()


def _cell(told: Mapping[str, Any]) -> str:
    if "speedup" in told:
        middle, low, high = told["speedup"]
        return f"{middle:.2f} [{low:.2f}, {high:.2f}]"
    return verdict(told)


def _print(bench: str, row: Mapping[str, Mapping[str, Any]], frameworks: Sequence[str]) -> None:
    plain, ours = row["numpy"], row.get("dcarray", {})
    if "wrong" in plain:
        print(f"{bench:<26}  left out: NumPy: {plain['wrong']}", flush=True)
        return
    extra = f"{ours['first'] - plain['first']:.3f}" if "first" in ours else ""
    work = f"{ours['worked'] / plain['worked']:.2f}" if "worked" in ours else ""
    seconds = plain["seconds"][0] if "seconds" in plain else plain["second"]
    cells = "".join(f"{_cell(row.get(name, {})):<26}" for name in frameworks)
    print(f"{bench:<26}{seconds:10.5f}{extra:>9}{work:>7}  {cells}", flush=True)
    for name in frameworks:
        for remark in remarks(row, name):
            print(f"    {name}: {remark}", flush=True)


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks npbench", description=__doc__)
    parser.add_argument("--suite", type=Path, default=os.environ.get("NPBENCH"), metavar="PATH",
                        help="a checkout of spcl/npbench (default: $NPBENCH)")  # fmt: skip
    parser.add_argument("--size", default="S", help="S, M, L or paper")
    parser.add_argument("--against", default="numpy,numba,jax", metavar="NAMES",
                        help="NumPy is always among them; others: numba, jax, pythran, dace")  # fmt: skip
    parser.add_argument("--python", action="append", default=[], metavar="NAME=PATH",
                        help="the interpreter of a framework, as dace=/opt/dace/bin/python")  # fmt: skip
    parser.add_argument(
        "--only",
        default="",
        metavar="WORD",
        help="benchmarks whose name holds it, or one of its parts between commas",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything to FILE")
    parser.add_argument("--keep", action="store_true",
                        help="what FILE has of benchmarks that are not run now stays in it")  # fmt: skip
    parser.add_argument(
        "--rounds", type=int, default=9, help="turns of each framework; 0: only check results"
    )
    parser.add_argument("--first", type=int, default=1, metavar="N",
                        help="fresh processes of which the first call is the median")  # fmt: skip
    parser.add_argument(
        "--turn", type=float, default=0.05, metavar="SECONDS", help="length of one turn, at least one call"
    )
    parser.add_argument("--pause", type=float, default=0.2, metavar="SECONDS",
                        help="before a turn: idle threads of OpenBLAS and OpenMP keep a core busy for"
                        " some time (%(default)s)")  # fmt: skip
    parser.add_argument("--warm", type=float, default=20.0, metavar="SECONDS", help="longest time to warm up")
    parser.add_argument(
        "--limit", type=float, default=300.0, metavar="SECONDS", help="longest answer of a framework"
    )
    parser.add_argument("--skip-above", type=float, default=60, metavar="SECONDS",
                        help="leave out benchmarks of which NumPy needs longer for two calls")  # fmt: skip
    parser.add_argument("--from", dest="source", action="append", default=[], type=Path, metavar="FILE",
                        help="what --json wrote, instead of measuring; again for another size")  # fmt: skip
    parser.add_argument("--docs", type=Path, metavar="FILE",
                        help="write the figures into a section, as of docs/performance.md")  # fmt: skip
    args = parser.parse_args(argv)
    if args.source and args.json:
        parser.error("--json is for what is measured, --from measures nothing")
    if args.keep and not args.json:
        parser.error("--keep: give the --json FILE that is to be kept")
    args.chosen = [] if args.source else asked_for(parser, args.suite, args.only)
    args.command = _command(parser, args)
    return args


def _command(parser: argparse.ArgumentParser, args: argparse.Namespace) -> str:
    """Return the command with the options that affect the figures, without paths of this machine."""
    set_here = {k: v for k, v in os.environ.items() if k.startswith("DCARRAY_")}
    set_here.pop("DCARRAY_CACHE_DIR", None)  # the processes have their own
    words = [f"{name}={value}" for name, value in set_here.items()]
    words += ["python -m benchmarks npbench --suite PATH"]
    options = "size against only rounds first turn pause warm limit skip_above"
    for name in options.split():
        value = getattr(args, name)
        if name == "only" and args.keep:
            continue  # the file is of all runs together
        if name in ("size", "against") or value != parser.get_default(name):
            words.append(f"--{name.replace('_', '-')} {value}")
    return " ".join(words + [f"--python {pair.split('=')[0]}=PATH" for pair in args.python])


def _run(args: argparse.Namespace) -> dict[str, Any]:
    """Run the benchmarks, print each when it is done, and return the data for ``--json``."""
    asked = [name for name in args.against.split(",") if name not in ("", "numpy", "dcarray")]
    names = ["numpy", "dcarray", *asked]
    pythons = dict(pair.split("=", 1) for pair in args.python)
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    told: dict[str, Any] = {
        "machine": machine(),
        "command": args.command,
        "size": args.size,
        "rounds": args.rounds,
        "means": {},
        "benchmarks": rows,
    }
    if args.keep and args.json.exists():
        rows.update(_kept(json.loads(args.json.read_text()), told, args.json))
    _head(told, names[1:])
    for bench in args.chosen:
        if args.size in bench.sizes:
            row = rows[bench.name] = measure(bench, names, pythons, args)
            _print(bench.name, row, names[1:])
            told["benchmarks"] = rows = dict(sorted(rows.items()))
            told["means"] = summary(rows, names)
            if args.json:  # each time, so that a run that is cut short leaves what it has
                args.json.write_text(json.dumps(told, indent=1) + "\n")
    return told


def _kept(before: Mapping[str, Any], told: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """Return the benchmarks of an earlier run's file; ValueError unless its options were the same."""
    for what in ("size", "command", "machine"):
        if before[what] != told[what]:
            raise ValueError(f"{file} is of another {what}, {before[what]}, not {told[what]}")
    return dict(before["benchmarks"])


def _head(told: Mapping[str, Any], names: Sequence[str]) -> None:
    print(described(told["machine"]))
    print(
        f"NPBench, size {told['size']}: speed-up over NumPy, median [95% interval] of {told['rounds']} turns"
    )
    print("first: seconds of the first call in a fresh process, nothing cached, less those of NumPy's")
    print("work: dcarray's processor time by NumPy's, of all threads: steadier while others compute\n")
    titles = f"{'benchmark':<26}{'numpy s':>10}{'first':>9}{'work':>7}  "
    print(titles + "".join(f"{name:<26}" for name in names))


def _foot(told: Mapping[str, Any]) -> None:
    rows = told["benchmarks"]
    print("\n" + first_calls(rows))
    for title, mean in summary(rows, ["numpy", *frameworks(rows)]).items():
        print(f"\ngeometric means, {title}: " + ", ".join(f"{name} {value}" for name, value in mean.items()))


def main(argv: Sequence[str]) -> int:
    """Run the benchmarks or read earlier runs; return 1 if a result of dcarray is wrong or missing, else
    0."""
    args = _arguments(argv)
    runs = [json.loads(file.read_text()) for file in args.source]
    if len({told["size"] for told in runs}) < len(runs):
        raise ValueError("several files of one size: a section holds one run")
    for told in runs:
        names = frameworks(told["benchmarks"])
        _head(told, names)
        for bench, row in told["benchmarks"].items():
            _print(bench, row, names)
        _foot(told)
    if not runs:
        start = time.time()
        runs = [_run(args)]
        _foot(runs[0])
        print(f"{time.time() - start:.0f} s")
    publish(runs, args.docs)
    return int(any("wrong" in row.get("dcarray", {}) for told in runs for row in told["benchmarks"].values()))
