"""Measures the constants of the cost model for loop fusion: ``python -m benchmarks fusion [--rounds N]``.

`dcarray.ir.passes.fusion_profit` defines them.  The unit is one element's addition in a vectorised loop over
data in the L1 cache; everything here is measured in one thread, as medians.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from dcarray.ir.passes import fusion_profit as profit
from dcarray.ir.text import parse
from dcarray.lowering.compilation import compile_region

from .measure import described, machine

NEAR = 1000  # elements of arrays in the first cache
FAR = 1 << 23  # and in memory
TIMES = 2000  # runs over the arrays in the cache, in one kernel


def run_of(text: str) -> Callable[[], float]:
    """Return a function that runs a region on arrays of ones in one thread and returns the seconds."""
    region = parse(f"region() {{\n{text}\n}}")
    plan = compile_region(region, threads=1)
    given = {a.name: np.ones([int(str(n)) for n in a.shape], a.dtype) for a in region.arrays}
    arrays = [given[name] for name in plan.arrays]
    addresses = [array.ctypes.data for array in arrays]

    def run() -> float:
        start = time.perf_counter()
        plan.run(arrays, addresses, (), 1)
        return time.perf_counter() - start

    run()
    return run


def difference(more: str, less: str, rounds: int) -> float:
    """Return the median difference in seconds between the times of two regions, run in turn."""
    one, other = run_of(more), run_of(less)
    return statistics.median(one() - other() for _ in range(rounds))


def near(body: str) -> str:
    """Return a region that computes repeatedly from an array in the L1 cache."""
    loop = f"for k in range(0, {TIMES}, 1) {{ y[i] = {body} for i<{NEAR} }}"
    return f"in x: f64[{NEAR}];  inout y: f64[{NEAR}]\n{loop}"


def additions(leaves: int) -> str:
    """Return a balanced tree of ``2 * leaves - 1`` additions, as an expression."""
    made = [f"add(x[i], {k}.0)" for k in range(leaves)]
    while len(made) > 1:
        made = [f"add({a}, {b})" for a, b in zip(made[::2], made[1::2], strict=True)]
    return made[0]


def rows(count: int, length: int, fused: bool) -> str:
    """Return a region that subtracts from each row its sum; ``fused``: row by row, else in two passes."""
    size = f"i<{count}, j<{length}"
    both = f"s[i] add= x[i,j] init 0.0 for {size}\n y[i,j] = subtract(x[i,j], s[i]) for {size}"
    arrays = f"in x: f64[{count}, {length}];  inout y: f64[{count}, {length}];  inout s: f64[{count}]\n"
    return arrays + (f"rows 1 {{\n{both}\n}}" if fused else both)


def costs(rounds: int) -> dict[str, tuple[float, float]]:
    """Return for each constant the measured value and the one in use."""
    one = difference(near(additions(32)), near(additions(8)), rounds) / (48 * NEAR * TIMES)
    call = difference(near("exp(add(x[i], y[i]))"), near("add(x[i], y[i])"), rounds) / (NEAR * TIMES)
    arrays = f"in x: f64[{FAR}];  inout t: f64[{FAR}];  inout y: f64[{FAR}]\n"
    apart = f"t[i] = add(x[i], 1.0) for i<{FAR}\ny[i] = add(t[i], 1.0) for i<{FAR}"
    fused = f"y[i] = add(add(x[i], 1.0), 1.0) for i<{FAR}"
    trip = difference(arrays + apart, arrays + fused, rounds) / FAR
    few = 1 << 14, 8
    start = difference(rows(*few, True), rows(*few, False), rounds) / few[0]
    return {
        "TRIP: writing an element and reading it": (trip / one, profit.TRIP),
        "START: of the loops of one short row": (start / one, profit.START),
        "CALL: exp, at least": (call / one, profit.CALL),
    }


def passes(rounds: int) -> dict[int, float]:
    """Return for several array sizes the nanoseconds for each element of repeated array additions."""
    found = {}
    for log in range(12, 24):
        size = 1 << log
        times = max(2, (1 << 24) >> log)
        loop = f"for k in range(0, {times}, 1) {{ y[i] = add(x[i], y[i]) for i<{size} }}"
        run = run_of(f"in x: f64[{size}];  inout y: f64[{size}]\n{loop}")
        found[size] = 1e9 * statistics.median(run() for _ in range(rounds)) / (size * times)
    return found


def main(arguments: list[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks fusion", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="medians of so many rounds")
    rounds = parser.parse_args(arguments).rounds
    print(described(machine()))
    print(f"{'in additions':<44}{'measured':>10}{'constant':>10}")
    for name, (measured, constant) in costs(rounds).items():
        print(f"{name:<44}{measured:>10.0f}{constant:>10.0f}")
    print(f"\nnanoseconds for an element that is read again (CACHE is {profit.CACHE:,} elements)")
    for size, each in passes(rounds).items():
        print(f"{size:>12,}{each:>8.2f}")
    return 0
