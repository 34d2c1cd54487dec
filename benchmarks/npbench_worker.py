"""The process in which one framework runs one benchmark.

It answers each line of its standard input with one line.  What kernels and libraries print goes to
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
    """How a version of a benchmark is called: what happens before and after the clock runs."""

    any_order = False
    exact_kinds = False

    def versions(self, bench: Benchmark) -> list[tuple[str, Callable[..., Any]]]:
        """Names and functions."""
        return list(bench.versions(self.name))

    def __init__(self, name: str) -> None:
        self.name = name

    def arguments(self, bench: Benchmark, inputs: dict[str, Any]) -> dict[str, Any]:
        """Fresh arguments for one call; not timed."""
        return bench.copies(inputs)

    def placed(self, arguments: dict[str, Any]) -> None:
        """Return when arguments are where a call uses them."""

    def call(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """The call that is timed."""
        return function(*arguments.values())

    def on_host(self, output: Any) -> Any:
        """Return an output as `compare` takes it."""
        return output

    def notes(self) -> list[str]:
        """What to tell about the calls so far."""
        return []

    def settled(self) -> object:
        """Something that no longer changes when the framework has warmed up."""
        return None

    def wait(self) -> None:
        """Return when what calls so far have asked for beside the program is there."""


class DCArray(Framework):
    """NumPy's version, unmodified, under ``dc.accelerate``: plain arrays in, plain evaluated arrays out."""

    exact_kinds = True

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.dc = importlib.import_module("dcarray")

    def versions(self, bench: Benchmark) -> list[tuple[str, Callable[..., Any]]]:
        """One."""
        return [(name, self.dc.accelerate(function)) for name, function in bench.versions(self.name)]

    def notes(self) -> list[str]:
        """Calls for which a lowering is missing."""
        return [
            f"{f.count} x {f.function} at {f.where} through NumPy"
            for f in self.dc.report().fallbacks
            if f.kind == "fallback"
        ]

    def settled(self) -> object:
        """Nothing is compiled or interpreted any more, nor about to be."""
        if not self.dc.wait(0):
            return object()  # like no other
        report = self.dc.report()
        return report.compiles, report.disk_hits, report.interpreted, report.waiting

    def wait(self) -> None:
        """Plans and kernels."""
        self.dc.wait()


class OnDevice(DCArray):
    """The same with arrays on the device of the option beforehand, to the end of the device's work."""

    def arguments(self, bench: Benchmark, inputs: dict[str, Any]) -> dict[str, Any]:
        """Wrapped arrays, copied to the device."""
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
    """Arrays are on the GPU before the clock runs, which stops when its queue is empty."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.cupy = importlib.import_module("cupy")

    def arguments(self, bench: Benchmark, inputs: dict[str, Any]) -> dict[str, Any]:
        """Arrays of CuPy."""
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
        """Return an output as NumPy's."""
        return self.cupy.asnumpy(output)


class JAX(Framework):
    """Arrays are on the device before the clock runs, and results ready when it stops."""

    any_order = True

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.jax = importlib.import_module("jax")
        self.jax.config.update("jax_enable_x64", True)

    def arguments(self, bench: Benchmark, inputs: dict[str, Any]) -> dict[str, Any]:
        """Arrays of JAX."""
        array = importlib.import_module("jax.numpy").array
        arrays = bench.info["array_args"]
        made = {name: array(v) if name in arrays else v for name, v in inputs.items()}
        self.placed(made)
        return made

    def placed(self, arguments: dict[str, Any]) -> None:
        """Return when arrays are ready."""
        self.jax.block_until_ready(arguments)

    def call(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Return the result when the device has no more work."""
        return self.jax.block_until_ready(function(*arguments.values()))


class TheirOwn(Framework):
    """A framework as NPBench's own classes run it."""

    def versions(self, bench: Benchmark) -> list[tuple[str, Callable[..., Any]]]:
        """As NPBench finds (and compiles) them."""
        sys.path.insert(0, str(bench.suite))
        infrastructure = importlib.import_module("npbench.infrastructure")
        framework = infrastructure.generate_framework({"dace": "dace_cpu"}.get(self.name, self.name))
        found = framework.implementations(infrastructure.Benchmark(bench.name))
        return [(name, function) for function, name in found]


class DaCe(TheirOwn):
    """Programs that also want the sizes that their arrays' shapes are made of, and all by name."""

    def __init__(self, name: str, size: str) -> None:
        super().__init__(name)
        self.size = size

    def arguments(self, bench: Benchmark, inputs: dict[str, Any]) -> dict[str, Any]:
        """The benchmark's own arguments, and its other parameters."""
        return {**bench.info["parameters"][self.size], **super().arguments(bench, inputs)}

    def call(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """By name."""
        return function(**arguments)


def framework(name: str, size: str) -> Framework:
    """The framework called ``name``, for inputs of that size."""
    if name == "dace":
        return DaCe(name, size)
    kinds: dict[str, type[Framework]] = {"dcarray": DCArray, "device": OnDevice, "cupy": CuPy, "jax": JAX}
    return kinds.get(name, Framework if name in VERSIONS else TheirOwn)(name)


class Worker:
    """One benchmark, one framework, one process."""

    def __init__(self, suite: Path, bench: str, size: str, name: str, folder: str = "") -> None:
        (self.bench,) = (b for b in benchmarks(suite, bench) if b.name == bench)
        self.inputs = self.bench.kept(size, Path(folder)) if folder else self.bench.inputs(size)
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
        """Call every version, check it against NumPy's outputs (or write these down); keep the fastest."""
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
        """Call until nothing changes any more, at least twice; at most ``seconds`` long."""
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
    """Serve ``suite bench size framework [inputs]`` (the arguments) until the input ends."""
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
