"""Measurement of the host's time for work on a device: ``python -m benchmarks gpu --device null``.

The device computes nothing (`null_device`), so all of the time is spent by Python and dcarray: recording the
calls, looking up the plan, preparing memory and arguments, requesting launches.  The time of NVIDIA's driver,
some microseconds for each launch, is not included.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

import numpy as np

import dcarray as dc
from dcarray.execution.executor import Executor
from dcarray.jit.loops.sites.device_loop_plan import DeviceLoopPlan
from dcarray.lowering.gpu.cuda.device import CudaDevice
from dcarray.lowering.gpu.cuda.graph import LaunchGraph
from dcarray.offload import executor
from dcarray.recording.session import Session

from .measure import Row
from .null_device import install

__all__ = ["parts", "rows"]

RECORDING, LOOP = 12.0, 5.0
"""The targets in microseconds: for a recording of ten statements that has a plan, and for a compiled loop."""
CALLS = 400


def ten(x: Any, y: Any) -> Any:
    """Return an expression of ten statements, which are one kernel."""
    return (x * x + y * y) * 0.5 - x * (y - 1.0) + (x - y) * 0.25


def vectors(a: Any, x: Any) -> Any:
    """Return two products of a matrix and a vector."""
    return (a @ x) @ a


def softmax(x: Any) -> Any:
    """Return a softmax: two reductions along rows between element-wise operations."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def sums(y: Any) -> Any:
    """Return an array after ten dependent sums: one kernel for few elements, else a graph."""
    for _ in range(10):
        y = y - y.sum(keepdims=True) * 1e-6
    return y


def cases() -> dict[str, tuple[Callable[[], Any], float]]:
    """Return the measured functions by name, and the target in microseconds of each (0: none)."""
    device = install().name
    x, y = (dc.asarray(np.ones(1_000_000), device=device) for _ in range(2))
    a, v = dc.asarray(np.ones((2000, 2000)), device=device), dc.asarray(np.ones(2000), device=device)
    loop = dc.accelerate(sums)
    few, many = (dc.asarray(np.ones(n), device=device) for n in (2000, 100_000))
    return {
        "one statement": (partial(np.add, x, y), 0.0),
        "ten statements, one kernel": (partial(ten, x, y), RECORDING),
        "two products": (partial(vectors, a, v), 0.0),
        "softmax, five statements": (partial(softmax, a), 0.0),
        "compiled loop, one kernel": (partial(loop, few), LOOP),
        "compiled loop, a graph": (partial(loop, many), LOOP),
    }


def rows() -> Iterator[Row]:
    """Yield the host time of each case (`cases`), the least of many calls, as a row of the report."""
    for name, (work, aim) in cases().items():
        least = _least(work)
        yield Row(name, least, "us", aim, False, "")


def _least(work: Callable[[], Any]) -> float:
    """Return the least time, in microseconds, of many calls of ``work`` and the evaluation of its result."""
    for _ in range(20):
        dc.evaluate(work())
    best = float("inf")
    for _ in range(CALLS):
        start = time.perf_counter()
        dc.evaluate(work())
        best = min(best, time.perf_counter() - start)
    return best * 1e6


# What is timed, by the part of the work that it is; what these call in turn is taken off.
_PARTS: dict[str, list[tuple[Any, str]]] = {
    "finding the plan": [(Executor, "prepare")],
    "memory and arguments": [(executor, "_run_plan"), (DeviceLoopPlan, "run")],
    "graph": [(LaunchGraph, "__call__")],
    "launches": [(CudaDevice, "launch"), (CudaDevice, "launch_graph")],
    "end of the recording": [(Session, "_end")],
}


def parts() -> Iterator[tuple[str, dict[str, float]]]:
    """Yield for each case the least time of each part of a call, in microseconds.

    The first part is recording the calls, until the result is requested; the last one is the remainder.
    Measuring adds a microsecond or two.
    """
    for name, (work, _) in cases().items():
        _least(work)
        found: dict[str, float] = {}
        with _timed() as spent:
            for _ in range(CALLS):
                spent.clear()
                start = time.perf_counter()
                made = work()
                called = time.perf_counter()
                inside = sum(spent.values())
                dc.evaluate(made)
                total = time.perf_counter() - start
                here = {"calls": called - start - inside, **{part: spent.get(part, 0.0) for part in _PARTS}}
                here["rest"] = total - sum(here.values())
                for part, seconds in here.items():
                    found[part] = min(found.get(part, float("inf")), seconds * 1e6)
        yield name, found


@contextmanager
def _timed() -> Iterator[dict[str, float]]:
    """A context that times the functions of all parts; its value maps parts to seconds, callees excluded."""
    spent: dict[str, float] = {}
    inner: list[float] = []  # of each function that runs, the seconds of those that it has called
    before = [(owner, name, getattr(owner, name)) for pairs in _PARTS.values() for owner, name in pairs]

    def clocked(part: str, function: Any) -> Any:
        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            inner.append(0.0)
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                took = time.perf_counter() - start
                spent[part] = spent.get(part, 0.0) + took - inner.pop()
                if inner:
                    inner[-1] += took

        return run

    for part, pairs in _PARTS.items():
        for owner, name in pairs:
            setattr(owner, name, clocked(part, getattr(owner, name)))
    try:
        yield spent
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)
