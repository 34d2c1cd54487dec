"""Pythran's own test programs, as they are and accelerated: ``python -m conformance.pythran --suite PATH``.

A program of ``pythran/tests/cases`` has lines ``#bench``: statements that make arguments, and a call.  Each
runs in a process of its own, as it is and with `dcarray.accelerate` on its module, with the same arguments
made anew for each call, for some seconds.  The suite is an outside checkout; where Pythran is installed, its
own time is measured, too.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .document import write_section

__all__ = ["Bench", "benches", "main"]

CASES = "pythran/tests/cases"
_LIMIT = 300  # seconds of a process
_CALLS = 2000  # at most


class Bench:
    """A line ``#bench`` of a program.

    Attributes
    ----------
    file : Path
    setup, call : str
        Statements, and an expression.
    """

    def __init__(self, file: Path, line: str) -> None:
        body = ast.parse(line.strip()).body
        self.file = file
        self.setup = "\n".join(ast.unparse(stmt) for stmt in body[:-1])
        self.call = ast.unparse(body[-1])
        self.number = 0

    @property
    def name(self) -> str:
        """The program's name, with a number if it has several such lines."""
        return self.file.stem + (f" {self.number + 1}" if self.number else "")


def benches(suite: Path) -> list[Bench]:
    """Return the lines ``#bench`` of a suite that Python understands."""
    found = []
    for file in sorted((suite / CASES).glob("*.py")):
        lines = [line for line in file.read_text().splitlines() if line.startswith("#bench ")]
        for number, line in enumerate(lines):
            try:
                one = Bench(file, line.removeprefix("#bench "))
                compile(file.read_text(), str(file), "exec")
            except SyntaxError:  # of another version of Python
                continue
            one.number = number
            found.append(one)
    return found


# ---- in a process of its own ------------------------------------------------------------------------
def child(file: str, setup: str, call: str, way: str, seconds: float) -> dict[str, Any]:
    """Call a program again and again; returns the seconds of each call, and what the first one gave."""
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    if way == "dcarray":
        import dcarray

        dcarray.accelerate(module)
    elif way == "pythran":
        import pythran

        built = str(Path(tempfile.mkdtemp()) / f"{module.__name__}.so")
        compiled = pythran.compile_pythranfile(file, output_file=built)
        spec = importlib.util.spec_from_file_location(module.__name__, compiled)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    making, code = compile(setup, "<bench>", "exec"), compile(call, "<bench>", "eval")
    times: list[float] = []
    result = ""
    end = time.perf_counter() + seconds
    while len(times) < _CALLS and (not times or time.perf_counter() < end):
        names = dict(vars(module))
        _seed()
        exec(making, names)
        begun = time.perf_counter()
        found = eval(code, names)
        times.append(time.perf_counter() - begun)
        if len(times) == 1:
            result = shown(found)
    told: dict[str, Any] = {"times": times, "result": result}
    if way == "dcarray":
        report = dcarray.report()
        told["loops"] = report.loops + report.runs
        told["reasons"] = [f"{f.function} ({f.where.rpartition(':')[2]})" for f in report.fallbacks]
    return told


def _seed() -> None:
    import random

    import numpy as np

    random.seed(1)
    np.random.seed(1)


def shown(value: Any) -> str:
    """Return the text of a result, whose floats have nine digits."""
    import numpy as np

    if isinstance(value, np.ndarray):
        parts = (
            [float(abs(value[np.isfinite(value)]).sum())] if value.dtype.kind in "fc" else [value.tolist()]
        )
        return f"{value.dtype} {value.shape} {[shown(one) for one in parts]}"
    if isinstance(value, float | np.floating):
        return f"{value:.9g}"
    if isinstance(value, complex | np.complexfloating):
        return f"{value.real:.9g} {value.imag:.9g}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(shown, value))}]"
    return repr(value)


# ---- the table --------------------------------------------------------------------------------------
def run(bench: Bench, way: str, seconds: float) -> dict[str, Any] | str:
    """Return what `child` gives in a process with an empty cache, or why there is nothing."""
    words = [
        sys.executable,
        "-m",
        "conformance.pythran",
        "--child",
        str(bench.file),
        bench.setup,
        bench.call,
        way,
    ]
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [*words, str(seconds)], capture_output=True, text=True, timeout=_LIMIT,
                env={**os.environ, "DCARRAY_CACHE_DIR": folder},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"takes more than {_LIMIT} s"
    try:
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return (done.stderr.strip().splitlines() or ["no output"])[-1][:120]
    return found


def row(bench: Bench, seconds: float, pythran: bool) -> dict[str, Any]:
    """Return the figures of a program."""
    plain = run(bench, "plain", seconds)
    if isinstance(plain, str):
        return {"name": bench.name, "skipped": plain}
    ours = run(bench, "dcarray", seconds)
    if isinstance(ours, str):
        return {"name": bench.name, "right": False, "reasons": [ours]}
    usual, settled = statistics.median(plain["times"]), ours["times"][len(ours["times"]) // 2 :]
    found: dict[str, Any] = {
        "name": bench.name,
        "right": plain["result"] == ours["result"],
        "milliseconds": usual * 1e3,
        "first": plain["times"][0] / ours["times"][0],
        "settled": usual / statistics.median(settled),
        "loops": ours["loops"],
        "reasons": ours["reasons"][:3],
    }
    if pythran:
        theirs = run(bench, "pythran", seconds)
        if not isinstance(theirs, str):
            found["pythran"] = usual / statistics.median(theirs["times"])
    return found


def _mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def text(rows: list[dict[str, Any]]) -> str:
    """Return the table."""
    known = [one for one in rows if "settled" in one]
    peer = any("pythran" in one for one in known)
    lines = [
        "program | Python, ms | first call | settled |" + " Pythran |" * peer + " left to Python",
        "--- | ---: | ---: | ---: |" + " ---: |" * peer + " ---",
    ]
    for one in known:
        theirs = f" {one['pythran']:.2f} |" if "pythran" in one else " |" * peer
        reasons = "".join(one["reasons"][:1]) if one["right"] else "**another result**"
        lines.append(
            f"{one['name']} | {one['milliseconds']:.1f} | {one['first']:.2f} | {one['settled']:.2f} |{theirs}"
            f" {reasons}"
        )
    settled, first = [one["settled"] for one in known], [one["first"] for one in known]
    lines += [
        "",
        f"{len(known)} programs, {sum(one['right'] for one in known)} right. Settled: {_mean(settled):.2f}"
        f" times Python in the geometric mean, {sum(x < 0.95 for x in settled)} below 0.95,"
        f" {sum(x > 1.2 for x in settled)} above 1.2. First calls: {_mean(first):.2f}.",
    ]
    lines += [f"{one['name']}: not run, {one['skipped']}" for one in rows if "skipped" in one]
    return "\n".join(lines)


def main(arguments: list[str] | None = None, told: Callable[[str], None] = print) -> int:
    """The command; gives the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["--child"]:
        file, setup, call, way, seconds = given[1:]
        print(json.dumps(child(file, setup, call, way, float(seconds))))
        return 0
    parser = argparse.ArgumentParser(
        prog="python -m conformance.pythran",
        description="Pythran's test programs, as they are and accelerated.",
    )
    parser.add_argument("names", nargs="*", help="only programs whose name holds one of these words")
    parser.add_argument("--suite", type=Path, required=True, metavar="PATH", help="a checkout of Pythran")
    parser.add_argument("--seconds", type=float, default=3.0, help="of calls of each program")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    parser.add_argument("--docs", type=Path, metavar="FILE", help="write the section of FILE")
    chosen = parser.parse_args(given)
    if not (chosen.suite / CASES).is_dir():
        parser.error(f"{chosen.suite} has no folder {CASES}")
    peer = importlib.util.find_spec("pythran") is not None
    rows = []
    for bench in benches(chosen.suite):
        if chosen.names and not any(name in bench.name for name in chosen.names):
            continue
        rows.append(row(bench, chosen.seconds, peer))
        one = rows[-1]
        right = {True: "right", False: "WRONG", None: "not run"}[one.get("right")]
        figures = f"first {one['first']:.2f}  settled {one['settled']:.2f}" if "settled" in one else ""
        reasons = one.get("skipped", "") or "; ".join(one["reasons"])
        told(f"{one['name']:26s} {right:8s} {figures}  {reasons}")
    told("\n" + text(rows))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(rows, indent=1))
    if chosen.docs is not None:
        head = (
            "`python -m conformance.pythran --suite PATH --docs docs/conformance.md` wrote this section.\n\n"
        )
        write_section(chosen.docs, "Pythran's test programs", head + text(rows))
    return int(any(one.get("right") is False for one in rows))


if __name__ == "__main__":
    sys.exit(main())
