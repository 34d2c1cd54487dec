"""The gain of a program by each way of using dcarray, measured by a run in that way."""

from __future__ import annotations

import ast
import os
import sys

from dcarray.ir.records import record

from .diagnosis import LEAST_SHARE, source_of
from .runs import Program, Run, watch

__all__ = ["WAYS", "Gain", "gains"]

WAYS = {
    "floor": "the floor alone",
    "run": "python -m dcarray run",
    "accelerate": "@dc.accelerate",
    "asarray": "import dcarray as np",
}
"""The ways, and what they are called."""


@record(frozen=True, slots=True)
class Gain:
    """A way of using dcarray, and the measurement of it.

    Attributes
    ----------
    way, name : str
        A key of `WAYS`, and the name shown for it.
    run : Run or None
        None if it was not measured.
    why : str
        Why it was not measured.
    """

    way: str
    name: str
    run: Run | None
    why: str = ""

    def text(self, plain: Run) -> str:
        """Return the sentence that compares this way with the plain run."""
        if self.run is None:
            return f"{self.name}: not measured, {self.why}"
        times = plain.seconds / self.run.seconds
        text = f"{self.name}: {self.run.seconds:.3f} s, {times:.2f} times as fast"
        kernels = f"; {self.run.compiled} kernels compiled, {self.run.known} found from before"
        return text if self.way == "floor" else text + kernels


def gains(program: Program, plain: Run, which: list[str]) -> list[Gain]:
    """Run a program in some ways, one after the other, and return what was measured.

    Parameters
    ----------
    program : Program
    plain : Run
        The run as plain Python.
    which : list of str
        Keys of `WAYS`.
    """
    return [_gain(way, program, plain) for way in which]


def _gain(way: str, program: Program, plain: Run) -> Gain:
    """Run the program in one way, and return the run, or the reason why there is none."""
    name, functions = WAYS[way], []
    if way == "accelerate":
        hot = hot_functions(plain)
        if not hot:
            return Gain(way, name, None, "no hot line is in a function")
        name += " on " + ", ".join(hot.values())
        functions = [*hot]
    if not program.stdin:
        try:
            os.lseek(0, 0, os.SEEK_SET)  # input from a file is read again
        except OSError:
            if not sys.stdin.isatty():
                return Gain(way, name, None, "the input cannot be read twice (give it as a file: < FILE)")
    run = watch(way, program, quiet=True, functions=functions)
    if run.status != plain.status:
        return Gain(way, name, None, f"its exit status is {run.status}, not {plain.status}")
    if not run.seconds:
        return Gain(way, name, None, "the run ended before it could be seen")
    return Gain(way, name, run)


def hot_functions(plain: Run) -> dict[tuple[str, int], str]:
    """Return the names of the outermost functions that hot lines are in, by their file and line."""
    hot = {}
    for (file, line), seconds in plain.lines.items():
        if seconds < LEAST_SHARE * plain.seconds:
            continue
        try:
            body: list[ast.stmt] = ast.parse(source_of(file)).body
        except (SyntaxError, ValueError):
            continue
        while around := [n for n in body if n.lineno <= line <= (n.end_lineno or n.lineno)]:
            if isinstance(around[0], ast.FunctionDef):
                hot[file, around[0].lineno] = around[0].name
                break
            body = [n for n in ast.iter_child_nodes(around[0]) if isinstance(n, ast.stmt)]
    return hot
