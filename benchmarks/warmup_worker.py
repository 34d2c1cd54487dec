"""The process that calls one version of a kernel of NPBench repeatedly from its first second on.

It prints one line: the seconds until the version could be called (including its imports, without NumPy and
the inputs), the seconds of each call, and whether the last call's result is NumPy's.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from .npbench_suite import benchmarks, compare
from .npbench_worker import DCArray, Framework, framework

MOST = 20_000  # calls


def times(suite: Path, kernel: str, size: str, name: str, ending: str, seconds: float) -> dict[str, Any]:
    """Call a version for some seconds, at least once, and return the times of the calls.

    Creating arguments between the calls, and copying them to JAX's device, is not counted.
    """
    (bench,) = (b for b in benchmarks(suite, kernel) if b.name == kernel)
    inputs = bench.inputs(size)
    start = time.perf_counter()
    used = framework(name, size)
    function = bench.version(ending)
    if isinstance(used, DCArray):
        function = used.dc.accelerate(function)
    before = spent = time.perf_counter() - start
    taken: list[float] = []
    while not taken or (spent < seconds and len(taken) < MOST):
        arguments = used.arguments(bench, inputs)
        start = time.perf_counter()
        result = used.call(function, arguments)
        taken.append(time.perf_counter() - start)
        spent += taken[-1]
    told = {"before": before, "times": taken, "wrong": ""}
    if name != "numpy":
        got = [used.on_host(one) for one in bench.outputs(result, arguments)]
        plain = Framework("numpy").arguments(bench, inputs)
        expected = bench.outputs(bench.version("numpy")(*plain.values()), plain)
        told["wrong"] = compare(expected, got, bench.tolerances(), used.exact_kinds, used.any_order)[0]
    return told


def main() -> int:
    """Print `times` as JSON; the command's arguments are ``suite kernel size framework ending seconds``."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what kernels print
    suite, kernel, size, name, ending, seconds = sys.argv[1:]
    print(json.dumps(times(Path(suite), kernel, size, name, ending, float(seconds))), file=answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
