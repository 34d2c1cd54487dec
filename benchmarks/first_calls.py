"""Times of the first calls of short programs: ``python -m benchmarks first``.

Each program is called six times in a new process with an empty cache folder: with NumPy, unchanged on arrays
of dcarray, and accelerated.  The processes of a round run one after the other; the table has the total time
of NumPy's calls, the medians over rounds of the ratios within a round, and each call's ratio.  The package's
bytecode exists, as after an installation, and ``import dcarray`` is not counted.

``--clock thread`` measures the calling thread's processor time, with one thread, instead of wall-clock time:
this depends little on other load of the machine, and not on the time that planning takes in other threads.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .document import GENERATED, Arguments, write_json, write_section
from .measure import child, described, machine, with_bytecode
from .short_programs import SHORT

__all__ = ["main"]

CALLS = 6
WAYS = ("numpy", "wrapped", "accelerated")


def _plain(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [one for inner in value for one in _plain(inner)]
    return [np.asarray(value)]


def _prepared(way: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that is called in place of another for a way to run it."""
    if way == "numpy":
        return function
    import dcarray as dc  # NumPy's process does without, or its memory would come from a larger heap

    if way == "accelerated":
        accelerated: Callable[..., Any] = dc.accelerate(function)
        return accelerated

    def wrapped(*arguments: Any) -> list[Any]:
        return _plain(function(*[dc.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments]))

    return wrapped


def _named(names: Sequence[str], scale: float) -> dict[str, tuple[Callable[..., Any], Callable[..., Any]]]:
    """Return programs by name: the short ones, or if `scale` is not 0 those of `benchmarks.programs`."""
    if not scale:
        return {name: SHORT[name] for name in names or SHORT}
    from .programs import programs

    found = {name: (function, lambda rng, given=given: given) for name, function, given in programs(scale)}
    return {name: found[name] for name in names or found}


def run(name: str, way: str, scale: float = 0.0, clock: str = "wall") -> None:
    """Run a program in this process; print the seconds of each of the first calls and a checksum."""
    warnings.simplefilter("ignore")
    function, make = _named([name], scale)[name]
    arguments = make(np.random.default_rng(0))
    each = [[a.copy() if isinstance(a, np.ndarray) else a for a in arguments] for _ in range(CALLS)]
    called = _prepared(way, function)
    times: list[float] = []
    result: Any = None
    now = time.perf_counter if clock == "wall" else time.thread_time
    for given in each:
        del result
        start = now()
        result = called(*given)
        times.append(now() - start)
    found = [float(np.nansum(np.abs(x.astype(complex)))) for x in _plain(result)]
    print(json.dumps([times, sum(found)]))


def timed(name: str, rounds: int, scale: float, ways: Sequence[str], clock: str) -> dict[str, Any]:
    """Return the times of a program's first calls, with NumPy and in each way to run it."""
    code = "from benchmarks.first_calls import run; run({!r}, {!r}, {!r}, {!r})"
    alone = {} if clock == "wall" else {"OPENBLAS_NUM_THREADS": "1", "DCARRAY_THREADS": "1"}
    times: dict[str, list[list[float]]] = {way: [] for way in ways}
    sums = {}
    for turn in range(rounds):
        for way in ways if turn % 2 else ways[::-1]:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                taken = child(code.format(name, way, scale, clock), {"DCARRAY_CACHE_DIR": folder, **alone})
            one, sums[way] = json.loads(taken)
            times[way].append(one)
    row: dict[str, Any] = {
        "name": name,
        "numpy": 1e3 * statistics.median(map(sum, times["numpy"])),
        "times": times,
    }
    for way in ways[1:]:
        if not math.isclose(sums["numpy"], sums[way], rel_tol=1e-6):
            raise RuntimeError(f"{name}, {way}: {sums[way]} instead of {sums['numpy']}")
        pairs = list(zip(times["numpy"], times[way], strict=True))
        row[way] = statistics.median(sum(a) / sum(b) for a, b in pairs)
        row[f"{way} calls"] = [statistics.median(a[k] / b[k] for a, b in pairs) for k in range(CALLS)]
    return row


def summary(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield sentences that summarise all rows."""
    for way in WAYS[1:]:
        ratios = [row[way] for row in rows if way in row]
        if ratios:
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            below = sum(ratio < 0.95 for ratio in ratios)
            least = f"{below} of {len(ratios)} below 0.95, the least {min(ratios):.2f}"
            yield f"{way}: geometric mean {mean:.2f}, {least}"


def section(here: Mapping[str, str], rows: Sequence[Mapping[str, Any]], rounds: int, clock: str) -> str:
    """Return the document's section with the table, in Markdown."""
    out = [
        GENERATED,
        "",
        f"`python -m benchmarks first`: {described(here)}.  The first {CALLS} calls in a process that has",
        "just begun, with an empty cache folder: how many times as fast as NumPy they are together, medians",
        f"of {rounds} rounds" + (", by the calling thread's processor time." if clock == "thread" else "."),
        "",
        *(f"* {sentence}" for sentence in summary(rows)),
        "",
        f"| program | NumPy, {CALLS} calls | wrapped | accelerated |",
        "|---|---:|---:|---:|",
    ]
    out += [
        f"| {row['name']} | {row['numpy']:.0f} ms | {row['wrapped']:.2f} | {row['accelerated']:.2f} |"
        for row in rows
    ]
    return "\n".join(out)


def main(arguments: list[str]) -> int:
    """Print the table; return exit status 0, even if NumPy is faster."""
    parser = Arguments("first", __doc__, "programs")
    parser.add_argument("--way", choices=WAYS[1:], help="only one of the two ways")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clock", choices=("wall", "thread"), default="wall")
    parser.add_argument(
        "--scale",
        type=float,
        default=0.0,
        help="those of `benchmarks programs`, with so many times the elements",
    )
    args = parser.parse_args(arguments)
    names = [name for name in _named((), args.scale) if args.only in name]
    if not names:
        parser.error(f"no program has {args.only!r} in its name")
    ways = WAYS if args.way is None else ("numpy", args.way)
    with_bytecode()
    here = machine()
    print(described(here))
    print(
        f"{f'times as fast, {CALLS} calls':<24}{'NumPy, ms':>10}  "
        + "".join(f"{w:>12}{'each call':>32}" for w in ways[1:])
    )
    rows = []
    for name in names:
        row = timed(name, args.rounds, args.scale, ways, args.clock)
        rows.append(row)
        line = f"{name:<24}{row['numpy']:>10.0f}  "
        for way in ways[1:]:
            line += f"{row[way]:>12.2f}  " + "".join(f"{x:>5.2f}" for x in row[f"{way} calls"])
        print(line, flush=True)
    for sentence in summary(rows):
        print(sentence)
    write_json(args.json, {"machine": here, "rows": rows})
    if args.docs and args.way is None:
        write_section(
            args.docs, "Short programs from their first call on", section(here, rows, args.rounds, args.clock)
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
