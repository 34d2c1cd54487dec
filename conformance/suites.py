"""Runs benchmark suites of other projects as they are and accelerated, one process for each program.

The suites are external checkouts, given by the option ``--suite``.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Program", "Suite", "answer_of", "loaded"]

_LIMIT = 300  # seconds of a process
_MARK = "figures: "


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


class Program(NamedTuple):
    """One program of a suite.

    Attributes
    ----------
    name : str
    words : list of str
        The arguments of its process.
    left_out : str
        The reason if it is not run; else empty.
    """

    name: str
    words: list[str]
    left_out: str = ""


def _print(line: str) -> None:
    print(line, flush=True)


@dataclass(frozen=True)
class Suite:
    """A suite of programs and its command.

    Attributes
    ----------
    command : str
        The module of ``python -m``.
    title : str
        The title of its section in the document.
    folder : str
        A folder by which a checkout is recognised.
    programs : callable
        Returns the programs of a checkout.
    figures : callable
        Called in a separate process with the words of a program, the seconds and whether the peer is
        installed; returns the result of `conformance.in_turns.take_turns`.
    peer, peer_name : str
        Another compiler's package to compare with, if it is installed, and its name in the table.
    about : str
        The text of the section before the table.
    """

    command: str
    title: str
    folder: str
    programs: Callable[[Path], list[Program]]
    figures: Callable[[list[str], float, bool], dict[str, Any]]
    peer: str = ""
    peer_name: str = ""
    about: str = ""

    def main(self, arguments: list[str] | None = None, told: Callable[[str], None] = _print) -> int:
        """Run the command and return its exit status."""
        given = sys.argv[1:] if arguments is None else arguments
        peer = bool(self.peer) and importlib.util.find_spec(self.peer) is not None
        if given[:1] == ["--child"]:
            print(_MARK + json.dumps(self.figures(given[2:], float(given[1]), peer)))
            return 0
        parser = argparse.ArgumentParser(
            prog=f"python -m {self.command}", description=f"{self.title}, as they are and accelerated."
        )
        parser.add_argument("names", nargs="*", help="only programs whose name holds one of these words")
        parser.add_argument("--suite", type=Path, required=True, metavar="PATH", help="a checkout")
        parser.add_argument("--seconds", type=float, default=3.0, help="of calls of each program")
        parser.add_argument(
            "--json",
            type=Path,
            metavar="FILE",
            help="also write the figures to FILE, which keeps what it has of others",
        )
        parser.add_argument("--docs", type=Path, metavar="FILE", help="write the section of FILE")
        chosen = parser.parse_args(given)
        if not (chosen.suite / self.folder).is_dir():
            parser.error(f"{chosen.suite} has no folder {self.folder}")
        rows = []
        for row in self.rows(chosen.suite, chosen.names, chosen.seconds):
            rows.append(row)
            told(_told(row))
        told("\n" + text(rows, self.peer_name))
        if chosen.json is not None:
            rows = _merged(json.loads(chosen.json.read_text()) if chosen.json.exists() else [], rows)
            chosen.json.write_text(json.dumps(rows, indent=1))
        if chosen.docs is not None:
            self._write(chosen.docs, rows)
        return int(any(row.get("differs") for row in rows))

    def rows(self, suite: Path, names: list[str], seconds: float) -> Iterator[dict[str, Any]]:
        """Run programs, and yield a dict of figures for each."""
        for program in self.programs(suite):
            if names and not any(name in program.name for name in names):
                continue
            found: dict[str, Any] | str = program.left_out
            yield {"name": program.name} | (
                {"left out": found} if found else self.measured(program.words, seconds)
            )

    def measured(self, words: list[str], seconds: float) -> dict[str, Any]:
        """Return the figures of a program, run in a process with an empty cache.

        If it cannot be run as it is, return ``skipped`` with the reason.
        """
        child = [sys.executable, "-m", self.command, "--child", str(seconds), *words]
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # plans may still come
            try:
                done = subprocess.run(
                    child, capture_output=True, text=True, timeout=_LIMIT,
                    env={**os.environ, "DCARRAY_CACHE_DIR": folder},
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return {"skipped": f"takes more than {_LIMIT} s"}
        lines = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
        if not lines:
            return {"skipped": (done.stderr.strip().splitlines() or ["no output"])[-1][:120]}
        found: dict[str, Any] = json.loads(lines[-1].removeprefix(_MARK))
        return found

    def _write(self, file: Path, rows: list[dict[str, Any]]) -> None:
        from benchmarks.measure import described, machine  # a suite may have a package of that name

        from .document import write_section

        here = described(machine())
        head = f"`python -m {self.command} --suite PATH --docs {file}` wrote this section: {here}."
        about = f"\n\n{self.about}" if self.about else ""
        write_section(file, self.title, f"{head}{about}\n\n{text(rows, self.peer_name)}")


def loaded(file: Path, name: str = "") -> Any:
    """Return a new module of a file: each call executes the file again."""
    spec = importlib.util.spec_from_file_location(name or file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


# ---- the table --------------------------------------------------------------------------------------
def _told(row: dict[str, Any]) -> str:
    if "settled" not in row:
        why = row.get("skipped") or row.get("left out") or row["differs"]
        return f"{row['name']:40s} {'WRONG' if row.get('differs') else 'not run'}  {why}"
    peer = f"  peer {row['peer']:.2f}" if "peer" in row else ""
    return (
        f"{row['name']:40s} {'WRONG' if row['differs'] else 'right'}  {row['milliseconds']:9.3f} ms"
        f"  first {row['first']:.2f}  settled {row['settled']:.2f}{peer}  compiled {row['loops']}"
        f"  {row['differs']}{'; '.join(row['reasons'])}"
    )


def _merged(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of an earlier run, replaced by those of a new one where there are any.

    A peer's figure is kept if the new run has none.
    """
    rows = {row["name"]: row for row in old}
    for row in new:
        before = rows.get(row["name"], {})
        rows[row["name"]] = ({"peer": before["peer"]} if "peer" in before else {}) | row
    return [*rows.values()]


def _mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def text(rows: list[dict[str, Any]], peer_name: str) -> str:
    """Return the table of the rows in Markdown."""
    known = [one for one in rows if "settled" in one]
    peer = any("peer" in one for one in known)
    lines = [
        "program | Python, ms | first call | settled |" + f" {peer_name} |" * peer + " left to Python",
        "--- | ---: | ---: | ---: |" + " ---: |" * peer + " ---",
    ]
    for one in known:
        theirs = f" {one['peer']:.2f} |" if "peer" in one else " |" * peer
        reasons = "".join(one["reasons"][:1]) if not one["differs"] else f"**wrong**: {one['differs']}"
        lines.append(
            f"{one['name']} | {one['milliseconds']:.3g} | {one['first']:.2f} | {one['settled']:.2f} |{theirs}"
            f" {reasons}"
        )
    settled = [one["settled"] for one in known]
    lines += [
        "",
        f"{len(known)} programs, {sum(not one['differs'] for one in known)} right,"
        f" {sum(one['loops'] > 0 for one in known)} with compiled code. Settled: {_mean(settled):.2f}"
        f" times Python in the geometric mean, {sum(x < 0.95 for x in settled)} below 0.95,"
        f" {sum(x > 1.2 for x in settled)} above 1.2."
        f" First calls: {_mean([one['first'] for one in known]):.2f}.",
    ]
    both = [one for one in known if "peer" in one]
    if both:
        lines.append(
            f"{peer_name} runs {len(both)} of them: {_mean([one['peer'] for one in both]):.2f}, dcarray on"
            f" these {_mean([one['settled'] for one in both]):.2f}; faster than dcarray in"
            f" {sum(one['peer'] > one['settled'] for one in both)}."
        )
    others = [one for one in rows if "settled" not in one]
    lines += [""] * bool(others)
    lines += [f"* {one['name']}: {_why_not(one)}" for one in others]
    return "\n".join(lines)


def _why_not(row: dict[str, Any]) -> str:
    if "skipped" in row:
        return f"not run as it is, {row['skipped']}"
    return f"left out, {row['left out']}" if "left out" in row else f"**wrong**, {row['differs']}"
