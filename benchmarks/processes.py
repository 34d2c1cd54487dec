"""Measurements in new processes: peak memory, import time, the first plan, and the disk cache."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator

from .measure import Row, child

_MEMORY = """
import numpy as np, dcarray as dc
from benchmarks.speed import chain
def status(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))
n = {n}
with dc.options(jit="eager"):
    dc.evaluate(chain(np, dc.asarray(np.ones(200_000)), dc.asarray(np.ones(200_000))))
    x, y = dc.asarray(np.random.default_rng(1).random(n)), dc.asarray(np.random.default_rng(2).random(n))
    before = status("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the high-water mark starts anew
    result = dc.evaluate(chain(np, x, y))
    print((16 * n + status("VmHWM") - before) / (24 * n))
"""

_CACHE = """
import numpy as np, dcarray as dc
from benchmarks.speed import chain, jacobi, squares
x, y = dc.asarray(np.ones(200_000)), dc.asarray(np.ones(200_000))
dc.evaluate(chain(np, x, y))
dc.evaluate(jacobi(np, x.reshape(400, 500), y.reshape(400, 500)))
float(squares(np, x, y))
print(dc.report().compiles)
"""

_UNPLANNED = """
import time, numpy as np, dcarray as dc
def run(x, y):
    return np.sqrt(x * x + y * y) - 1.0
a, b = np.random.default_rng(1).random(({n}, 2)).T.copy()
x, y = dc.asarray(a.copy()), dc.asarray(b.copy())
start, ratios = time.perf_counter(), []
while not dc.report().kernels and time.perf_counter() - start < 30:
    begin = time.perf_counter()
    for _ in range(20):
        run(a, b)
    middle = time.perf_counter()
    for _ in range(20):
        dc.evaluate(run(x, y))
    ratios.append((time.perf_counter() - middle) / (middle - begin))
print(np.median(ratios), time.perf_counter() - start)
"""


def memory() -> Iterator[Row]:
    """Yield the peak memory of a chain of ten operations, relative to inputs plus output."""
    if sys.platform != "linux":
        return
    n = 20_000_000
    peak = float(child(_MEMORY.format(n=n)))
    yield Row(
        "peak memory, 10 operations", peak, "x (inputs + output)", 1.10, False, f"{n:,} f64, own process"
    )


def imports(rounds: int) -> Iterator[Row]:
    """Yield the seconds that ``import dcarray`` adds to ``import numpy``."""
    extra = []
    for _ in range(rounds):
        times = []
        for module in ("numpy", "dcarray"):
            start = time.perf_counter()
            child(f"import {module}")
            times.append(time.perf_counter() - start)
        extra.append(times[1] - times[0])
    yield Row("import dcarray - import numpy", statistics.median(extra), "s", 0.15, False)


def unplanned(rounds: int) -> Iterator[Row]:
    """Yield the time of operations on 100,000 elements until their plan exists, with empty caches."""
    n, ratios, waited = 100_000, [], []
    for _ in range(rounds):
        taken = child(_UNPLANNED.format(n=n), {"DCARRAY_CACHE_DIR": ""}).split()
        ratios.append(float(taken[0]))
        waited.append(float(taken[1]))
    detail = f"there after {statistics.median(waited):.2f} s, half of which is NumPy's"
    yield Row("5 operations without a plan", statistics.median(ratios), "x NumPy", 1.10, False, detail)


def disk_cache() -> Iterator[Row]:
    """Yield the number of kernels that a second process compiles in spite of the disk cache."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        env = {"DCARRAY_CACHE_DIR": folder, "DCARRAY_JIT": "eager", "DCARRAY_EAGER_BELOW": "0"}
        first, second = (int(child(_CACHE, env).split()[-1]) for _ in range(2))
    detail = f"the first compiled {first}"
    yield Row("kernels compiled by a second process", second, "kernels", 0, False, detail)
