"""The command that runs random source programs; `python -m conformance.whole_programs --help`."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

from .reducing import reduced
from .running import JITS, MODES, Runs
from .together import Together
from .writer import HEAD, kinds, program

EACH = 500  # programs, until their number is shown
SHOWN = 5  # programs that differ are made smaller up to so many


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m conformance.whole_programs",
        description="Run random source programs as they are and accelerated, and show in which they differ.",
    )
    parser.add_argument("--examples", type=int, default=100, metavar="N", help="how many programs")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="number of the first program")
    parser.add_argument("--mode", choices=MODES, default="both", help="under the runner, or by dc.accelerate")
    parser.add_argument(
        "--jit",
        choices=[*JITS, "all"],
        default="all",
        help="when code is compiled; cached: with"
        " the cache of an earlier run; recorded: eager, and the smallest arrays are recorded",
    )
    parser.add_argument("--scene", help="each program has one scene, of this kind")
    parser.add_argument("--whole", action="store_true", help="start each process as users do; slower")
    parser.add_argument("--together", action="store_true", help="all in one process, eagerly; much faster")
    parser.add_argument("--types", action="store_true", help="all arrays have to be of NumPy's own class")
    parser.add_argument("--shown", type=int, default=SHOWN, metavar="N", help="how many are made smaller")
    parser.add_argument("--save", type=Path, metavar="DIR", help="write what differs there, with its prelude")
    chosen = parser.parse_args(arguments)
    jits = tuple(JITS) if chosen.jit == "all" else (chosen.jit,)
    runs = Together() if chosen.together else Runs(chosen.mode, jits, chosen.whole, chosen.types)
    wrong: list[int] = []
    found: Counter[str] = Counter()
    start = time.monotonic()
    for seed in range(chosen.seed, chosen.seed + chosen.examples):
        source = program(seed, chosen.scene)
        try:
            different = list(runs.differences(source))
        except ValueError as unsteady:
            print(f"program {seed} ({', '.join(kinds(seed, chosen.scene))}) is {unsteady}", flush=True)
            continue
        done = seed - chosen.seed + 1
        if isinstance(runs, Together) and done % EACH == 0:
            print(f"{done:,} programs, {len(wrong)} differ: {runs}", flush=True)
        if not different:
            continue
        wrong.append(seed)
        for way, jit, text in different:
            found[f"{way}, {jit}"] += 1
            print(
                f"program {seed} ({', '.join(kinds(seed, chosen.scene))}), {way}, {jit}: {text}", flush=True
            )
        if len(wrong) <= chosen.shown:
            only = different[0][:2]
            source = reduced(source, partial(_differs, runs, only))
            print(f"# smaller, after the prelude of every program; {', '.join(only)}:")
            print(source.partition(HEAD)[2].strip(), flush=True)
        if chosen.save is not None:
            chosen.save.mkdir(parents=True, exist_ok=True)
            (chosen.save / f"program_{seed}.py").write_text(source)
    if isinstance(runs, Together):
        runs.close()
        print(runs)
    print(f"{chosen.examples} programs in {time.monotonic() - start:.0f} s, {len(wrong)} differ: {wrong}")
    for way, count in sorted(found.items()):
        print(f"  {way}: {count}")
    return 1 if wrong else 0


def _differs(runs: Runs | Together, only: tuple[str, str], source: str) -> bool:
    try:
        return next(runs.differences(source, only), None) is not None
    except ValueError:
        return False


if __name__ == "__main__":
    sys.exit(main())
