"""The command that compares many random regions after passes, or compiled, with what they mean before.

``python tests/support/many_regions.py --examples N --seed S [--compiled]``: region ``k`` is made from the
seed ``S + k``.  A child process has a thousand of them, so that one that crashes ends only its process.
"""

import argparse
import mmap
import os
import random
import signal
import sys
import time
import traceback
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("support", "passes", "lowering")]

from ir_regions import Case, make_case  # noqa: E402
from test_plan import declared, execute, same  # noqa: E402
from test_random_regions import make  # noqa: E402

from dcarray.ir import interp  # noqa: E402
from dcarray.ir.nodes import Region  # noqa: E402
from dcarray.ir.passes import Log  # noqa: E402
from dcarray.ir.passes.cpu.pipeline import CPU  # noqa: E402
from dcarray.ir.text import dump  # noqa: E402
from dcarray.ir.verify import verify  # noqa: E402
from dcarray.lowering.compilation import compile_region  # noqa: E402
from dcarray.lowering.cpu.llvm.object_code import engine  # noqa: E402
from dcarray.lowering.program import small_statements  # noqa: E402

CHUNK = 1000
LIMIT = 60  # seconds of the processor for a region
SHOWN = 20


def case_of(seed: int, compiled: bool) -> Case:
    """The region of a seed with its memory: every second one is of ints that wrap, with loops in loops.  Of
    those with symbols it is not proved that indices are in bounds, which passes may expect."""
    rng = random.Random(seed)
    if seed % 2:
        return Case(make(rng, rng.choice([0.08, 0.3, 0.5]), rng.choice([1, 2, 3])), seed, {})
    symbolic = compiled and rng.random() < 0.2
    return make_case(seed, rng.randint(1, 5), symbolic=symbolic, aliases=not symbolic)


def meaning(case: Case, region: Region) -> dict[str, Any]:
    return interp.run(region, case.memory(), case.values)


def judge(seed: int, compiled: bool) -> None:
    """Compare the region of a seed after the pipeline, and after a pass alone, or compiled."""
    case, rng = case_of(seed, compiled), random.Random(seed)
    region, found = case.region, {}
    with np.errstate(all="ignore"):
        want = meaning(case, region)
        if compiled:
            quickly = partial(engine.compile_object, optimised=rng.random() < 0.3)
            mine = case.memory()
            made = region if case.values else declared(region, mine)
            mine = {k: np.array(v, order="C") for k, v in mine.items()} if case.values else mine
            apart = mock.patch.object(
                small_statements, "MOST_WORK", rng.choice([0, small_statements.MOST_WORK])
            )
            with mock.patch.object(engine, "compile_object", quickly), apart:
                found["compiled"] = execute(compile_region(made, "cpu"), mine, case.values)[0]
        else:
            one = rng.choice((*CPU.passes, *CPU.final))
            for name, after in ("all", CPU.run(region)), (one.name, one.fn(region, Log())):
                verify(after)
                found[name] = want if after is region else meaning(case, after)
    for way, got in found.items():
        for name, array in want.items():
            assert same(got[name], array), f"{way}: {name} is {got[name]}, not {array}"


def chunk(seeds: range, compiled: bool, at: mmap.mmap) -> None:
    for seed in seeds:
        at[:8] = seed.to_bytes(8, "little")
        signal.setitimer(signal.ITIMER_PROF, LIMIT)
        try:
            judge(seed, compiled)
        except Exception:
            at[8:16] = (int.from_bytes(at[8:16], "little") + 1).to_bytes(8, "little")
            print(
                f"region {seed} differs: {traceback.format_exc()}\n{dump(case_of(seed, compiled).region)}",
                flush=True,
            )


def main() -> int:
    """Run the command, and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--examples", type=int, default=10_000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="number of the first region")
    parser.add_argument("--compiled", action="store_true", help="judge compiled code")
    chosen = parser.parse_args()
    at, begin = mmap.mmap(-1, 16), time.monotonic()
    first, end, crashed = chosen.seed, chosen.seed + chosen.examples, []
    while first < end:
        part = range(first, min(first + CHUNK, end))
        child = os.fork()
        if child == 0:
            chunk(part, chosen.compiled, at)
            os._exit(0)
        first = part.stop
        if os.waitpid(child, 0)[1]:
            crashed.append(int.from_bytes(at[:8], "little"))
            first = crashed[-1] + 1
        wrong = int.from_bytes(at[8:16], "little")
        print(
            f"{first - chosen.seed:,} regions in {time.monotonic() - begin:.0f} s, {wrong} differ, "
            f"{len(crashed)} crashed: {crashed[:SHOWN]}",
            flush=True,
        )
    return 1 if wrong or crashed else 0


if __name__ == "__main__":
    sys.exit(main())
