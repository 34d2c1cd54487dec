"""Runs Pythran's own test programs as they are and accelerated: ``python -m conformance.pythran --suite
PATH``.

A program of ``pythran/tests/cases`` has lines ``#bench``: statements that create arguments, and a call.  Each
runs in a separate process for some seconds, as it is and with `dcarray.accelerate` on its module, with the
same arguments created anew for each call.  The suite is an external checkout; if Pythran is installed, its
compiled program is measured, too.
"""

from __future__ import annotations

import ast
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .in_turns import copied, take_turns
from .suites import Program, Suite, loaded

__all__ = ["Bench", "benches", "main"]

CASES = "pythran/tests/cases"


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


def programs(suite: Path) -> list[Program]:
    """Return the lines ``#bench`` of a suite as programs of a `Suite`."""
    return [Program(one.name, [str(one.file), one.setup, one.call]) for one in benches(suite)]


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


def figures(words: list[str], seconds: float, pythran: bool) -> dict[str, Any]:
    """Return the times of a program, run in several ways in turn; see `Suite.figures`."""
    import dcarray

    file, setup, call = words
    plain, accelerated = loaded(Path(file)), loaded(Path(file))
    dcarray.accelerate(accelerated)

    def compiled() -> _Call:
        import pythran  # type: ignore[import-not-found]

        built = str(Path(tempfile.mkdtemp()) / f"{plain.__name__}.so")
        made = pythran.compile_pythranfile(file, output_file=built)
        return _Call(loaded(Path(made), plain.__name__), setup, call)

    return take_turns(
        _Call(plain, setup, call), _Call(accelerated, setup, call), compiled if pythran else None, seconds
    )


SUITE = Suite(
    command="conformance.pythran",
    title="Pythran's test programs",
    folder=CASES,
    programs=programs,
    figures=figures,
    peer="pythran",
    peer_name="Pythran",
)
main = SUITE.main


if __name__ == "__main__":
    sys.exit(main())
