"""The process that runs one benchmark with one framework.

It answers each line of its standard input with one line.  Output of kernels and libraries is redirected to
standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .npbench_suite import VERSIONS, Benchmark, benchmarks, compare


class Framework:
    """The way to call a benchmark with a framework, with the preparations outside of the timed part."""

    any_order = False
    exact_kinds = False

    def versions(self, bench: Benchmark) -> list[tuple[str, Callable[..., Any]]]:
        """Return the names and functions of the benchmark's versions."""
        return list(bench.versions(self.name))

    def __init__(self, name: str) -> None:
        self.name = name

    def arguments(self, bench: Benchmark, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return new arguments for one call; not timed."""
        return bench.copies(inputs)

    def placed(self, arguments: dict[str, Any]) -> None:
        """Wait until the arguments are in the memory in which a call uses them."""

    def call(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Call the function and return its result; this is timed."""
        return function(*arguments.values())

    def on_host(self, output: Any) -> Any:
        """Return an output as a NumPy array, for `compare`."""
        return output

    def notes(self) -> list[str]:
        """Return notes for the report about the calls so far."""
        return []

    def settled(self) -> object:
        """Return a value that stays the same once the framework has warmed up."""
        return None

    def wait(self) -> None:
        """Wait for work in the background that calls have started, such as compilation."""


class DCArray(Framework):
    """The NumPy version, unmodified, under ``dc.accelerate``: arguments and results are NumPy's arrays."""

    exact_kinds = True

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.dc = importlib.import_module("dcarray")

    def versions(self, bench: Benchmark) -> list[tuple[str, Callable[..., Any]]]:
        """Return the only version, accelerated."""
        return [(name, self.dc.accelerate(function)) for name, function in bench.versions(self.name)]

    def notes(self) -> list[str]:
        """Return notes on calls that run through NumPy because dcarray cannot compile them."""
        return [
            f"{f.count} x {f.function} at {f.where} through NumPy"
            for f in self.dc.report().fallbacks
            if f.kind == "fallback"
        ]

    def settled(self) -> object:
        """Return a value that stays the same once nothing is compiled or interpreted any more."""
        if not self.dc.wait(0):
            return object()  # like no other
        report = self.dc.report()
        return report.compiles, report.disk_hits, report.interpreted, report.waiting

    def wait(self) -> None:
        """Wait for plans and kernels."""
        self.dc.wait()


class OnDevice(DCArray):
    """The same with arrays on a device before the call, timed to the end of the device's work."""

    def arguments(self, bench: Benchmark, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return dcarray's arrays, copied to the device."""
        arrays = bench.info["array_args"]
        made = super().arguments(bench, inputs)
        placed = {n: self.dc.asarray(v) if isinstance(v, np.ndarray) else v for n, v in made.items()}
        made = {name: placed[name] if name in arrays else v for name, v in made.items()}
        self.placed(made)
        return made

    def placed(self, arguments: dict[str, Any]) -> None:
        """Return when the queue is empty."""
        self.dc.evaluate(arguments)
        self.dc.wait()

    def call(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Return the result when the device has no more work."""
        result = function(*arguments.values())
        self.dc.evaluate(result, arguments)
        self.dc.wait()
        return result


class CuPy(Framework):
    """CuPy: arrays are on the GPU before the call, timed to the end of the GPU's work."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.cupy = importlib.import_module("cupy")

    def arguments(self, bench: Benchmark, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return CuPy's arrays."""
        arrays = bench.info["array_args"]
        made = {n: self.cupy.asarray(v) if n in arrays else v for n, v in bench.copies(inputs).items()}
        self.placed(made)
        return made

    def placed(self, arguments: dict[str, Any]) -> None:
        """Return when the queue is empty."""
        self.cupy.cuda.Device().synchronize()

    def call(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Return the result when the device has no more work."""
        result = function(*arguments.values())
        self.cupy.cuda.Device().synchronize()
        return result

    def on_host(self, output: Any) -> Any:
        """Return an output as a NumPy array."""
        return self.cupy.asnumpy(output)


class JAX(Framework):
    """JAX: arrays are on the device before the call, timed until the results are ready."""

    any_order = True

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.jax = importlib.import_module("jax")
        self.jax.config.update("jax_enable_x64", True)

    def arguments(self, bench: Benchmark, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return JAX's arrays."""
        array = importlib.import_module("jax.numpy").array
        arrays = bench.info["array_args"]
        made = {name: array(v) if name in arrays else v for name, v in inputs.items()}
        self.placed(made)
        return made

    def placed(self, arguments: dict[str, Any]) -> None:
        """Wait until arrays are ready."""
        self.jax.block_until_ready(arguments)

    def call(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Return the result when the device has no more work."""
        return self.jax.block_until_ready(function(*arguments.values()))


class TheirOwn(Framework):
    """A framework run by NPBench's own classes."""

    def versions(self, bench: Benchmark) -> list[tuple[str, Callable[..., Any]]]:
        """Return the versions that NPBench's classes find (and compile)."""
        sys.path.insert(0, str(bench.suite))
        infrastructure = importlib.import_module("npbench.infrastructure")
        framework = infrastructure.generate_framework({"dace": "dace_cpu"}.get(self.name, self.name))
        found = framework.implementations(infrastructure.Benchmark(bench.name))
        return [(name, function) for function, name in found]


class DaCe(TheirOwn):
    """DaCe: programs that also need the sizes in their arrays' shapes, with all arguments by name."""

    def __init__(self, name: str, size: str) -> None:
        super().__init__(name)
        self.size = size

    def arguments(self, bench: Benchmark, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return the benchmark's arguments, and its size parameters."""
        return {**bench.info["parameters"][self.size], **super().arguments(bench, inputs)}

    def call(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Call the function with arguments by name."""
        return function(**arguments)


def framework(name: str, size: str) -> Framework:
    """Return the framework called ``name``, for inputs of a size."""
    if name == "dace":
        return DaCe(name, size)
    kinds: dict[str, type[Framework]] = {"dcarray": DCArray, "device": OnDevice, "cupy": CuPy, "jax": JAX}
    return kinds.get(name, Framework if name in VERSIONS else TheirOwn)(name)


class Worker:
    """The runner of one benchmark with one framework in this process."""

    def __init__(self, suite: Path, bench: str, size: str, name: str) -> None:
        (self.bench,) = (b for b in benchmarks(suite, bench) if b.name == bench)
        self.inputs = self.bench.inputs(size)
        self.framework = framework(name, size)
        self.function: Callable[..., Any] | None = None
        self.worked: list[float] = []

    def _timed(self, function: Callable[..., Any]) -> tuple[float, list[Any]]:
        arguments = self.framework.arguments(self.bench, self.inputs)
        worked, start = time.process_time(), time.perf_counter()
        result = self.framework.call(function, arguments)
        seconds = time.perf_counter() - start
        self.worked.append(time.process_time() - worked)
        return seconds, [self.framework.on_host(one) for one in self.bench.outputs(result, arguments)]

    def first(self, reference: str) -> dict[str, Any]:
        """Call every version, compare with NumPy's outputs (or save these), and keep the fastest."""
        tried: list[dict[str, Any]] = []
        best = float("inf")
        expected: list[Any] | None = None
        if os.path.exists(reference):
            with open(reference, "rb") as file:
                expected = pickle.load(file)
        for name, function in self.framework.versions(self.bench):
            told: dict[str, Any] = {"version": name}
            tried.append(told)
            try:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("default")
                    told["first"], got = self._timed(function)
                told["warnings"] = sorted({str(w.message).splitlines()[0] for w in caught})
                if expected is None:
                    with open(reference, "wb") as out:
                        pickle.dump([np.asarray(x) for x in got], out)
                else:
                    kinds, order = self.framework.exact_kinds, self.framework.any_order
                    limits = self.bench.tolerances()
                    told["wrong"], told["error"] = compare(expected, got, limits, kinds, order)
                    if told["wrong"]:
                        continue
                told["second"], got = self._timed(function)
                if expected is not None:  # by now it may have been compiled
                    told["wrong"], told["error"] = compare(expected, got, limits, kinds, order)
                    if told["wrong"]:
                        continue
            except Exception as problem:  # a peer's failure is a result, not ours
                told["wrong"] = f"{type(problem).__name__}: {problem}".splitlines()[0]
                continue
            if told["second"] < best:
                best, self.function, first, chosen = told["second"], function, told["first"], told
        if self.function is None:
            return {"versions": tried, "wrong": "; ".join(t["wrong"] for t in tried) or "no version"}
        return {"versions": tried, "version": chosen["version"], "first": first, "second": best,
                "error": chosen.get("error", 0.0), "notes": self.framework.notes()}  # fmt: skip

    def warm(self, seconds: float) -> dict[str, Any]:
        """Call the function at least twice, until nothing is compiled any more, for at most ``seconds``."""
        assert self.function is not None
        end, calls, steady = time.perf_counter() + seconds, 0, 0
        state = self.framework.settled()
        while steady < 2 and (calls < 2 or time.perf_counter() < end):
            self._timed(self.function)
            calls += 1
            steady, state = (steady + 1 if self.framework.settled() == state else 0), self.framework.settled()
        return {"calls": calls, "settled": steady >= 2}

    def run(self, seconds: float) -> dict[str, Any]:
        """Time calls for about ``seconds``, at least one, each with fresh arguments."""
        assert self.function is not None
        times: list[float] = []
        self.worked = []
        end = time.perf_counter() + seconds
        while not times or time.perf_counter() < end:
            times.append(self._timed(self.function)[0])
        return {"times": times, "worked": self.worked}

    def check(self, reference: str) -> dict[str, Any]:
        """Compare one more call with NumPy's outputs."""
        assert self.function is not None
        with open(reference, "rb") as file:
            expected = pickle.load(file)
        got = self._timed(self.function)[1]
        kinds, order = self.framework.exact_kinds, self.framework.any_order
        wrong, error = compare(expected, got, self.bench.tolerances(), kinds, order)
        return {"wrong": wrong, "error": error}


def main() -> int:
    """Answer commands until the input ends; the arguments are ``suite bench size framework``."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    suite, *words = sys.argv[1:]
    try:
        worker = Worker(Path(suite), *words)
    except Exception as problem:
        worker, failure = None, f"{type(problem).__name__}: {problem}"
    for line in sys.stdin:
        action, argument = json.loads(line)
        try:
            answer = getattr(worker, action)(argument) if worker else {"wrong": failure}
        except Exception as problem:
            answer = {"wrong": f"{type(problem).__name__}: {problem}"}
        print(json.dumps(answer), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
