"""Run random programs with NumPy's and with dcarray's arrays, and compare.

::

    python -m conformance.fuzz --examples N [--seed S] [--mode defaults|interpreted|compiled|background|all]
                               [--json FILE [--docs docs/conformance.md]]

Program ``k`` of a run is generated from the seed ``S + k``.  A program with different results is reduced and
printed as a script; the run goes on, and its exit status is 1 if there was one.  The programs run in chunks,
each in a separate process, so that one that crashes (as some do in NumPy itself) ends only its process: it is
counted and named, and a new process continues after it.  Runs are appended to those in FILE, from which the
section of the document is written; ``fuzz_runs.json`` has those of the project.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import multiprocessing
import os
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import dcarray as dc

from .document import write_section
from .programs import Program, difference, shrunk, suits_devices
from .writer import program

__all__ = ["MODES", "Outcome", "main", "run", "supervised"]

# With the defaults arrays as small as these stay in NumPy.
MODES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "interpreted": {"eager_below": 0, "jit": "off", "debug": True},
    "compiled": {"eager_below": 0, "jit": "eager", "debug": True, "cache_dir": None},
    "background": {"eager_below": 0, "jit": "background", "cache_dir": None},
}
STUCK = 300  # seconds without a finished program
SHOWN = 20  # programs that differ are made smaller and printed up to so many
CHUNK = 1000  # programs of one process


def options(mode: str, seed: int) -> dict[str, Any]:
    """Return dcarray's options for a program; for every fourth seed, arrays of under 6 elements stay
    eager."""
    chosen = dict(MODES[mode])
    if chosen and seed % 4 == 0:
        chosen["eager_below"] = 6
    return chosen


def run(
    mode: str, seeds: range, begin: Callable[[int], None] = lambda seed: None, shown: int = SHOWN
) -> Iterator[tuple[int, str]]:
    """Run programs in one mode, in this process, and yield those that differ.

    Parameters
    ----------
    mode : str
        One of `MODES`.
    seeds : range
        The numbers of the programs.
    begin : callable
        Called with each number before its program is generated.
    shown : int
        How many of the programs that differ are reduced to smaller ones.

    Yields
    ------
    (int, str)
        The number of a program that differs, and its script.
    """
    with dc.options() as now:
        on_device = now.device != "cpu"
    for seed in seeds:
        begin(seed)
        made = program(seed)
        if on_device and not suits_devices(made):
            continue
        text = difference(made, **options(mode, seed))
        if text is not None:
            yield seed, script(made, seed, mode, text) if shown > 0 else text
            shown -= 1


def script(made: Program, seed: int, mode: str, text: str) -> str:
    """Return the script of a program that differs, reduced to a smaller one if that still differs."""
    chosen = options(mode, seed)
    head = f"# number {seed}, {mode}: {text}".replace("\n", "\n# ")
    small = shrunk(made, **chosen)
    again = difference(small, **chosen)
    if again is None:
        return f"{head}\n# only after the programs before it\n{made.text(**chosen)}"
    shown = f"# smaller: {again}".replace("\n", "\n# ")
    return f"{head}\n{shown}\n{small.text(**chosen)}"


# ---- processes ---------------------------------------------------------------------------------------
@dataclass
class Outcome:
    """The outcome of running the programs of a mode."""

    mode: str
    programs: int = 0  # how many were run
    differ: list[int] = field(default_factory=list)  # the numbers of programs that differ
    # The numbers of programs that crashed, or that took longer than `STUCK` seconds.
    crashed: list[int] = field(default_factory=list)
    seconds: float = 0.0
    stopped: bool = False  # whether the run was interrupted

    @property
    def wrong(self) -> int:
        """The number of programs that differ or crashed."""
        return len(self.differ) + len(self.crashed)

    def __str__(self) -> str:
        crashed = f", {len(self.crashed)} crashed" if self.crashed else ""
        differ = f"{len(self.differ)} differ{crashed}{', stopped' if self.stopped else ''}"
        return f"{self.mode}: {self.programs:,} programs in {self.seconds:.0f} s, {differ}"


def chunk(mode: str, seeds: range, shown: int, pipe: Connection) -> None:
    """Run programs in this process; send each number at its start, each difference, and None at the end."""
    faulthandler.enable()

    def begin(seed: int) -> None:
        faulthandler.dump_traceback_later(STUCK, exit=True)
        pipe.send(seed)

    for found in run(mode, seeds, begin, shown):
        pipe.send(found)
    faulthandler.cancel_dump_traceback_later()
    pipe.send(None)


def messages(mode: str, seeds: range, shown: int) -> Iterator[int | tuple[int, str] | None]:
    """Run `chunk` in a new process, and yield its messages; the last is None unless it has crashed."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=chunk, args=(mode, seeds, shown, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        while True:
            said = ours.recv()
            yield said
            if said is None:
                break
    except EOFError:
        pass
    except BaseException:  # interrupted, or not asked any further
        process.terminate()
        raise
    finally:
        process.join()
        ours.close()


def supervised(mode: str, seeds: range, size: int = CHUNK, tell: Callable[[str], None] = print) -> Outcome:
    """Run programs in one mode, in separate processes, and return the outcome.

    Parameters
    ----------
    mode : str
        One of `MODES`.
    seeds : range
        The numbers of the programs.
    size : int
        How many programs one process runs.
    tell : callable
        Called with the text about each program that differs or crashes.
    """
    outcome = Outcome(mode)
    start, next_seed = time.monotonic(), seeds.start
    shown = start
    try:
        while next_seed < seeds.stop:
            part = range(next_seed, min(next_seed + size, seeds.stop))
            at, done = None, False
            for said in messages(mode, part, SHOWN - len(outcome.differ)):
                if isinstance(said, int):
                    at = said
                    outcome.programs = at - seeds.start
                    outcome.seconds = time.monotonic() - start
                    if start + outcome.seconds > shown + 60:
                        shown = start + outcome.seconds
                        print(f"{outcome}, of {len(seeds):,}", file=sys.stderr, flush=True)
                elif said is None:
                    done = True
                else:
                    outcome.differ.append(said[0])
                    small = len(outcome.differ) <= SHOWN
                    tell(f"\n{said[1]}" if small else f"# number {said[0]}, {mode}: {said[1]}")
            if at is None:
                raise RuntimeError("a process ended before its first program")
            if not done:
                outcome.crashed.append(at)
                tell(f"\n# number {at}, {mode}: ended its process\n")
            next_seed = part.stop if done else at + 1
            outcome.programs = next_seed - seeds.start
    except KeyboardInterrupt:
        outcome.stopped = True
    outcome.seconds = time.monotonic() - start
    return outcome


# ---- the document ------------------------------------------------------------------------------------
ABOUT = """\
`python -m conformance.fuzz --examples N --seed S --mode M --json conformance/fuzz_runs.json
--docs docs/conformance.md` wrote this section.  The counts are of all runs that the file has, each of which
was made with the code of its time; a short run in each mode is part of `make test`.

A program is a list of lines of Python (`conformance/lines*.py`, `writer.py`): ufuncs with `out=`, `where=`,
`dtype=` and `casting=`, reductions over any axes, views of views, basic and advanced indexing, aliases,
in-place updates, casts between all dtypes, functions that join, choose and sort, loops over windows that
overlap one time and not another, plain operands that their owner changes right after the call, exports that
are written through while work is pending, threads, error states, variables that go.  Half of the programs
are long ones of which all is recorded.  Each runs in up to five rounds, which make its arrays anew: other
sizes (0 and 1 among them), dtypes, strides, aliases and scalars, so that a plan is met again where it must
*not* be reused.  One in fifty has arrays that are large with the defaults.

Every line must raise and warn as NumPy does, and after each round all variables must have NumPy's values,
dtypes and shapes: bit for bit, except what depends on the order of additions or on a mathematical library,
which may differ by rounding.  Left open is what NumPy leaves open: numbers cast to integers that cannot
hold them, and the sign of NaN.  Not written is what ends NumPy's own process, such as an array of objects
that holds itself.  A program that differs is made smaller and printed as a script.
"""


def section(runs: list[dict[str, Any]]) -> str:
    """Return the document's section: the method, a table of the modes, and the notes of runs."""
    rows = ["| mode | options | programs | differ | crash |", "|---|---|---|---|---|"]
    for mode, chosen in MODES.items():
        of_mode = [r for r in runs if r["mode"] == mode]
        if of_mode:
            counts = [sum(r["programs"] for r in of_mode)]
            counts += [sum(len(r[kind]) for r in of_mode) for kind in ("differ", "crashed")]
            said = ", ".join(f"`{k}={v!r}`" for k, v in chosen.items()) or "none"
            rows.append(f"| {mode} | {said} | {' | '.join(f'{n:,}' for n in counts)} |")
    notes = [part for r in runs if "note" in r for part in ("", textwrap.fill(r["note"], 110))]
    return "\n".join([ABOUT, *rows, *notes])


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m conformance.fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("--examples", type=int, default=1000, metavar="N", help="programs in each mode")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="number of the first program")
    parser.add_argument("--mode", choices=[*MODES, "all"], default="all")
    parser.add_argument(
        "--device", metavar="NAME", help="where wrapped arrays are; programs that a device serves otherwise"
        " than NumPy are counted, but not run"
    )  # fmt: skip
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="add the counts to those of other runs there"
    )
    parser.add_argument(
        "--docs", type=Path, metavar="FILE", help="write the section on all runs in --json there"
    )
    chosen = parser.parse_args(arguments)
    if chosen.examples < 1:
        parser.error("--examples must be at least 1")
    if chosen.docs is not None and chosen.json is None:
        parser.error("--docs needs --json")
    if chosen.device is not None:
        if chosen.device not in dc.devices():
            parser.error(f"no device {chosen.device!r}; the devices there are: {', '.join(dc.devices())}")
        os.environ["DCARRAY_DEVICE"] = chosen.device  # of the processes that run programs
    modes = list(MODES) if chosen.mode == "all" else [chosen.mode]
    seeds = range(chosen.seed, chosen.seed + chosen.examples)
    outcomes = []
    for mode in modes:
        outcomes.append(supervised(mode, seeds, tell=lambda text: print(text, flush=True)))
        print(outcomes[-1], flush=True)
        if outcomes[-1].stopped:
            break
    if chosen.json is not None:
        runs = json.loads(chosen.json.read_text()) if chosen.json.exists() else []
        runs += [vars(o) | {"first": seeds.start} for o in outcomes]
        chosen.json.write_text(json.dumps(runs, indent=1) + "\n")
        if chosen.docs is not None:
            write_section(chosen.docs, "Fuzzing", section(runs))
    wrong = sum(o.wrong for o in outcomes)
    print(f"{sum(o.programs for o in outcomes):,} runs, {wrong} differ or crash")
    return 1 if wrong or outcomes[-1].stopped else 0


if __name__ == "__main__":
    sys.exit(main())
