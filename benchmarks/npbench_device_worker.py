"""The process that runs one benchmark of NPBench with each framework on a device, alternately.

It prepares inputs on the host, reports that it is ready, and waits for a line on its standard input before it
uses the device, so that processes can prepare in parallel and measure one after the other.  Then it prints a
line for each event: the outcome of a framework's first calls, and the seconds of its later calls.  Output of
kernels and libraries is redirected to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .npbench_suite import Benchmark, benchmarks, compare
from .npbench_worker import Framework, framework

CALLS = 200
"""Calls of a turn, at most."""
WARM = 3.0
"""Seconds of calls before the first turn, at most, while plans are made."""


class Contender:
    """A framework with the fastest of its versions of one benchmark."""

    def __init__(self, bench: Benchmark, name: str, size: str) -> None:
        self.bench, self.name = bench, name
        self.framework: Framework = framework(name, size)
        self.function: Callable[..., Any] | None = None
        self.kept: dict[str, Any] = {}  # arguments that no call has changed

    def timed(self, function: Callable[..., Any], inputs: dict[str, Any]) -> tuple[float, list[Any]]:
        """Call a function with new arguments; return the seconds, and the outputs on the device."""
        if not self.kept:
            self.kept = self.framework.arguments(self.bench, inputs)
        arrays = self.bench.info["array_args"]
        arguments = {name: value.copy() if name in arrays else value for name, value in self.kept.items()}
        self.framework.placed(arguments)
        start = time.perf_counter()
        result = self.framework.call(function, arguments)
        return time.perf_counter() - start, self.bench.outputs(result, arguments)

    def first(self, inputs: dict[str, Any], expected: list[Any] | None) -> tuple[dict[str, Any], list[Any]]:
        """Call each version twice, compare the results of the second calls, and keep the fastest right one.

        Returns
        -------
        dict
            ``seconds`` of the second call, or the error as ``wrong``.
        list
            The outputs, on the host.
        """
        told: dict[str, Any] = {"wrong": "no version"}
        kept: list[Any] = []
        for _, function in self.framework.versions(self.bench):
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    self.timed(function, inputs)
                    seconds, got = self.timed(function, inputs)
                    outputs = [self.framework.on_host(one) for one in got]
                wrong = self.difference(expected, outputs)
            except Exception as problem:  # a peer's failure is a result
                wrong = f"{type(problem).__name__}: {problem}".splitlines()[0]
            if not wrong and seconds < told.get("seconds", float("inf")):
                told, kept, self.function = {"seconds": seconds}, outputs, function
            elif wrong and self.function is None:
                told = {"wrong": wrong}
        return told, kept

    def difference(self, expected: list[Any] | None, outputs: list[Any]) -> str:
        """Return how outputs differ by NPBench's tolerances, or ""; also "" if there is no reference."""
        if expected is None:
            return ""
        any_order = self.framework.any_order
        return compare(expected, outputs, self.bench.tolerances(), False, any_order)[0]

    def warm(self, inputs: dict[str, Any], seconds: float) -> None:
        """Call the function until nothing is compiled any more, for at most ``seconds``."""
        assert self.function is not None
        end, steady = time.perf_counter() + seconds, 0
        while steady < 2 and time.perf_counter() < end:
            before = self.framework.settled()
            self.timed(self.function, inputs)
            self.framework.wait()
            steady = steady + 1 if self.framework.settled() == before else 0

    def turn(self, inputs: dict[str, Any], seconds: float) -> list[float]:
        """Call the function at least twice, for about ``seconds``; return the time of each call."""
        assert self.function is not None
        times: list[float] = []
        end = time.perf_counter() + seconds
        while len(times) < 2 or (time.perf_counter() < end and len(times) < CALLS):
            times.append(self.timed(self.function, inputs)[0])
        return times


def main() -> int:
    """Run the process; the command's arguments are ``suite bench size names rounds seconds``."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def tell(**event: Any) -> None:
        print(json.dumps(event), file=answers, flush=True)

    suite, name, size, names, rounds, seconds = sys.argv[1:]
    (bench,) = (one for one in benchmarks(Path(suite), name) if one.name == name)
    inputs = bench.inputs(size)
    contenders = [Contender(bench, one, size) for one in names.split(",")]
    tell(ready=True)
    sys.stdin.readline()
    expected: list[Any] | None = None
    for one in contenders:
        told, outputs = one.first(inputs, expected)
        tell(framework=one.name, **told)
        if expected is None and one.function is not None:
            expected = [np.array(output) for output in outputs]
        if one.function is not None:
            with np.errstate(all="ignore"):
                one.warm(inputs, WARM)
    running = [one for one in contenders if one.function is not None]
    with np.errstate(all="ignore"):
        for turn in range(int(rounds)):
            for one in running:
                tell(turn=turn, framework=one.name, times=one.turn(inputs, float(seconds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
