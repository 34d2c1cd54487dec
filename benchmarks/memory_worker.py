"""The process that measures the memory of one framework with one benchmark; see `benchmarks.memory`."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .npbench_suite import benchmarks
from .npbench_worker import Framework, framework


def status(key: str) -> int:
    """Return the bytes in a line of ``/proc/self/status``."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))


def peak(how: Framework, function: Callable[..., Any], arguments: dict[str, Any]) -> tuple[int, int]:
    """Call a function; return the resident bytes before the call and their peak during it."""
    before = status("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the high-water mark starts anew
    how.call(function, arguments)
    return before, status("VmHWM")


def restore(arguments: dict[str, Any], inputs: dict[str, Any]) -> None:
    """Reset arguments to their initial values in place, as new copies would leave gaps in the heap."""
    for name, argument in arguments.items():
        if isinstance(argument, np.ndarray):
            argument[...] = inputs[name]


def main() -> int:
    """Measure one benchmark; the arguments of the command are ``suite bench size framework seconds``."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a kernel prints is no answer
    suite, name, size, which, seconds = sys.argv[1:]
    (bench,) = (b for b in benchmarks(Path(suite), name) if b.name == name)
    inputs = bench.inputs(size)
    how = framework(which, size)
    ((_, function),) = how.versions(bench)
    arguments = how.arguments(bench, inputs)
    before, first = peak(how, function, arguments)
    how.wait()
    end, steady, state = time.perf_counter() + float(seconds), 0, how.settled()
    while which != "numpy" and steady < 2 and time.perf_counter() < end:
        restore(arguments, inputs)
        how.call(function, arguments)
        how.wait()  # on a busy machine plans may take long, and calls without them look settled
        steady, state = (steady + 1 if how.settled() == state else 0), how.settled()
    restore(arguments, inputs)
    _, settled = peak(how, function, arguments)
    given = sum(a.nbytes for a in inputs.values() if isinstance(a, np.ndarray))
    print(json.dumps({"inputs": given, "first": first - before, "settled": settled - before}), file=out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
