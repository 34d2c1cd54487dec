"""Run random programs with plain and with wrapped arrays.

::

    python -m conformance.fuzz --examples N [--seed S] [--mode defaults|interpreted|compiled|background|all]

Program ``k`` of a run is the program of the number ``S + k``.  A program that differs is made smaller and
printed as a script; the run goes on, and its exit status says whether there was one.
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
import time
from typing import Any

from .programs import Program, difference, shrunk
from .writer import program

__all__ = ["MODES", "main", "run"]

# With the defaults arrays as small as these stay in NumPy.
MODES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "interpreted": {"eager_below": 0, "jit": "off", "debug": True},
    "compiled": {"eager_below": 0, "jit": "eager", "debug": True, "cache_dir": None},
    "background": {"eager_below": 0, "jit": "background", "cache_dir": None},
}
STUCK = 300  # seconds without a finished program
SHOWN = 20  # programs that differ are made smaller and printed up to so many


def options(mode: str, seed: int) -> dict[str, Any]:
    """The options of a program; some record from a few elements on, so that small and large arrays meet."""
    chosen = dict(MODES[mode])
    if chosen and seed % 4 == 0:
        chosen["eager_below"] = 6
    return chosen


def run(mode: str, seeds: range, progress: bool = True) -> list[tuple[int, str]]:
    """Run programs in one mode.

    Parameters
    ----------
    mode : str
        One of `MODES`.
    seeds : range
        The numbers of the programs.
    progress : bool
        Show a line while running.

    Returns
    -------
    list of (int, str)
        Those that differ, with a script each.
    """
    found: list[tuple[int, str]] = []
    start = shown = time.monotonic()
    for count, seed in enumerate(seeds):
        now = time.monotonic()
        if progress and now - shown > 1:
            shown = now
            faulthandler.dump_traceback_later(STUCK, exit=True, file=2)
            rate = count / (now - start)
            line = f"{mode}: {count:,} of {len(seeds):,}, number {seed}, {rate:.0f}/s, {len(found)} differ"
            print(f"\r{line}", end="", file=sys.stderr, flush=True)
        made, chosen = program(seed), options(mode, seed)
        text = difference(made, **chosen)
        if text is not None:
            known = len(found) >= SHOWN
            found.append((seed, text if known else script(made, seed, mode, text)))
            if progress and not known:
                print(f"\n{found[-1][1]}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    if progress:
        seconds = time.monotonic() - start
        print(f"\r{mode}: {len(seeds):,} programs in {seconds:.0f} s, {len(found)} differ{' ' * 20}")
    return found


def script(made: Program, seed: int, mode: str, text: str) -> str:
    """A program that differs, made smaller, as a script."""
    chosen = options(mode, seed)
    head = f"# number {seed}, {mode}: {text}".replace("\n", "\n# ")
    small = shrunk(made, **chosen)
    again = difference(small, **chosen)
    if again is None:
        return f"{head}\n# only after the programs before it\n{made.text(**chosen)}"
    shown = f"# smaller: {again}".replace("\n", "\n# ")
    return f"{head}\n{shown}\n{small.text(**chosen)}"


def main(arguments: list[str] | None = None) -> int:
    """The command; gives the exit status."""
    parser = argparse.ArgumentParser(prog="python -m conformance.fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("--examples", type=int, default=1000, metavar="N", help="programs in each mode")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="number of the first program")
    parser.add_argument("--mode", choices=[*MODES, "all"], default="all")
    chosen = parser.parse_args(arguments)
    if chosen.examples < 1:
        parser.error("--examples must be at least 1")
    modes = list(MODES) if chosen.mode == "all" else [chosen.mode]
    seeds = range(chosen.seed, chosen.seed + chosen.examples)
    failed = [len(run(mode, seeds)) for mode in modes]
    print(f"{len(modes) * len(seeds):,} runs, {sum(failed)} differ")
    return 1 if any(failed) else 0


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(main())
