"""Runs NPBench on a device, with other frameworks for it: a part of ``python -m benchmarks gpu``.

Each benchmark has a process (`npbench_device_worker`) in which the frameworks run alternately.  While one
process uses the device, the next ones create their inputs.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import math
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .npbench_suite import SCALAR, Benchmark, asked_for

PEERS = {"numpy": 0.0, "cupy": 3.75, "jax": 0.0}
"""The peers by name, and how many times their speed is aimed at in the geometric mean."""
NONE_BELOW = 0.95
TURN = 0.1  # seconds
PREPARED = max(3, (os.cpu_count() or 4) // 2)  # processes that make their inputs meanwhile

_ROOT = Path(__file__).resolve().parents[1]


def absent(device: str) -> dict[str, str]:
    """Return the peers that cannot be compared on a device, with the reason."""
    found = {}
    for name in PEERS:
        if name == "numpy":
            continue
        if not device.startswith("cuda"):
            found[name] = f"does not use {device}"
        elif importlib.util.find_spec(name) is None:
            found[name] = "not installed"
    return {
        **found,
        "torch.compile": "NPBench has no version for it",
        "cupy.fuse": "NPBench has no version for it",
    }


class Process:
    """A process that runs `npbench_device_worker`, with its output so far and time limit."""

    def __init__(self, bench: Benchmark, names: Sequence[str], args: argparse.Namespace, folder: str) -> None:
        self.bench = bench
        words = [str(bench.suite), bench.name, args.size, ",".join(names), str(args.rounds), str(TURN)]
        env = {
            **os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")]),
            "DCARRAY_DEVICE": args.device, "DCARRAY_CACHE_DIR": folder,
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        }  # fmt: skip
        command = [sys.executable, "-m", "benchmarks.npbench_device_worker", *words]
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True
        )
        self._lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._last = ""
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._listen, daemon=True).start()

    def _read(self) -> None:
        assert self._child.stdout
        for line in self._child.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def _listen(self) -> None:
        assert self._child.stderr
        for line in self._child.stderr:
            self._last = line.strip() or self._last

    def _next(self, end: float) -> dict[str, Any] | None:
        try:
            return self._lines.get(timeout=max(end - time.monotonic(), 0.0))
        except queue.Empty:
            self._last = "not ready in time"
            return None

    def measured(self, names: Sequence[str], limit: float) -> dict[str, dict[str, Any]]:
        """Let the process use the device; return for each framework ``seconds``, or what is ``wrong``.

        It is ended after ``limit`` seconds.
        """
        assert self._child.stdin
        told: dict[str, dict[str, Any]] = {}
        turns: dict[str, list[float]] = {}
        if self._next(time.monotonic() + 10 * limit) is not None:
            self._child.stdin.write("\n")
            self._child.stdin.flush()
            end = time.monotonic() + limit
            while (event := self._next(end)) is not None:
                if "times" in event:
                    turns.setdefault(event["framework"], []).append(statistics.median(event["times"]))
                else:
                    told[event.pop("framework")] = event
        self._child.kill()
        self._child.wait()
        for name in names:
            told.setdefault(name, {"wrong": self._last or "no answer"})
            if name in turns:
                told[name]["seconds"] = statistics.median(turns[name])
        return told


def run(args: argparse.Namespace, tell: Callable[[str], None]) -> int:
    """Run the benchmarks of ``args.suite``; return how many results of dcarray are wrong or missing."""
    chosen = asked_for(argparse.ArgumentParser(prog="python -m benchmarks gpu"), args.suite, args.only)
    chosen = [bench for bench in chosen if args.size in bench.sizes]
    missing = absent(args.device)
    others = [name for name in args.against.split(",") if name and name not in missing]
    names = [*(n for n in others if n == "numpy"), "device", *(n for n in others if n != "numpy")]
    tell(f"\nNPBench, size {args.size}: how many times as fast as each, arrays on {args.device} beforehand")
    for name, reason in missing.items():
        tell(f"  {name} is left out: {reason}")
    tell(f"  {'benchmark':<26}{'ms':>10}" + "".join(f"{name:>10}" for name in others))
    rows: dict[str, dict[str, float]] = {}
    wrong = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        waiting: list[Process] = []
        rest = iter(chosen)
        for _ in chosen:
            more = itertools.islice(rest, PREPARED + 1 - len(waiting))
            waiting += [Process(bench, names, args, folder) for bench in more]
            process = waiting.pop(0)
            told = process.measured(names, args.limit)
            wrong += _row(process.bench.name, told, others, rows, tell)
    for title, names_of in (("whole-array codes", rows.keys() - SCALAR), ("all", rows.keys())):
        tell(f"  geometric mean, {title}: " + _means({name: rows[name] for name in names_of}, others))
    return wrong


def _row(
    name: str,
    told: Mapping[str, Mapping[str, Any]],
    others: Sequence[str],
    rows: dict[str, dict[str, float]],
    tell: Callable[[str], None],
) -> int:
    """Print the line of one benchmark; return 1 if its result is wrong or missing, else 0."""
    ours = told["device"]
    notes = [f"{peer}: {told[peer]['wrong']}" for peer in others if "wrong" in told[peer]]
    if "seconds" not in ours:
        tell(f"  {name:<26}WRONG: {ours['wrong']}")
        return 1
    rows[name] = {peer: told[peer].get("seconds", 0.0) / ours["seconds"] for peer in others}
    cells = "".join(f"{value:10.2f}" if value else f"{'-':>10}" for value in rows[name].values())
    tell(f"  {name:<26}{ours['seconds'] * 1e3:10.3f}{cells}  {'; '.join(notes)[:120]}".rstrip())
    return 0


def _means(rows: Mapping[str, Mapping[str, float]], others: Sequence[str]) -> str:
    """Return text with the geometric means of benchmarks, and those below the target."""
    parts = []
    for name in others:
        known = {bench: row[name] for bench, row in rows.items() if row[name]}
        if not known:
            continue
        mean = math.exp(sum(map(math.log, known.values())) / len(known))
        below = sorted(bench for bench, value in known.items() if value < NONE_BELOW)
        aim = f" (aim {PEERS[name]:g})" if PEERS.get(name) else ""
        parts.append(f"{name} {mean:.2f}{aim}, {len(below)} of {len(known)} below {NONE_BELOW}")
    return "; ".join(parts) or "none"
