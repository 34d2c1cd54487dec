"""Compares alternating kernels and matrix products with each of the two alone.

Two libraries with separate thread pools may compete for cores: threads of one that wait busily for work take
time from threads of the other.  A program that mixes both should take no longer than its parts alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import dcarray as dc

from .measure import Job, Row, in_turns

__all__ = ["rows"]

_TURNS = 20
_LIMIT = 1.1  # of the sum of both: each finds the caches as the other has left them


def rows(scale: float, rounds: int) -> Iterator[Row]:
    """Yield figures for products of dcarray's and of NumPy's arrays, large and small."""
    rng = np.random.default_rng(3)
    x = dc.asarray(rng.random(int(1_000_000 * scale)))
    for side in (600, 150):
        a, b = rng.random((side, side)), rng.random((side, side))
        ours, plain = (dc.asarray(a.copy()), dc.asarray(b.copy())), (a, b)
        for owner, (left, right) in (("ours", ours), ("plain", plain)):
            yield _row(f"kernels and {owner} {side} x {side} in turns", _jobs(x, left, right), rounds)


def _jobs(x: Any, left: Any, right: Any) -> dict[str, Job]:
    def kernel() -> object:
        return dc.evaluate(np.sqrt(np.exp(-x) + x * x) * 0.5)

    def product() -> object:
        return dc.evaluate(left @ right)

    def repeated(*parts: Callable[[], object]) -> Job:
        def job() -> None:
            with dc.options(jit="eager"):
                for _ in range(_TURNS):
                    for part in parts:
                        part()

        return job

    return {"kernels": repeated(kernel), "products": repeated(product), "mixed": repeated(kernel, product)}


def _row(name: str, jobs: dict[str, Job], rounds: int) -> Row:
    times = in_turns(jobs, rounds)
    turns = zip(times["kernels"], times["products"], times["mixed"], strict=True)
    shares = [both / (kernels + products) for kernels, products, both in turns]
    apart = " and ".join(f"{min(times[part]) / _TURNS * 1e3:.2f} ms" for part in ("kernels", "products"))
    return Row(name, statistics.median(shares), "x both apart", _LIMIT, False, f"apart {apart}")
