"""Timing on noisy machines: contenders run alternately, and only ratios within a round are compared."""

from __future__ import annotations

import compileall
import contextlib
import importlib.util
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

Job = Callable[[], object]
PAUSE = 0.2  # seconds: idle threads of BLAS keep a core busy for 0.12


@dataclass
class Row:
    """A line of the table: a figure, its limit (a minimum if `at_least`, else a maximum)."""

    name: str
    value: float
    unit: str
    limit: float
    at_least: bool
    detail: str = ""

    @property
    def holds(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def seconds(job: Job, repeat: int = 1) -> float:
    """Return the time of one call of ``job``, the mean of ``repeat`` calls, in seconds."""
    start = time.perf_counter()
    for _ in range(repeat):
        job()
    return (time.perf_counter() - start) / repeat


def in_turns(
    jobs: Mapping[str, Job], rounds: int, repeat: int = 1, pause: float = 0.0
) -> dict[str, list[float]]:
    """Return the times of every job, called once a round after two calls that are not counted.

    Before each call there is a pause, in seconds: BLAS threads occupy cores for some time after their work.
    """
    for job in jobs.values():
        job()
        job()
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            time.sleep(pause)
            times[name].append(seconds(job, repeat))
    return times


def ratio(times: Mapping[str, Sequence[float]], over: str, under: str) -> float:
    """Return the median over the rounds of the time of ``over`` divided by that of ``under``."""
    return statistics.median(a / b for a, b in zip(times[over], times[under], strict=True))


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median, and the bounds of its confidence interval of at least 95% (if few: all values)."""
    ordered = sorted(values)
    n, k, tail = len(ordered), 0, 0.0
    while k < n // 2 and tail + math.comb(n, k) / 2**n <= 0.025:
        tail += math.comb(n, k) / 2**n
        k += 1
    low = max(k - 1, 0)
    return statistics.median(ordered), ordered[low], ordered[n - 1 - low]


def child(code: str, env: Mapping[str, str] | None = None) -> str:
    """Run ``code`` in a new interpreter, and return its standard output.

    Raises
    ------
    RuntimeError
        If the process fails; the message is its standard error.
    """
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, **(env or {})},
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"exit status {done.returncode}")
    return done.stdout.strip()


def with_bytecode() -> None:
    """Compile the package's files to bytecode, as an installation does."""
    package = importlib.util.find_spec("dcarray")
    for folder in (package and package.submodule_search_locations) or ():
        compileall.compile_dir(folder, quiet=2)


_BUSY = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(100_000):
        pass
"""


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """A context in which ``count`` other processes keep processors busy."""
    beside = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in beside:
            process.kill()
            process.wait()


@contextlib.contextmanager
def one_core(wanted: bool = True) -> Iterator[None]:
    """A context in which this process, and those that it starts, are bound to one processor.

    Raises
    ------
    OSError
        If the system cannot bind processes.
    """
    if not wanted:
        yield
        return
    if not own_cores():
        raise OSError("processes cannot be bound to a processor on this system")
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, own_cores()[:1])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def own_cores() -> list[int]:
    """Return one processor number of each usable core; empty if the system cannot bind processes."""
    if not hasattr(os, "sched_setaffinity"):
        return []
    found: dict[str, int] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        found.setdefault(siblings.read_text() if siblings.exists() else str(cpu), cpu)
    return list(found.values())


# processors of one name differ in these: the widest first
_REGISTERS = {"avx512f": "AVX-512", "avx2": "AVX2"}


def machine() -> dict[str, str]:
    """Return a description of this machine and the versions of packages."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line.partition(":") for line in info.read_text().splitlines()]
        said = {name.strip(): value.strip() for name, _, value in lines}
        cpu, flags = said.get("model name", cpu), said.get("flags", "").split()
        widest = [name for flag, name in _REGISTERS.items() if flag in flags]
        cpu += f" ({widest[0]})" if widest else ""
    found = {"cpu": cpu, "cores": str(cores()), "python": platform.python_version()}
    for package in ("dcarray", "numpy", "llvmlite", "numba", "jax"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def described(here: Mapping[str, str]) -> str:
    """Return the description of `machine` on one line, without packages that are not installed."""
    packages = [f"{name} {version}" for name, version in here.items() if name not in ("cpu", "cores")]
    installed = [package for package in packages if not package.endswith("not installed")]
    return f"{here['cpu']}, {here['cores']} cores; {', '.join(installed)}"
