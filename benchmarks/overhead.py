"""Measures overheads on small arrays: recording, flushing, a single call, and a call of a compiled loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import dcarray as dc

from .measure import Row, in_turns, ratio, seconds
from .speed import jacobi


def _best(job: Callable[[], object], repeat: int, rounds: int) -> float:
    """Return the microseconds of a call: the median of some rounds, after one that is not counted."""
    seconds(job, repeat)
    times = sorted(seconds(job, repeat) for _ in range(rounds))
    return times[len(times) // 2] * 1e6


def _swept(a: Any, b: Any, c: Any) -> Any:
    for i in range(1, a.shape[0]):
        c[i] = a[i] * b[i - 1] + c[i - 1]
    return c


def recording(rounds: int) -> Iterator[Row]:
    """Yield the costs of recording an operation, of a flush with a known plan, and of a compiled loop's call.

    The loop has hardly any iterations.
    """
    x, y = (dc.asarray(np.random.default_rng(k).random(1_000_000)) for k in (1, 2))
    yield Row(
        "record x + y", _best(lambda: x + y, 2000, rounds), "us", 2.0, False, "operator, result dropped"
    )
    add = _best(lambda: np.add(x, y), 2000, rounds)
    yield Row("record np.add(x, y)", add, "us", 3.0, False, "result dropped")
    with dc.options(eager_below=0, jit="eager"):
        a, b = (dc.asarray(np.random.default_rng(k).random((150, 150))) for k in (3, 4))
        step = _best(lambda: dc.evaluate(jacobi(np, a, b)), 500, rounds)
    c = np.random.default_rng(3).random((150, 150))
    d = c.copy()
    plain = _best(lambda: jacobi(np, c, d), 500, rounds)
    yield Row("Jacobi statement, 150 x 150", step, "us", 30.0, False, f"with its flush; NumPy {plain:.1f} us")
    u, v, w = (np.random.default_rng(k).random(10) for k in (5, 6, 7))
    sweep = dc.accelerate(_swept)
    _compiled(lambda: sweep(u, v, w))
    call = _best(lambda: sweep(u, v, w), 2000, rounds)
    yield Row("accelerated loop, per call", call, "us", 20.0, False, "three arrays of 10 elements")


def _compiled(job: Callable[[], object]) -> None:
    """Call a function with its kernels compiled at once."""
    with dc.options(jit="eager"):
        job()


def small_calls(rounds: int) -> Iterator[Row]:
    """Yield the times of calls on small arrays of dcarray, relative to the same calls on NumPy's."""
    work: dict[str, Callable[[Any, Any], Any]] = {
        "u + v": lambda u, v: u + v,
        "sqrt(u*u + v*v) - 1": lambda u, v: np.sqrt(u * u + v * v) - 1,
        "float(sum(u))": lambda u, v: float(np.sum(u)),
        "u[1:-1] * 2": lambda u, v: u[1:-1] * 2,
    }
    for n, limit in ((10, 3.0), (1000, 1.5), (100_000, 1.1)):
        a, b = (np.random.default_rng(k).random(n) for k in (1, 2))
        x, y = dc.asarray(a.copy()), dc.asarray(b.copy())
        for name, f in work.items():

            def plain(f: Any = f, a: Any = a, b: Any = b) -> object:
                return f(a, b)

            def wrapped(f: Any = f, x: Any = x, y: Any = y) -> object:
                return dc.evaluate(f(x, y))

            def reduced(f: Any = f, x: Any = x, y: Any = y) -> object:
                return f(x, y)

            ours = reduced if name.startswith("float") else wrapped
            _compiled(ours)
            times = in_turns({"numpy": plain, "dcarray": ours}, rounds, 1000 if n < 10_000 else 100)
            us = {who: sorted(t)[len(t) // 2] * 1e6 for who, t in times.items()}
            yield Row(
                f"{name}, n = {n:,}",
                ratio(times, "dcarray", "numpy"),
                "x NumPy's time",
                limit,
                False,
                f"NumPy {us['numpy']:.2f} us, dcarray {us['dcarray']:.2f} us",
            )
