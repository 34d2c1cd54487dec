"""Compares benchmark kernels with the machine's bandwidth: ``python -m benchmarks kernels``.

Each kernel is timed with NumPy, on one thread and on all, and its memory traffic (arguments read once,
results written once) is compared with that of a copy by as many threads in the same round.  Then all kernels
are timed at growing sizes, to show the overhead of a call.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import dcarray as dc

from .document import GENERATED, Arguments, write_json, write_section
from .kernels import KERNELS, Kernel
from .measure import cores, described, in_turns, machine, ratio
from .svg import CHAR, COLUMN, MARGIN, ROW, cell, colour, heading, picture, scale, text

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
_ENOUGH = 1e-3  # seconds that a timing should last at least


class Copy:
    """A copy of ``size`` bytes by several threads, as in the STREAM benchmark (NumPy releases the GIL)."""

    def __init__(self, size: int, threads: int) -> None:
        self.moved = 2 * size
        source, target = np.ones(size // 8), np.ones(size // 8)
        self._parts = list(zip(np.array_split(target, threads), np.array_split(source, threads), strict=True))
        self._pool = ThreadPoolExecutor(threads)

    def __call__(self) -> None:
        list(self._pool.map(lambda part: np.copyto(*part), self._parts))


def _pair(kernel: Kernel, n: int, threads: Sequence[int]) -> tuple[dict[str, Callable[[], object]], int]:
    """Return jobs with the same work for NumPy and dcarray on some threads, checked, and their traffic."""
    arrays = kernel.make(n, np.random.default_rng(1))
    kept = tuple(a.copy() for a in arrays)
    wrapped = tuple(dc.asarray(a.copy()) for a in arrays)

    def plain() -> object:
        return kernel.work(*kept)

    def ours(count: int) -> Callable[[], object]:
        if count == cores():  # the default: nothing to be set in what is timed
            return lambda: dc.evaluate(kernel.work(*wrapped))

        def work() -> object:
            with dc.options(threads=count):
                return dc.evaluate(kernel.work(*wrapped))

        return work

    expected = kernel.work(*[a.copy() for a in arrays])
    got = kernel.work(*[dc.asarray(a.copy()) for a in arrays])
    if not np.allclose(np.asarray(got), np.asarray(expected), rtol=1e-12, atol=1e-13):
        raise AssertionError(f"{kernel.name}: dcarray and NumPy disagree")
    jobs: dict[str, Callable[[], object]] = {"numpy": plain}
    return jobs | {f"{count}": ours(count) for count in threads}, kernel.traffic(arrays, expected)


def against_machine(kernels: Sequence[Kernel], n: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Yield times of each kernel with ``n`` elements in total, on one thread and on all, and of a copy."""
    counts = sorted({1, cores()})
    copies = {count: Copy(8 * n // 2, count) for count in counts}
    for kernel in kernels:
        jobs, moved = _pair(kernel, n, counts)
        times = in_turns(jobs | {f"copy{count}": copy for count, copy in copies.items()}, rounds)
        row: dict[str, Any] = {"kernel": kernel.name, "n": n, "bytes": moved}
        row["numpy"] = statistics.median(times["numpy"])
        for count in counts:
            rate = statistics.median(moved / t for t in times[f"{count}"])
            most = statistics.median(copies[count].moved / t for t in times[f"copy{count}"])
            row[f"speedup{count}"] = ratio(times, "numpy", f"{count}")
            row[f"rate{count}"], row[f"copy{count}"] = rate, most
        yield row


def by_size(kernels: Sequence[Kernel], sizes: Sequence[int], rounds: int) -> Iterator[dict[str, Any]]:
    """Yield the speed-up over NumPy of each kernel at each size, on all threads."""
    for kernel in kernels:
        row: dict[str, Any] = {"kernel": kernel.name}
        for n in sizes:
            jobs, _ = _pair(kernel, n, [cores()])
            once = min(in_turns({"numpy": jobs["numpy"]}, 3)["numpy"])
            times = in_turns(jobs, rounds, max(1, int(_ENOUGH / once)))
            row[f"{n}"] = ratio(times, "numpy", f"{cores()}")
        yield row


# ---- showing it ---------------------------------------------------------------------------------------
def _head() -> str:
    every = f"{cores()} threads"
    return f"{'kernel':<18}{'NumPy':>10}{'1 thread':>10}{every:>11}{'GB/s':>8}{'of a copy':>11}"


def _line(row: Mapping[str, Any]) -> str:
    every = cores()
    part = row[f"rate{every}"] / row[f"copy{every}"]
    return (
        f"{row['kernel']:<18}{row['numpy'] * 1e3:>7.2f} ms{row['speedup1']:>9.2f}x"
        f"{row[f'speedup{every}']:>10.2f}x{row[f'rate{every}'] / 1e9:>8.1f}{part:>11.0%}"
    )


def drawn(told: Mapping[str, Any]) -> str:
    """Return a heat map of speed-ups, kernels by sizes, as SVG.

    Parameters
    ----------
    told : mapping
        What ``--json`` writes.

    Returns
    -------
    str
    """
    rows: Sequence[Mapping[str, Any]] = told["sizes"]
    sizes = [name for name in rows[0] if name != "kernel"]
    left = MARGIN + 12 + CHAR * max(len(row["kernel"]) for row in rows)
    right = max(left + len(sizes) * COLUMN, 660.0)
    title = "Kernels by the number of elements: speed-up over NumPy"
    out = heading(told, title) + list(scale(MARGIN, 66))
    y = 132.0
    for k, name in enumerate(sizes):
        out.append(text(left + (k + 0.5) * COLUMN, y - 6, f"{int(name):,}", "b m"))
    for row in rows:
        out.append(text(left - 8, y + 14, row["kernel"], "e"))
        for k, name in enumerate(sizes):
            out += cell(left + k * COLUMN, y, colour(row[name]), f"{row[name]:.2g}", "m")
        y += ROW
    return picture(right + MARGIN, y + 16, title, out)


def section(told: Mapping[str, Any], drawing: str) -> str:
    """Return the document's section with the figures, in Markdown."""
    every = told["threads"]
    out = [
        GENERATED,
        "",
        f"`python -m benchmarks kernels`: {described(told['machine'])}.  Medians of {told['rounds']} turns; "
        f"GB/s: arguments read once and results written once; a copy by {every} threads in the same turns "
        f"reaches {told['copy'] / 1e9:.0f} GB/s.",
        "",
        f"| kernel, {told['n']:,} elements | NumPy | 1 thread | {every} threads | GB/s | of a copy |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in told["rows"]:
        part = row[f"rate{every}"] / row[f"copy{every}"]
        out.append(
            f"| {row['kernel']} | {row['numpy'] * 1e3:.2f} ms | {row['speedup1']:.2f} | "
            f"{row[f'speedup{every}']:.2f} | {row[f'rate{every}'] / 1e9:.1f} | {part:.0%} |"
        )
    return "\n".join([*out, *([f"\n![kernels by size]({drawing})"] if drawing else [])]) + "\n"


def _measure(told: dict[str, Any], kernels: Sequence[Kernel], elements: int, rounds: int) -> None:
    """Measure both tables, and print each line when it is done."""
    print(_head())
    for row in against_machine(kernels, elements, rounds):
        told["rows"].append(row)
        print(_line(row), flush=True)
    told["copy"] = statistics.median(row[f"copy{cores()}"] for row in told["rows"])
    print(f"a copy by {cores()} threads: {told['copy'] / 1e9:.1f} GB/s\n")
    sizes = [n for n in SIZES if n <= elements]
    print(f"{'speed-up at':<18}" + "".join(f"{n:>12,}" for n in sizes))
    for row in by_size(kernels, sizes, rounds):
        told["sizes"].append(row)
        cells = "".join(f"{row[f'{n}']:>12.2f}" for n in sizes)
        print(f"{row['kernel']:<18}{cells}", flush=True)


def main(words: Sequence[str]) -> int:
    """Time benchmark kernels against NumPy, against the machine's bandwidth, and at growing sizes."""
    parser = Arguments("kernels", main.__doc__, "kernels")
    parser.add_argument("--elements", type=int, default=SIZES[-1], metavar="N", help="of the first table")
    parser.add_argument("--rounds", type=int, default=9, metavar="K", help="turns (%(default)s)")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw kernels by sizes")
    args = parser.parse_args(words)
    wanted = args.only.split(",")
    kernels = [k for k in KERNELS if any(word in k.name for word in wanted)]
    if not kernels or args.elements < 100 or args.rounds < 1:
        parser.error(f"there are {', '.join(k.name for k in KERNELS)}; 100 elements and one round at least")
    told: dict[str, Any] = {"machine": machine(), "n": args.elements, "rounds": args.rounds}
    told |= {"threads": cores(), "rows": [], "sizes": []}
    with dc.options(jit="eager"):  # the steady state, not how soon it is reached
        _measure(told, kernels, args.elements, args.rounds)
    write_json(args.json, told)
    if args.svg:
        args.svg.write_text(drawn(told), encoding="utf-8")
    if args.docs:
        beside = Path(os.path.relpath(args.svg, args.docs.parent)).as_posix() if args.svg else ""
        write_section(args.docs, "Kernels and the machine", section(told, beside))
    return 0
