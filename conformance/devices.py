"""NPBench on a device: ``python -m conformance.devices --npbench PATH [--device NAME] [--size S]``.

Each benchmark's NumPy version, unmodified, runs under ``dc.accelerate`` with the option ``device``, in a
separate process.  Its results are compared with NumPy's by NPBench's own tolerances, including dtypes and the
number of results; the table says how many kernels ran on the device, and which statements on the host.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import dcarray as dc
from benchmarks.document import Telling
from benchmarks.npbench_suite import Benchmark, asked_for, benchmarks, compare
from conformance.document import write_section
from conformance.processes import answer_of

__all__ = ["Outcome", "main", "measure", "run_apart"]

LIMIT = 600  # seconds for a benchmark


@dataclass(frozen=True)
class Outcome:
    """The outcome of one benchmark."""

    name: str  # the benchmark
    wrong: str  # what is wrong with its results, or the error; empty if they are NumPy's
    kernels: int = 0  # the number of kernels run on the device
    on_host: int = 0  # the number of statements in recordings for the device that the host ran
    notes: tuple[str, ...] = ()  # the statements that the host ran, with reasons


def measure(bench: Benchmark, device: str, size: str, eager_below: int) -> Outcome:
    """Run one benchmark with NumPy and on a device, and return the outcome of the comparison.

    The second of two calls counts, since plans made in the first call may be used only from the second on.
    """
    inputs = bench.inputs(size)
    _, function = next(bench.versions("numpy"))
    arguments = bench.copies(inputs)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = bench.outputs(function(*arguments.values()), arguments)
        with dc.options(device=device, jit="eager", eager_below=eager_below):
            accelerated = dc.accelerate(function)
            for _ in range(2):
                arguments = bench.copies(inputs)
                dc.report(reset=True)
                result = accelerated(*arguments.values())
                found = [np.asarray(one) for one in bench.outputs(result, arguments)]
    report = dc.report()
    wrong, _ = compare(expected, found, bench.tolerances(), exact_kinds=True, any_order=False)
    notes = tuple(f"{one.function} ({one.count} times)" for one in report.fallbacks)
    return Outcome(bench.name, wrong, report.kernels, report.interpreted, notes)


def run_apart(bench: Benchmark, device: str, size: str, eager_below: int) -> Outcome:
    """Run one benchmark in a separate process, which may crash or hang, and return its outcome."""
    command = [
        sys.executable, "-m", "conformance.devices", "--one", bench.name, "--npbench", str(bench.suite),
        "--device", device, "--size", size, "--eager-below", str(eager_below),
    ]  # fmt: skip
    found = answer_of(command, LIMIT)
    if isinstance(found, str):
        return Outcome(bench.name, found)
    return Outcome(**{**found, "notes": tuple(found["notes"])})


def _line(outcome: Outcome) -> str:
    counts = f"{outcome.kernels:8,}{outcome.on_host:10,}"
    why = "; ".join(dict.fromkeys((outcome.wrong, *outcome.notes)))
    return f"{outcome.name:<26}{'WRONG' if outcome.wrong else 'right':<8}{counts}  {why}".rstrip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return exit status 0 if all results are right and kernels ran on the device, else
    1."""
    about = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m conformance.devices", description=about)
    parser.add_argument(
        "--npbench", type=Path, default=os.environ.get("NPBENCH"), metavar="PATH",
        help="a checkout of NPBench (default: the variable NPBENCH)",
    )  # fmt: skip
    parser.add_argument("--device", default="opencl:0", help="a name of dc.devices() (default: opencl:0)")
    parser.add_argument("--size", default="S", help="the sizes of NPBench's inputs (default: S)")
    parser.add_argument(
        "--eager-below", type=int, default=0, metavar="N", help="arrays of fewer elements stay NumPy's (0)"
    )
    parser.add_argument("--only", default="", metavar="WORD", help="benchmarks whose names hold WORD")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument(
        "--docs", type=Path, metavar="FILE", help="the document whose section is written anew"
    )
    given = parser.parse_args(arguments)
    known = {device.name: device.description for device in dc.devices()}
    if given.device not in known:
        parser.error(f"no device {given.device!r}; the devices there are: {', '.join(known)}")
    if given.one:
        (bench,) = [one for one in benchmarks(given.npbench, given.one) if one.name == given.one]
        print(json.dumps(asdict(measure(bench, given.device, given.size, given.eager_below))))
        return 0
    chosen = asked_for(parser, given.npbench, given.only)
    tell = Telling()
    tell(
        f"{given.device}: {known[given.device]}; size {given.size}, arrays from {given.eager_below} elements"
    )
    tell(f"\n{'benchmark':<34}{'kernels':>8}{'on host':>10}  on the host, and why")
    outcomes = []
    for bench in chosen:
        outcomes.append(run_apart(bench, given.device, given.size, given.eager_below))
        tell(_line(outcomes[-1]))
    right = sum(not one.wrong for one in outcomes)
    there = sum(one.kernels > 0 for one in outcomes)
    tell(f"\n{right} of {len(outcomes)} right; {there} with kernels on the device")
    if given.docs:
        options = f"--npbench PATH --device {given.device} --docs docs/conformance.md"
        command = f"`python -m conformance.devices {options}`"
        write_section(given.docs, "NPBench on a device", f"{command}\n\n```\n{tell.text()}\n```")
    return int(right < len(outcomes) or there == 0)


if __name__ == "__main__":
    sys.exit(main())
