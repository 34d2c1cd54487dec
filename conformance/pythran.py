"""Runs Pythran's own test programs as they are and accelerated: ``python -m conformance.pythran``.

A program of ``pythran/tests/cases`` has lines ``#bench``: statements that create arguments, and a call.  Each
runs in a separate process for some seconds, as it is and with `dcarray.accelerate` on its module, with the
same arguments created anew for each call.  The suite is an external checkout; if Pythran is installed, its
compiled program is measured, too.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .in_turns import copied, take_turns

__all__ = ["Bench", "benches", "main"]

CASES = "pythran/tests/cases"
_LIMIT = 300  # seconds of a process
_MARK = "figures: "


class Bench:
    """A line ``#bench`` of a program.

    Attributes
    ----------
    file : Path
    setup, call : str
        The statements that create arguments, and the expression to measure.
    """

    def __init__(self, file: Path, line: str) -> None:
        body = ast.parse(line.strip()).body
        self.file = file
        self.setup = "\n".join(ast.unparse(stmt) for stmt in body[:-1])
        self.call = ast.unparse(body[-1])
        self.number = 0

    @property
    def name(self) -> str:
        """The program's name, with a number from the second such line on."""
        return self.file.stem + (f" {self.number + 1}" if self.number else "")


def benches(suite: Path) -> list[Bench]:
    """Return the lines ``#bench`` of a suite that compile as Python."""
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
class _Call:
    """The call of a line ``#bench`` with the names of a module."""

    def __init__(self, module: Any, setup: str, call: str) -> None:
        self._module = module
        self._setup, self._call = compile(setup, "<bench>", "exec"), compile(call, "<bench>", "eval")
        self._found: Any = None

    def call(self) -> float:
        """Create the arguments, evaluate the call once, and return its seconds."""
        names = dict(vars(self._module))
        exec(self._setup, names)
        begun = time.perf_counter()
        self._found = eval(self._call, names)
        return time.perf_counter() - begun

    def result(self) -> Any:
        """Return the result of the last call."""
        return copied(self._found)


def _loaded(file: Path, name: str = "") -> Any:
    """Return a new module of a file: each call executes the file again."""
    spec = importlib.util.spec_from_file_location(name or file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _figures(seconds: float, file: str, setup: str, call: str) -> dict[str, Any]:
    """Return the times of a program, run in several ways in turn; see `take_turns`."""
    import dcarray

    plain, accelerated = _loaded(Path(file)), _loaded(Path(file))
    dcarray.accelerate(accelerated)

    def compiled() -> _Call:
        import pythran  # type: ignore[import-not-found]

        built = str(Path(tempfile.mkdtemp()) / f"{plain.__name__}.so")
        made = pythran.compile_pythranfile(file, output_file=built)
        return _Call(_loaded(Path(made), plain.__name__), setup, call)

    peer = compiled if importlib.util.find_spec("pythran") else None
    return take_turns(_Call(plain, setup, call), _Call(accelerated, setup, call), peer, seconds)


# ---- the table --------------------------------------------------------------------------------------
def measured(one: Bench, seconds: float) -> dict[str, Any]:
    """Return the figures of a program, run in a process with an empty cache.

    If it cannot be run as it is, return ``skipped`` with the reason.
    """
    words = [sys.executable, "-m", "conformance.pythran", "--child", str(seconds), str(one.file)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # plans may still come
        try:
            done = subprocess.run(
                [*words, one.setup, one.call], capture_output=True, text=True, timeout=_LIMIT,
                env={**os.environ, "DCARRAY_CACHE_DIR": folder},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"skipped": f"takes more than {_LIMIT} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if not lines:
        return {"skipped": (done.stderr.strip().splitlines() or ["no output"])[-1][:120]}
    found: dict[str, Any] = json.loads(lines[-1].removeprefix(_MARK))
    return found


def _line(row: dict[str, Any]) -> str:
    if "settled" not in row:
        why = f"not run as it is, {row['skipped']}" if "skipped" in row else f"**wrong**, {row['differs']}"
        return f"* {row['name']}: {why}"
    reasons = f"**wrong**: {row['differs']}" if row["differs"] else "".join(row["reasons"][:1])
    peer = f"{row['peer']:.2f}" if "peer" in row else ""
    times = f"{row['milliseconds']:.3g} | {row['first']:.2f} | {row['settled']:.2f}"
    return f"{row['name']} | {times} | {peer} | {reasons}"


def _mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def text(rows: list[dict[str, Any]]) -> str:
    """Return the table of the rows in Markdown."""
    known = [one for one in rows if "settled" in one]
    both = [one for one in known if "peer" in one]
    settled = [one["settled"] for one in known]
    lines = [
        "program | Python, ms | first call | settled | Pythran | left to Python",
        "--- | ---: | ---: | ---: | ---: | ---",
        *map(_line, known),
        "",
        f"{len(known)} programs, {sum(not one['differs'] for one in known)} right,"
        f" {sum(one['loops'] > 0 for one in known)} with compiled code. Settled: {_mean(settled):.2f}"
        f" times Python in the geometric mean, {sum(x < 0.95 for x in settled)} below 0.95,"
        f" {sum(x > 1.2 for x in settled)} above 1.2."
        f" First calls: {_mean([one['first'] for one in known]):.2f}.",
    ]
    if both:
        lines.append(
            f"Pythran runs {len(both)} of them: {_mean([one['peer'] for one in both]):.2f}, dcarray on"
            f" these {_mean([one['settled'] for one in both]):.2f}; faster than dcarray in"
            f" {sum(one['peer'] > one['settled'] for one in both)}."
        )
    return "\n".join([*lines, "", *(_line(one) for one in rows if "settled" not in one)]).rstrip()


def main(arguments: list[str] | None = None, told: Callable[[str], object] = print) -> int:
    """Run the command and return its exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["--child"]:
        print(_MARK + json.dumps(_figures(float(given[1]), *given[2:])))
        return 0
    parser = argparse.ArgumentParser(prog="python -m conformance.pythran", description=__doc__)
    parser.add_argument("names", nargs="*", help="only programs whose name holds one of these words")
    parser.add_argument("--suite", type=Path, required=True, metavar="PATH", help="a checkout")
    parser.add_argument("--seconds", type=float, default=3.0, help="of calls of each program")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    parser.add_argument("--docs", type=Path, metavar="FILE", help="write the section of FILE")
    chosen = parser.parse_args(given)
    if not (chosen.suite / CASES).is_dir():
        parser.error(f"{chosen.suite} has no folder {CASES}")
    rows = []
    for one in benches(chosen.suite):
        if any(name in one.name for name in chosen.names or [""]):
            rows.append({"name": one.name} | measured(one, chosen.seconds))
            told(_line(rows[-1]))
    told("\n" + text(rows))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(rows, indent=1))
    if chosen.docs is not None:
        from benchmarks.measure import described, machine

        from .document import write_section

        head = f"`python -m conformance.pythran --suite PATH --docs {chosen.docs}` wrote this section: "
        write_section(
            chosen.docs, "Pythran's test programs", f"{head}{described(machine())}.\n\n{text(rows)}"
        )
    return int(any(row.get("differs") for row in rows))


if __name__ == "__main__":
    sys.exit(main())
