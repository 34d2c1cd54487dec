"""One run of a program in a process of its own, and what was seen of it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from dcarray.ir.records import record

__all__ = ["Run", "watch"]


@record(frozen=True, slots=True)
class Run:
    """The observations of one run of a program.

    Attributes
    ----------
    status : int
        Exit status; minus the number of the signal that killed it.
    seconds : float
        Of the program; zero if it ended without saying what was seen, as ``os._exit`` and crashes do.
    outside : float
        Seconds of these outside of the program's own lines.
    lines : dict
        Seconds by file and line of the program's own code.
    libraries : dict
        Seconds of these in Python code of libraries: by file and line, and library.
    looks : dict
        By file and line: seconds of single runs, and the values of names.
    hot : list
        Rows of `dcarray.inspect.hot_lines`, of a run under dcarray.
    """

    status: int
    seconds: float
    outside: float
    lines: dict[tuple[str, int], float]
    libraries: dict[tuple[str, int], dict[str, float]]
    looks: dict[tuple[str, int], tuple[list[float], dict[str, Any]]]
    hot: list[list[Any]]


def watch(kind: str, module: bool, program: list[str], quiet: bool = False) -> Run:
    """Run a program in a process of its own, and see where its time goes.

    Parameters
    ----------
    kind : str
        "plain", or "run" for ``python -m dcarray run``.
    module : bool
        Whether the program is the name of a module.
    program : list of str
        The script or module, and its arguments.
    quiet : bool, optional
        Whether what it prints is dropped.
    """
    with tempfile.TemporaryDirectory(prefix="dcarray-doctor-") as folder:
        notes = Path(folder, "notes.json")
        command = [
            *_python(),
            "-m",
            f"{__package__}.child",
            kind,
            str(notes),
            "-m" if module else "",
            *program,
        ]
        out = subprocess.DEVNULL if quiet else None
        process = subprocess.Popen(command, stdout=out, stderr=out)
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is the program's
        try:
            status = process.wait()
        finally:
            signal.signal(signal.SIGINT, before)
        told = json.loads(notes.read_text("utf-8")) if notes.exists() else {}

    def by_line(name: str) -> dict[tuple[str, int], Any]:
        return {(row[0], row[1]): row[2] if len(row) == 3 else tuple(row[2:]) for row in told.get(name, [])}

    return Run(
        status, told.get("seconds", 0.0), told.get("outside", 0.0), by_line("lines"), by_line("libraries"),
        by_line("looks"), told.get("hot", []),
    )  # fmt: skip


def _python() -> list[str]:
    """Return the interpreter and its options, as this process was started."""
    given = sys.orig_argv
    return given[: given.index("-m")] if "-m" in given[1:] else [sys.executable]
