"""Times commonly used calls, one by one, on NumPy's and dcarray's arrays: ``python -m benchmarks calls``.

Every call of `calls` is timed at 10, 1,000 and 100,000 elements, after its kernels are compiled. The table
has the calls that miss their limit, the worst first. With ``DCARRAY_THREADS=1`` the thread's processor
time is measured, so that the figures do not depend on other load of the machine.
"""

from __future__ import annotations

import ast
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import dcarray as dc

from .calls import ACCELERATED, CALLS, arrays
from .document import Arguments, Telling, write_json
from .measure import described, machine

LIMITS = {10: 3.0, 1000: 1.3, 100_000: 1.0}  # of NumPy's time
NOISE = 1.05  # what a ratio may be above its limit without being called a miss
ROUNDS = 7
TURN = 0.0004  # seconds that a turn of one contender takes, at least


class Timed(NamedTuple):
    """The times of a call at one size.

    `ratio` is the median of its time relative to NumPy's, and `numpy` NumPy's in microseconds.
    """

    group: str
    call: str
    n: int
    ratio: float
    numpy: float

    @property
    def holds(self) -> bool:
        return self.ratio <= limit(self.n) * NOISE


def limit(n: int) -> float:
    """Return the limit of a call's time relative to NumPy's for ``n`` elements."""
    return LIMITS[max([size for size in LIMITS if size <= n], default=min(LIMITS))]


def _lazy(value: Any) -> bool:
    """Whether a value is, or has in it, an array that may be pending; views of inputs are not."""
    if isinstance(value, (tuple, list)):
        return any(map(_lazy, value))
    wrapped: type[Any] = dc.ndarray
    return isinstance(value, wrapped) and (value.base is None or not value._idle())


def job(text: str, given: dict[str, Any], finish: bool, numpy: Any = np) -> Callable[[int], None]:
    """Return a function that runs a call a number of times, with a module as ``np``.

    If ``finish``, each result is evaluated.
    """
    tree = ast.parse(text).body[0]
    found = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in given]
    names = sorted(set(found))
    line, after = text, ""
    if finish:
        called = isinstance(tree, ast.Expr)
        value = eval(text, {"np": numpy}, given) if called else None  # the table's own text
        if value is None:  # the first name in the text is what is written
            after = f"\n        evaluate({found[0]})"
        elif _lazy(value):
            line = f"evaluate({text})"
    source = f"def run(count, {', '.join(names)}):\n    for _ in range(count):\n        {line}{after}\n"
    scope: dict[str, Any] = {"np": numpy, "evaluate": dc.evaluate}
    exec(source, scope)  # the table's own text
    run = scope["run"]
    values = [given[name] for name in names]
    return lambda count: run(count, *values)


def wrapped(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays as dcarray's, except those that are NumPy's for both contenders.

    They share memory, since its position in the cache affects a call on large arrays by some ten percent.
    """
    return {name: a if name.isupper() or isinstance(a, int) else dc.asarray(a) for name, a in given.items()}


def _in_force() -> Any:
    """The options in force."""
    with dc.options() as now:
        return now


def _seconds(run: Callable[[int], None], count: int) -> float:
    # where one thread does it all, what others do meanwhile on this machine is of no concern
    clock = time.thread_time if _in_force().threads == 1 else time.perf_counter
    start = clock()
    run(count)
    return (clock() - start) / count


def timed(group: str, call: str, n: int, rounds: int) -> Timed:
    """Time one call, NumPy and dcarray in turns."""
    plain = arrays(n)
    numpy = dc if group == ACCELERATED else np
    ours = job(call, wrapped(plain), n >= _in_force().eager_below, numpy)
    theirs = job(call, plain, False)
    with dc.options(jit="eager"):
        for _ in range(4):
            ours(1)
    once = min(_seconds(theirs, 1) for _ in range(3))
    count = max(1, min(2000, math.ceil(TURN / once)))
    ratios, base = [], []
    for turn in range(rounds):
        pair = (theirs, ours) if turn % 2 else (ours, theirs)
        times = {run: _seconds(run, count) for run in pair}
        ratios.append(times[ours] / times[theirs])
        base.append(times[theirs])
    return Timed(group, call, n, statistics.median(ratios), statistics.median(base) * 1e6)


def sweep(sizes: list[int], only: str, rounds: int) -> Iterator[Timed]:
    """Yield the times of all calls; one that misses its limit is timed again, in case the machine was
    busy."""
    for group, calls in CALLS.items():
        if only not in group:
            continue
        for n in sizes:
            for call in calls:
                found = timed(group, call, n, rounds)
                if not found.holds:
                    found = min(found, timed(group, call, n, 2 * rounds), key=lambda one: one.ratio)
                yield found


def main(arguments: list[str]) -> int:
    """Print the table; return exit status 0, even if calls miss their limits."""
    parser = Arguments("calls", __doc__, "groups")
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")], default=list(LIMITS))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--worst", type=int, default=1000, help="print so many calls of each size")
    args = parser.parse_args(arguments)
    if not any(args.only in group for group in CALLS):
        parser.error(f"no group has {args.only!r} in its name: {', '.join(CALLS)}")
    warnings.simplefilter("ignore")
    rows = list(sweep(args.sizes, args.only, args.rounds))
    tell = Telling()
    tell(described(machine()))
    for n in args.sizes:
        here = sorted((row for row in rows if row.n == n), key=lambda row: -row.ratio)
        missed = [row for row in here if not row.holds]
        mean = math.exp(statistics.fmean(math.log(row.ratio) for row in here))
        kept = f"{len(here) - len(missed)} of {len(here)} calls take at most {limit(n)} of NumPy's time"
        tell(f"n = {n:,}: {kept}; geometric mean {mean:.2f}")
        for row in missed[: args.worst]:
            tell(f"  {row.ratio:6.2f}  {row.call:<44} NumPy {row.numpy:9.2f} us")
    write_json(args.json, [row._asdict() for row in rows])
    tell.write(args.docs, "Single calls", "`python -m benchmarks calls`: ratios to NumPy's time.")
    return 0
