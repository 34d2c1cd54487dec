"""Benchmarks of a device: ``python -m benchmarks gpu [--device NAME] [--suite PATH] [--json FILE]``.

Fused chains and stencils are compared with a copy of as many bytes on the same device, and with the same code
on the CPU; a region of small kernels run as one CUDA graph with the same kernels launched one by one;
NPBench, if ``--suite`` is a checkout of it, with NumPy, CuPy and JAX.  Arrays are on the device before the
clock starts, and it stops when the device's queue is empty.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import importlib.util
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dcarray as dc

from . import branches, document, npbench_device, speed
from .measure import Row, described, in_turns, machine, ratio

BANDWIDTH, TARGET, GRAPH = 0.85, 1.5, 8.0
"""What is aimed at: a part of the copy's bandwidth on GPUs; on a processor's OpenCL, at most so many times
the time of the processor's own target; so many times as fast as launches one by one."""
FREE = math.inf  # no aim
CALLS = 10
"""Calls of a turn, which follow each other on the device without a pause."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A statement ``work(*arrays)`` over whole arrays; `streams`: how many arrays it reads or writes once."""

    name: str
    work: Callable[..., Any]
    arrays: Callable[[int], tuple[Any, ...]]
    streams: int
    aimed: bool = True


def chain(x: Any, y: Any) -> Any:
    """Return an expression of ten arithmetic operations."""
    return (x * x + y * y) * 0.5 - x * (y - 1.0) + (x - y) * 0.25


def exponential(x: Any, y: Any) -> Any:
    """Return a function of the C library of an array."""
    return np.exp(-x)


def total(x: Any, y: Any) -> Any:
    """Return a sum of squares of differences."""
    return ((x - y) ** 2).sum()


def heat(a: Any, b: Any) -> Any:
    """Compute a time step of a seven-point stencil in three dimensions."""
    middle = a[1:-1, 1:-1, 1:-1]
    across = a[2:, 1:-1, 1:-1] + a[:-2, 1:-1, 1:-1] + a[1:-1, 2:, 1:-1] + a[1:-1, :-2, 1:-1]
    b[1:-1, 1:-1, 1:-1] = middle + 0.125 * (across + a[1:-1, 1:-1, 2:] + a[1:-1, 1:-1, :-2] - 6.0 * middle)
    return b


def _vectors(dtype: str) -> Callable[[int], tuple[Any, ...]]:
    def make(n: int) -> tuple[Any, ...]:
        rng = np.random.default_rng(1)
        return rng.random(n).astype(dtype), rng.random(n).astype(dtype)

    return make


def _grids(ndim: int) -> Callable[[int], tuple[Any, ...]]:
    def make(n: int) -> tuple[Any, ...]:
        side = round(n ** (1 / ndim))
        a = np.random.default_rng(2).random((side,) * ndim)
        return a, a.copy()

    return make


CASES = (
    Case("chain of ten operations, f64", chain, _vectors("f8"), 3),
    Case("chain of ten operations, f32", chain, _vectors("f4"), 3),
    Case("exp, f64", exponential, _vectors("f8"), 2, aimed=False),
    Case("sum of squares of differences, f64", total, _vectors("f8"), 2, aimed=False),
    Case("five-point step in 2 dimensions, f64", partial(speed.jacobi, np), _grids(2), 2),
    Case("seven-point step in 3 dimensions, f64", heat, _grids(3), 2),
)


def case_rows(device: str, elements: int, rounds: int) -> Iterator[Row]:
    """Yield the times of each case, relative to a copy on the device and to the CPU."""
    is_gpu = device.startswith("cuda")
    for case in CASES:
        plain = case.arrays(elements)
        there = [dc.asarray(a, device=device) for a in plain]
        here = [dc.asarray(a.copy()) for a in plain]
        source = there[0]
        jobs = {
            "device": _job(partial(case.work, *there), CALLS),
            "copy": _job(partial(np.positive, source), CALLS),
            "cpu": _job(partial(case.work, *here), CALLS),
        }
        times = in_turns(jobs, rounds)
        of_copy = ratio(times, "copy", "device") * case.streams / 2
        of_cpu = ratio(times, "device", "cpu")
        took = {name: min(seconds) / CALLS for name, seconds in times.items()}
        rate = case.streams * there[0].nbytes / took["device"] / 1e9
        detail = f"device {took['device'] * 1e3:.3f} ms, {rate:.0f} GB/s; cpu {took['cpu'] * 1e3:.2f} ms"
        least = BANDWIDTH if is_gpu and case.aimed else 0.0
        yield Row(case.name, of_copy, "of a copy's bandwidth", least, True, detail)
        most = TARGET if not is_gpu and case.aimed else FREE
        yield Row(case.name, of_cpu, "x the cpu's time", most, False, detail)


def small_kernels(y: Any) -> Any:
    """Return an array after ten sums, each of which depends on the previous one."""
    for _ in range(10):
        y = y - y.sum(keepdims=True) * 1e-6
    return y


def graph_rows(device: str, rounds: int) -> Iterator[Row]:
    """Yield times of a loop of small kernels: as one graph, launched one by one, recorded anew, in CuPy.

    For very small arrays the whole loop is one kernel.
    """
    compiled = dc.accelerate(small_kernels)

    def run(work: Callable[[Any], Any], x: Any, graphs: bool) -> Any:
        with dc.options(graphs=graphs, jit="eager", eager_below=0):
            return _job(partial(work, x))()

    for elements in (1000, 10_000, 100_000, 1_000_000):
        with dc.options(eager_below=0):
            x = dc.asarray(np.linspace(0.0, 1.0, elements), device=device)
        jobs: dict[str, Callable[[], Any]] = {
            "graph": partial(run, compiled, x, True),
            "one by one": partial(run, compiled, x, False),
            "recorded": partial(run, small_kernels, x, True),
        }
        if importlib.util.find_spec("cupy") is not None:
            jobs["CuPy"] = _separately(x)
        for _ in range(3):
            run(compiled, x, True)
        times = in_turns(jobs, rounds, repeat=20)
        detail = ", ".join(f"{name} {min(took) * 1e6:.0f} us" for name, took in times.items())
        for name in list(jobs)[1:]:
            least = GRAPH if name == "one by one" and elements > 1000 else 0.0
            title = f"ten sums and updates of {elements:,}, by {name}"
            yield Row(title, ratio(times, name, "graph"), "x", least, True, detail)
    yield from branches.rows(device, rounds)


def _separately(x: Any) -> Callable[[], Any]:
    """Return a function that runs `small_kernels` with CuPy, which launches one kernel after the other."""
    cupy = importlib.import_module("cupy")
    there = cupy.asarray(x)

    def run() -> None:
        small_kernels(there)
        cupy.cuda.Device().synchronize()

    return run


def _job(work: Callable[[], Any], calls: int = 1) -> Callable[[], Any]:
    """Return a function that calls `work` some times and waits for the end of the last call on the device."""

    def run() -> Any:
        for _ in range(calls):
            made = dc.evaluate(work())
        dc.wait()
        return made

    return run


def _line(row: Row) -> str:
    aim = "" if not row.limit or row.limit == FREE else f"{'>=' if row.at_least else '<='} {row.limit:g}"
    mark = "" if not aim else "ok" if row.holds else "MISSED"
    return f"  {row.name:<40}{row.value:8.2f} {row.unit:<23}{aim:<9}{mark:<8}{row.detail}".rstrip()


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = document.Arguments("gpu", __doc__, "benchmarks of NPBench")
    parser.add_argument("--device", metavar="NAME", help="of dc.devices() (default: the first CUDA device, or"
                        " else the first other one)")  # fmt: skip
    parser.add_argument("--suite", type=Path, default=os.environ.get("NPBENCH"), metavar="PATH",
                        help="a checkout of NPBench (default: $NPBENCH)")  # fmt: skip
    parser.add_argument("--size", default="S", help="of NPBench's inputs: S, M, L or paper")
    parser.add_argument("--against", default=",".join(npbench_device.PEERS), metavar="NAMES",
                        help="peers on NPBench (default: %(default)s)")  # fmt: skip
    parser.add_argument("--limit", type=float, default=60.0, metavar="SECONDS",
                        help="for all calls of one benchmark of NPBench (%(default)s)")  # fmt: skip
    parser.add_argument("--elements", type=int, default=10_000_000, help="of an array (%(default)s)")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each contender (%(default)s)")
    args = parser.parse_args(argv)
    if args.rounds < 1 or args.elements < 1000:
        parser.error("--rounds must be at least 1, and --elements at least 1000")
    unknown = [name for name in args.against.split(",") if name and name not in npbench_device.PEERS]
    if unknown:
        peers = ", ".join(npbench_device.PEERS)
        parser.error(f"--against knows no {', '.join(map(repr, unknown))}; the peers are: {peers}")
    args.names = {one.name: one.description for one in dc.devices() if one.kind != "cpu"}
    if not args.names:
        parser.error("there is no device: python -m dcarray info says what is missing")
    args.device = args.device or min(args.names, key=lambda name: not name.startswith("cuda"))
    if args.device not in args.names:
        parser.error(f"no device {args.device!r}; the devices there are: {', '.join(args.names)}")
    return args


def main(argv: Sequence[str]) -> int:
    """Print the figures; return exit status 1 if a result of NPBench is wrong, else 0."""
    args = _arguments(argv)
    tell = document.Telling()
    tell(f"{args.device}: {args.names[args.device]}\n{described(machine())}")
    tell("ratios are medians over rounds in which the contenders take turns")
    rows: list[Row] = []

    def told(title: str, some: Iterator[Row]) -> None:
        tell(f"\n{title}")
        for row in some:
            rows.append(row)
            tell(_line(row))

    with dc.options(jit="eager"):
        told(f"{args.elements:,} elements", case_rows(args.device, args.elements, args.rounds))
        if args.device.startswith("cuda"):
            told("graphs", graph_rows(args.device, args.rounds))
        else:
            tell(f"\ngraphs: {args.device} has none")
    wrong = 0
    if args.suite:
        wrong = npbench_device.run(args, tell)
    else:
        tell("\nNPBench: not run, since neither --suite nor NPBENCH names a checkout")
    aimed = [row for row in rows if row.limit not in (0.0, FREE)]
    tell(f"\n{sum(row.holds for row in aimed)} of {len(aimed)} figures reach what is aimed at")
    figures = [{**dataclasses.asdict(row), "holds": row.holds} for row in rows]
    found = {"machine": machine(), "device": args.names[args.device], "rows": figures}
    document.write_json(args.json, found)
    tell.write(args.docs, f"Devices: {args.names[args.device]}", "`python -m benchmarks gpu`.")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
