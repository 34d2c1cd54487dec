"""NPBench compiled with types observed in a run: ``python -m conformance.hints --npbench PATH [--size S]``.

Each benchmark's NumPy version is copied, unmodified, to a new folder, with a script that calls it once.
``python -m dcarray hints`` runs the script and writes a stub file with types; with that `dcarray.program`
compiles the function, and ``python -m dcarray compile`` builds a shared library.  Both are called with the
same arguments, and compared with NumPy by NPBench's own tolerances.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dcarray as dc
from benchmarks.document import Telling
from benchmarks.npbench_suite import Benchmark, asked_for, benchmarks, compare
from conformance.document import write_section
from conformance.suites import answer_of, loaded

__all__ = ["Outcome", "main", "measure", "run_apart"]

LIMIT = 600  # seconds for a benchmark
_SCRIPT = """\
import pickle

from {module} import {function}

with open("arguments", "rb") as file:
    arguments = pickle.load(file)
{function}(*arguments)
"""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one benchmark.

    Attributes
    ----------
    name : str
        The benchmark.
    program, library : str
        The reason if it cannot be compiled to a program, or to a library; else empty.
    wrong : str
        How a result is wrong, or empty.
    as_written : bool
        Whether the call of the program ran as plain Python instead of compiled code.
    """

    name: str
    program: str = ""
    library: str = ""
    wrong: str = ""
    as_written: bool = False


def measure(bench: Benchmark, size: str, folder: Path) -> Outcome:
    """Compile one benchmark as program and library with types from a run, call both, and compare."""
    name, function = f"{bench.info['module_name']}_numpy", bench.info["func_name"]
    source = bench.suite / "npbench" / "benchmarks" / bench.info["relative_path"] / f"{name}.py"
    file = folder / source.name
    shutil.copy(source, file)
    inputs = bench.inputs(size)
    (folder / "arguments").write_bytes(pickle.dumps([*inputs.values()]))
    (folder / "script.py").write_text(_SCRIPT.format(module=name, function=function))
    _command(folder, "hints", "script.py")
    library, why = None, _command(folder, "compile", f"{file.name}:{function}", "-o", "made")
    if not why:
        library = getattr(loaded(folder / "made" / f"{function}.py", "made"), function)
    written = getattr(loaded(file), function)
    program = dc.program(written)
    try:
        program.compile()
    except dc.ProgramError as error:
        return Outcome(bench.name, _last(str(error)), why)

    def call(job: Callable[..., Any]) -> list[Any]:
        given = bench.copies(inputs)
        return copy.deepcopy(bench.outputs(job(*given.values()), given))

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = call(written)
        dc.report(reset=True)
        wrong, _ = compare(expected, call(program), bench.tolerances(), exact_kinds=True, any_order=False)
        wrong = wrong and f"program: {wrong}"
        ran = dc.report().loops > 0
        if library is not None and not wrong:
            wrong, _ = compare(expected, call(library), bench.tolerances(), exact_kinds=True, any_order=False)
            wrong = wrong and f"library: {wrong}"
    return Outcome(bench.name, "", why, wrong, not ran)


def _command(folder: Path, *words: str) -> str:
    """Run a command of dcarray in a folder; return the last line of its error, or "" if it succeeds."""
    command = [sys.executable, "-m", "dcarray", *words]
    root = str(Path(__file__).parent.parent)
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, check=False)
    return _last(done.stderr) if done.returncode else ""


def _last(text: str) -> str:
    """Return the last line of an error, with the line number instead of the path."""
    line = (text.strip().splitlines() or ["no output"])[-1].removeprefix("python -m dcarray compile: ")
    place, colon, reason = line.partition(": ")
    return f"line {place.rpartition(':')[2]}: {reason}" if colon and "_numpy.py:" in place else line


def run_apart(bench: Benchmark, size: str) -> Outcome:
    """Compile and run one benchmark in a separate process, which may crash or hang; return its outcome."""
    command = [sys.executable, "-m", "conformance.hints", "--npbench", str(bench.suite), "--size", size]
    with tempfile.TemporaryDirectory() as folder:
        command += ["--one", bench.name, "--folder", folder]
        found = answer_of(command, LIMIT)
    return Outcome(bench.name, wrong=_last(found)) if isinstance(found, str) else Outcome(**found)


def _line(one: Outcome) -> str:
    program = "refused" if one.program else "as written" if one.as_written else "compiled"
    library = "refused" if one.library else "compiled"
    why = "; ".join(
        dict.fromkeys(filter(None, (one.wrong and f"WRONG: {one.wrong}", one.program, one.library)))
    )
    return f"{one.name:<26}{program:<12}{library:<10}{why}".rstrip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return exit status 0 if all results are right, else 1."""
    about = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m conformance.hints", description=about)
    parser.add_argument(
        "--npbench", type=Path, default=os.environ.get("NPBENCH"), metavar="PATH",
        help="a checkout of NPBench (default: the variable NPBENCH)",
    )  # fmt: skip
    parser.add_argument("--size", default="S", help="the sizes of NPBench's inputs (default: S)")
    parser.add_argument("--only", default="", metavar="WORD", help="benchmarks whose names hold WORD")
    parser.add_argument(
        "--docs", type=Path, metavar="FILE", help="the document whose section is written anew"
    )
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.one:
        (bench,) = [one for one in benchmarks(given.npbench, given.one) if one.name == given.one]
        print(json.dumps(asdict(measure(bench, given.size, given.folder))))
        return 0
    chosen = asked_for(parser, given.npbench, given.only)
    if given.docs and given.only:
        parser.error("--docs is for all benchmarks")
    tell = Telling()
    tell(f"{'benchmark':<26}{'program':<12}{'library':<10}why not")
    outcomes = []
    for bench in chosen:
        outcomes.append(run_apart(bench, given.size))
        tell(_line(outcomes[-1]))
    programs, libraries = (
        sum(not text for text in texts)
        for texts in zip(*[(o.program, o.library) for o in outcomes], strict=True)
    )
    wrong = sum(bool(one.wrong) for one in outcomes)
    tell(f"\n{len(outcomes)} benchmarks: {programs} programs, {libraries} libraries, {wrong} wrong")
    if given.docs:
        command = (
            "`python -m conformance.hints --npbench PATH --docs docs/conformance.md` wrote this section."
        )
        about = (
            "`python -m dcarray hints` has run each benchmark once, and its stub gives the types of all"
            " arguments.  A *program* is `dc.program` of the unmodified function, a *library* what"
            " `python -m dcarray compile` makes of it; *as written* is a program whose call compiled code"
            " did not serve."
        )
        write_section(
            given.docs, "NPBench with types from a run", f"{command}\n{about}\n\n```\n{tell.text()}\n```"
        )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
