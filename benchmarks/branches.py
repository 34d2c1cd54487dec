"""Independent chains of small kernels in one graph: whether they overlap."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from dcarray.ir.parse import parse
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.gpu import devices

from .measure import Row, in_turns, ratio

__all__ = ["rows"]

_CALLS = 10

CHAINS = "region(N: int>=1) {{\n  in x: f64[N];  {};  {}\n{}}}".format(
    "; ".join(f"temp t{k}: f64[N]" for k in range(8)),
    "; ".join(f"out o{k}: f64[N]" for k in range(8)),
    "".join(
        f"  t{k}[i] = sqrt(add(x[i], {k}.0)) for i<N\n  o{k}[i] = divide(t{k}[i], t{k}[N-1-i]) for i<N\n"
        for k in range(8)
    ),
)
"""Eight independent chains of two kernels each."""


def rows(name: str, rounds: int) -> Iterator[Row]:
    """The plan of `CHAINS` as a graph, against one that is so short of memory that it orders all chains, and
    against kernels one by one.  A run is nothing but the launch."""
    plan, device = compile_region(parse(CHAINS), "cuda"), devices.get(name)

    def run(buffers: list[Any], elements: int, graphs: bool, bound: int | None) -> None:
        device.graphs, device.graph_memory = graphs, bound
        with device.running():
            for _ in range(_CALLS):
                plan.run((), buffers, (elements,), device)
            device.synchronise()

    for elements in (1000, 10_000, 100_000, 1_000_000):
        buffers = [device.allocate(8 * elements) for _ in plan.arrays]
        device.upload(np.linspace(0.0, 1.0, elements), buffers[plan.arrays.index("x")])
        ways = {"free": (True, None), "in order": (True, 1), "one by one": (False, None)}
        jobs = {way: partial(run, buffers, elements, *how) for way, how in ways.items()}
        for job in jobs.values():
            job()
        times = in_turns(jobs, rounds)
        detail = ", ".join(f"{way} {min(took) / _CALLS * 1e6:.0f} us" for way, took in times.items())
        for way in ("in order", "one by one"):
            title = f"eight chains of {elements:,}, {way}"
            yield Row(title, ratio(times, way, "free"), "x", 0.0, True, detail)
