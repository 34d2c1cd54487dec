"""Matrix products compared with the peak rate of multiply-adds that the machine reaches.

The peak is that of a loop which only multiplies and adds vectors in registers, on as many threads as there
are cores, timed alternately with the products.
"""

from __future__ import annotations

import ctypes
import statistics
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import llvmlite.binding as llvm
import numpy as np

import dcarray as dc

from .measure import PAUSE, Job, Row, cores, in_turns, ratio

__all__ = ["MultiplyAdds", "rows"]

_SUMS = 12  # at once: a sum waits for itself four cycles or five, and a core begins two multiply-adds in each
_LEAST = 0.75  # OpenBLAS reaches more on two threads, less than nine tenths


def _width() -> int:
    """Return the number of float64 elements in a SIMD vector of this machine."""
    has = llvm.get_host_cpu_features()
    return 8 if has.get("avx512f") else 4 if has.get("avx") else 2


def _source(width: int) -> str:
    """Return LLVM IR of ``multiply_adds(n, x, out)``: n times ``sum = sum * x + x`` for several vector
    sums."""
    vector = f"<{width} x double>"
    name = f"@llvm.fma.v{width}f64"
    sums = range(_SUMS)
    start = [f"  %s{k} = phi {vector} [ zeroinitializer, %entry ], [ %t{k}, %loop ]" for k in sums]
    turn = [f"  %t{k} = call {vector} {name}({vector} %s{k}, {vector} %v, {vector} %v)" for k in sums]
    ends = [f"  %p{k} = getelementptr {vector}, ptr %out, i64 {k}" for k in sums]
    ends += [f"  store {vector} %t{k}, ptr %p{k}" for k in sums]
    return "\n".join([
        f"declare {vector} {name}({vector}, {vector}, {vector})",
        "define void @multiply_adds(i64 %n, double %x, ptr %out) {", "entry:",
        f"  %one = insertelement {vector} poison, double %x, i64 0",
        f"  %v = shufflevector {vector} %one, {vector} poison, <{width} x i32> zeroinitializer",
        "  br label %loop", "loop:", "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]", *start, *turn,
        "  %next = add i64 %i, 1", "  %more = icmp slt i64 %next, %n",
        "  br i1 %more, label %loop, label %done", "done:", *ends, "  ret void", "}",
    ])  # fmt: skip


class MultiplyAdds:
    """A callable that runs a number of multiply-adds on every core; `flops`: the operations of a call."""

    def __init__(self, turns: int) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        width = _width()
        features = llvm.get_host_cpu_features().flatten()
        machine = llvm.Target.from_default_triple().create_target_machine(
            llvm.get_host_cpu_name(), features, opt=2
        )
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_source(width)), machine)
        self._engine.finalize_object()
        kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_double, ctypes.c_void_p)
        self._work = kind(self._engine.get_function_address("multiply_adds"))
        self._turns, self._pool = turns, ThreadPoolExecutor(cores())
        self._out = [np.zeros(_SUMS * width + 8) for _ in range(cores())]
        self.flops = 2 * _SUMS * width * turns * cores()

    def __call__(self) -> None:
        list(self._pool.map(self._one, self._out))

    def _one(self, out: Any) -> None:
        aligned = (out.ctypes.data + 63) & -64
        self._work(self._turns, 0.5, aligned)


def rows(scale: float, rounds: int) -> Iterator[Row]:
    """Yield the fraction of the peak that a product of square matrices reaches."""
    n = int(2000 * scale**0.5)
    ceiling = MultiplyAdds(max(1, n**3 // (_SUMS * _width() * cores())))
    rng = np.random.default_rng(5)
    a, b = rng.random((n, n)), rng.random((n, n))
    x, y = dc.asarray(a.copy()), dc.asarray(b.copy())

    def ours() -> object:
        with dc.options(jit="eager"):
            return dc.evaluate(x @ y)

    jobs: dict[str, Job] = {"numpy": lambda: a @ b, "dcarray": ours, "ceiling": ceiling}
    times = in_turns(jobs, rounds, pause=PAUSE)
    flops = {"numpy": 2 * n**3, "dcarray": 2 * n**3, "ceiling": ceiling.flops}
    rates = {name: statistics.median(flops[name] / t for t in times[name]) / 1e9 for name in jobs}
    share = ratio(times, "ceiling", "dcarray") * 2 * n**3 / ceiling.flops
    detail = ", ".join(f"{name} {rate:.0f}" for name, rate in rates.items())
    yield Row(f"product of {n:,} x {n:,}, f8", share, "of multiply-adds", _LEAST, True, f"Gflop/s: {detail}")
