"""Runs commands of Python as whole processes: as they are, and under ``python -m dcarray run``.

What a command writes and its exit status have to be the same.  A command that is not the same every time when
it runs as it is says nothing, and is left out.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

__all__ = ["WAYS", "Command", "answer_of", "judge", "rows_of", "text"]

WAYS: dict[str, dict[str, str]] = {
    "cold": {},
    "cached": {"DCARRAY_JIT": "background"},
    "eager": {"DCARRAY_JIT": "eager"},
}
"""A cached run has the cache folder of the cold one, an eager run one of its own."""
_UNSTEADY = re.compile(r"\b(?:0x[0-9a-f]{6,}|id=\d{9,})\b")  # addresses


def answer_of(command: Sequence[str], limit: float) -> dict[str, Any] | str:
    """Run a command that prints a JSON object as its last line, and may crash or hang.

    Returns
    -------
    dict or str
        The object, or the last line of the error.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return f"no end within {limit} seconds"
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    found: dict[str, Any] = json.loads(lines[-1])
    return found


@dataclass(frozen=True)
class Command:
    """A command."""

    name: str
    words: tuple[str, ...]  # the words after the interpreter's
    folder: Path  # where it runs
    input: Path | None = None  # its standard input; else it is empty
    variables: Mapping[str, str] = field(default_factory=dict)  # of its environment
    python: str = sys.executable  # the interpreter
    left_out: str = ""  # the reason if it is not run; else empty


class _Done(NamedTuple):
    """What a process has done: output, last line of errors, exit status, seconds and processor time."""

    output: str
    error: str
    status: int | str
    seconds: float
    processor: float

    def differs(self, other: _Done) -> str:
        """Return where the other process differs, or ""."""
        if self.status != other.status:
            return f"exit status {self.status} and {other.status}: {other.error[-200:]}"
        pairs = zip(self.output.splitlines() + ["(end)"], other.output.splitlines() + ["(end)"], strict=False)
        for one, two in pairs:
            if one != two:
                return f"{one[:150]!r} and {two[:150]!r}"
        return f"{self.error!r} and {other.error!r}"[:300] if self.error != other.error else ""


def _run(command: Command, way: str | None, cache: str, limit: float) -> _Done:
    extra = {} if way is None else {**WAYS[way], "DCARRAY_CACHE_DIR": cache}
    words = [command.python, *([] if way is None else ["-m", "dcarray", "run"]), *command.words]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "MPLBACKEND": "Agg", **command.variables, **extra}
    begun, before = time.perf_counter(), os.times()
    with (
        open(command.input or os.devnull, "rb") as given,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as error,
    ):
        process = subprocess.Popen(
            words, cwd=command.folder, env=environment, stdin=given, stdout=output, stderr=error,
            start_new_session=True,
        )  # fmt: skip
        status: int | str
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = "none in time"
        seconds = time.perf_counter() - begun
        with contextlib.suppress(ProcessLookupError):  # what it has started and left behind, too
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        now, said = os.times(), []
        for file in (output, error):
            file.seek(0)
            said.append(_UNSTEADY.sub("0x", file.read().decode(errors="backslashreplace")))
    last = next((line for line in reversed(said[1].splitlines()) if line.strip()), "")
    processor = sum(now[2:4]) - sum(before[2:4])  # of children
    return _Done(said[0], last, status, seconds, max(processor, 0.01))  # a tick of its clock


def rows_of(commands: Iterable[Command], ways: Iterable[str], limit: float) -> Iterable[dict[str, Any]]:
    """Run commands, and yield a dict for each.

    Parameters
    ----------
    commands : iterable of Command
    ways : iterable of str
        Some of `WAYS`.
    limit : float
        Seconds of a process as it is; others have ten times as many.

    Yields
    ------
    dict
        ``name``; ``seconds`` and ``processor`` time of each way, ``plain`` too; ``differs``: the text for
        each way that differs; or ``skipped`` with the reason.
    """
    for command in commands:
        row: dict[str, Any] = {"name": command.name}
        plain = None if command.left_out else _run(command, None, "", limit)
        if plain is None or isinstance(plain.status, str):
            yield row | {"skipped": command.left_out or f"takes more than {limit:g} s as it is"}
            continue
        row |= {"seconds": {"plain": plain.seconds}, "processor": {"plain": plain.processor}, "differs": {}}
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            for way in ways:
                cache = str(Path(folder, "eager" if way == "eager" else "usual"))
                found = _run(command, way, cache, 10 * limit)
                row["seconds"][way], row["processor"][way] = found.seconds, found.processor
                if differs := plain.differs(found):
                    row["differs"][way] = differs
        if row["differs"] and (unsteady := plain.differs(_run(command, None, "", limit))):
            yield {"name": command.name, "skipped": f"not the same every time: {unsteady}"}
        else:
            yield row


def judge(
    command: str,
    title: str,
    about: str,
    commands: Callable[[argparse.Namespace], Iterable[Command]],
    options: Callable[[argparse.ArgumentParser], Any],
    arguments: list[str] | None = None,
) -> int:
    """Run the command line of a judge, and return its exit status: 1 if anything differs.

    Parameters
    ----------
    command, title, about : str
        The module of ``python -m``, the title of its section of the document, and the text at its beginning.
    commands : callable
        Returns the commands for the options.
    options : callable
        Adds the judge's own options.
    arguments : list of str, optional
    """
    parser = argparse.ArgumentParser(prog=f"python -m {command}", description=about)
    parser.add_argument("names", nargs="*", help="only programs whose name holds one of these words")
    parser.add_argument("--ways", default=",".join(WAYS), help="how to run them (default: %(default)s)")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of a program as it is")
    parser.add_argument("--share", default="1/1", metavar="K/N", help="only the k-th of n shares")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE, line by line")
    parser.add_argument("--docs", type=Path, metavar="FILE", help="write the section of FILE")
    options(parser)
    chosen = parser.parse_args(arguments)
    ways = chosen.ways.split(",")
    if not WAYS.keys() >= set(ways):
        parser.error(f"--ways are of {', '.join(WAYS)}")
    share, of = map(int, chosen.share.split("/"))
    wanted = [
        one for one in commands(chosen) if not chosen.names or any(name in one.name for name in chosen.names)
    ][share - 1 :: of]
    rows = []
    for number, row in enumerate(rows_of(wanted, ways, chosen.limit), 1):
        rows.append(row)
        print(f"{number}/{len(wanted)} {_told(row)}", flush=True)
        if chosen.json is not None:
            with chosen.json.open("a") as file:
                file.write(json.dumps(row) + "\n")
    print("\n" + text(rows, ways))
    if chosen.docs is not None:
        from .document import write_section

        write_section(chosen.docs, title, f"`python -m {command}`: {about}\n\n{text(rows, ways)}")
    return int(any(row.get("differs") for row in rows))


def _told(row: dict[str, Any]) -> str:
    if "skipped" in row:
        return f"{row['name']}: not run, {row['skipped']}"
    times = "  ".join(f"{way} {seconds:.2f} s" for way, seconds in row["seconds"].items())
    found = "".join(f"\n    {way} DIFFERS: {differs}" for way, differs in row["differs"].items())
    return f"{row['name']}: {times}{found}"


def text(rows: list[dict[str, Any]], ways: Iterable[str]) -> str:
    """Return a table of the rows in Markdown: times of the ways in multiples of the program's as it is."""
    ways = [*ways]
    known = [row for row in rows if "seconds" in row]
    lines = [
        "program | Python, s | " + " | ".join(ways) + " | differs",
        "--- | ---: | " + "---: | " * len(ways) + "---",
    ]
    for row in known:
        plain = row["seconds"]["plain"]
        shown = " | ".join(f"{row['seconds'][way] / plain:.2f}" for way in ways)
        differs = "; ".join(f"**{way}**: {found}" for way, found in row["differs"].items())
        lines.append(f"{row['name']} | {plain:.2f} | {shown} | {differs.replace('|', '/')}")

    def mean(kind: str) -> str:
        logarithms = {way: [math.log(row[kind][way] / row[kind]["plain"]) for row in known] for way in ways}
        return ", ".join(f"{way} {math.exp(fmean(found)):.2f}" for way, found in logarithms.items() if found)

    differ = sum(bool(row["differs"]) for row in known)
    lines += ["", f"{len(known)} programs, {differ} differ.  Geometric means: times {mean('seconds')};"]
    lines[-1] += f" processor times {mean('processor')}."
    lines += ["", *(f"* {row['name']}: {row['skipped']}" for row in rows if "skipped" in row)]
    return "\n".join(lines).rstrip()
