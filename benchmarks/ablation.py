"""What passes gain: ``python -m benchmarks ablation [--suite PATH] [--passes NAMES] [--only WORD]``.

Each pass for the processor is left out by itself, and programs whose regions it changes run with and without
it, in turns.  The programs are PolyBench's kernels, as statements and as loops, and those of NPBench.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dcarray.ir.passes.nested import NESTED
from dcarray.ir.text import dump
from dcarray.jit.program.static_region import StaticRegion, static_region
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.targets import get

from .measure import PAUSE, cores, described, machine
from .npbench_suite import benchmarks
from .polybench import agree
from .polybench_kernels import KERNELS


def programs(suite: Path | None, only: str) -> Iterator[tuple[str, StaticRegion]]:
    """Yield the names and regions of the programs that can be traced as a whole."""
    cases: list[tuple[str, Any, Any]] = [(one.name, one.statements, one.arguments(1.0)) for one in KERNELS]
    cases += [(f"{one.name} as loops", one.loops, one.arguments(0.5)) for one in KERNELS]
    for case in benchmarks(suite) if suite else ():
        cases.append((case.name, next(case.versions("numpy"))[1], case.inputs("M").values()))
    for name, function, arguments in cases:
        if only in name:
            try:
                yield name, static_region(function, tuple(arguments))
            except Exception as error:  # of a program that does not compile
                print(f"{name}: {error}")


def gain(program: StaticRegion, plans: tuple[Any, Any], rounds: int) -> float:
    """Return the CPU time of the first plan divided by that of the second one, each the least of the rounds;
    NaN if their results differ."""
    times: tuple[list[float], list[float]] = ([], [])
    zeros = {array.name: np.zeros(array.shape, array.dtype) for array in program.region.arrays}
    for _ in range(rounds + 1):
        results = []
        for plan, took in zip(plans, times, strict=True):
            made = [program.memory.get(name, zeros[name]).copy() for name in plan.arrays]
            time.sleep(PAUSE)
            start = time.process_time()
            plan.run(made, [array.ctypes.data for array in made], (), cores())
            took.append(time.process_time() - start)
            results.append(made)
    return min(times[0][1:]) / min(times[1][1:]) if agree(*results) else np.nan


def main(arguments: list[str]) -> int:
    """Print for each pass its gains in the programs that it changes, and their geometric mean."""
    pipeline = get("cpu").pipeline(cores())
    names = [name for name in pipeline.names if name != NESTED.name]
    parser = argparse.ArgumentParser(prog="python -m benchmarks ablation", description=__doc__)
    parser.add_argument("--suite", type=Path, metavar="PATH", help="a checkout of NPBench")
    parser.add_argument("--passes", default=",".join(names), help="these passes, separated by commas")
    parser.add_argument("--only", metavar="WORD", default="", help="only programs whose name holds WORD")
    parser.add_argument("--rounds", type=int, default=6)
    args = parser.parse_args(arguments)
    print(described(machine()))
    found = dict(programs(args.suite, args.only))
    usual = {name: pipeline.run(program.region) for name, program in found.items()}
    for left in args.passes.split(","):
        gains = {}
        for name, program in found.items():
            region = pipeline.without(left).run(program.region)
            if dump(region) != dump(usual[name]):
                plans = compile_region(region), compile_region(usual[name])
                gains[name] = gain(program, plans, args.rounds)
        mean = f" (mean {statistics.geometric_mean(gains.values()):.2f})" if gains else ""
        told = ", ".join([f"{name} {value:.2f}" for name, value in gains.items()])
        print(f"{left}: {told or 'changes no program'}{mean}", flush=True)
    return 0
