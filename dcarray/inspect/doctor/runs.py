"""Runs of a program, each in a process of its own, and the measurements from them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dcarray.ir.records import record

__all__ = ["Program", "Run", "run_of", "watch"]


@record(frozen=True, slots=True)
class Run:
    """The measurements of one run of a program.

    Attributes
    ----------
    status : int
        Exit status; minus the number of the signal that killed it.
    seconds : float
        Seconds of the program; zero if it ended without a report, such as by ``os._exit`` or a crash.
    outside : float
        The part of these seconds outside the program's own lines.
    lines : dict
        Seconds by file and line of the program's own code.
    libraries : dict
        Seconds of a line spent in libraries' Python code, by file and line, and library.
    looks : dict
        Seconds of single runs of a line, by file and line.
    hot : list
        The rows of `dcarray.inspect.hot_lines`, for a run under dcarray.
    compiled, known : int
        The kernels of such a run that were compiled for it, and those that earlier runs had left.
    """

    status: int
    seconds: float
    outside: float
    lines: dict[tuple[str, int], float]
    libraries: dict[tuple[str, int], dict[str, float]]
    looks: dict[tuple[str, int], list[float]]
    hot: list[list[Any]]
    compiled: int = 0
    known: int = 0


def run_of(status: int, told: dict[str, Any]) -> Run:
    """Return the `Run` with the measurements that `dcarray.inspect.doctor.clock.Clock.end` returned."""

    def by_line(name: str) -> dict[tuple[str, int], Any]:
        return {(file, line): what for file, line, what in told.get(name, [])}

    return Run(
        status, told.get("seconds", 0.0), told.get("outside", 0.0), by_line("lines"), by_line("libraries"),
        by_line("looks"), told.get("hot", []), told.get("compiled", 0), told.get("known", 0),
    )  # fmt: skip


@record(frozen=True, slots=True)
class Program:
    """A program to be run.

    Attributes
    ----------
    module : bool
        Whether it is the name of a module.
    stdin : bool
        Whether the source came from the standard input, so that it has no file.
    words : list of str
        The script or module, and its arguments.
    """

    module: bool
    stdin: bool
    words: list[str]


def watch(way: str, program: Program, quiet: bool = False, functions: Sequence[tuple[str, int]] = ()) -> Run:
    """Run a program in a process of its own, and see where its time goes.

    Parameters
    ----------
    way : str
        "plain", "floor" for plain Python on the floor, "run" for ``python -m dcarray run``, "accelerate", or
        "asarray" for wrapped arrays.
    program : Program
    quiet : bool, optional
        Whether what it prints is dropped.
    functions : sequence of (str, int), optional
        The functions to accelerate, by file and line.
    """
    with tempfile.TemporaryDirectory(prefix="dcarray-doctor-") as folder:
        notes = Path(folder, "notes.json")
        notes.write_text(json.dumps([way, program.module, program.stdin, functions]), "utf-8")
        command = [*_python(), "-m", f"{__package__}.child", str(notes), *program.words]
        out = subprocess.DEVNULL if quiet else None
        given = subprocess.DEVNULL if program.stdin else None
        process = subprocess.Popen(command, stdin=given, stdout=out, stderr=out)
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is the program's
        try:
            status = process.wait()
        finally:
            signal.signal(signal.SIGINT, before)
        told = json.loads(notes.read_text("utf-8")) if notes.exists() else {}
    return run_of(status, told)


def _python() -> list[str]:
    """Return the interpreter and its options, as this process was started."""
    given = sys.orig_argv
    return given[: given.index("-m")] if "-m" in given[1:] else [sys.executable]
