"""The thread pool: many launches, many launching threads, fork, the end of the process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from dcarray.lowering import kernel as k
from dcarray.lowering import target

WORTH = 1 << 20  # work of one iteration that makes any launch parallel


@cache
def increment() -> Any:
    """A launch that adds 1.0 to each element."""
    at = k.affine(0, k.Term(1, None, "i"))
    d = np.dtype("d")
    one = k.Lit(np.float64(1).tobytes(), d)
    body = (k.Store("p0", at, k.Op("add", (k.Elem("p0", at, d), one), d)),)
    phase = k.Phase("i", k.affine(0, k.Term(1, "n0")), "vector", body)
    kernel = k.Kernel((k.Buffer("p0", d, "rw"),), ("n0",), (phase,))
    cpu = target.get("cpu")
    return cpu.load(kernel, cpu.compile(cpu.emit(kernel)))


def job(x: np.ndarray[Any, Any], threads: int) -> Callable[[], int]:
    launch = increment()
    packed = launch.pack(x.size, WORTH, x.ctypes.data, x.size)
    return lambda: launch(packed, threads)


@pytest.mark.parametrize("threads", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("size", [1, 2, 63, 64, 1000, 12345])
def test_every_element_once(threads: int, size: int) -> None:
    x = np.zeros(size + 2)
    inner = x[1:-1]
    run = job(inner, threads)
    for _ in range(50):
        assert run() == 0
    assert (inner == 50).all() and x[0] == x[-1] == 0


def test_workers_wake_after_sleep() -> None:
    x = np.zeros(1000)
    run = job(x, 2)
    for _ in range(5):
        run()
        time.sleep(0.002)
    assert (x == 5).all()


def test_launches_from_many_threads() -> None:
    arrays = [np.zeros(500) for _ in range(6)]

    def repeat(x: np.ndarray[Any, Any]) -> None:
        run = job(x, 2)
        for _ in range(300):
            run()

    workers = [threading.Thread(target=repeat, args=(x,)) for x in arrays]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all((x == 300).all() for x in arrays)


def test_a_launch_is_cheap() -> None:
    x = np.zeros(10)
    launch = increment()
    best = 1.0
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(100):
            launch(launch.pack(10, 1, x.ctypes.data, 10), 2)
        best = min(best, (time.perf_counter() - start) / 100)
    assert best < 20e-6  # about one microsecond when nothing else runs


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_makes_its_own_pool() -> None:
    x = np.zeros(1000)
    run = job(x, 2)
    run()
    child = os.fork()
    if child == 0:
        for _ in range(100):
            run()
        os._exit(0 if (x == 101).all() else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    run()
    assert (x == 2).all()


def test_the_process_ends_quietly() -> None:
    """With workers awake, asleep, and launches after the pool has stopped."""
    program = """
import atexit, sys, time
import numpy as np
sys.path.insert(0, sys.argv[1])
x = np.zeros(1000)
atexit.register(lambda: (run(), print(int(x[0] == x[-1] == 2))))
import test_llvm_threads as t
run = t.job(x, 4)
run()
time.sleep(float(sys.argv[2]))
"""
    for pause in ("0", "0.05"):
        done = subprocess.run(
            [sys.executable, "-c", program, os.path.dirname(__file__), pause],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        assert (done.stdout, done.stderr) == ("1\n", "")


def test_a_senseless_number_of_threads() -> None:
    x = np.zeros(5000)
    run = job(x, 10**6)
    run()
    run()
    assert (x == 2).all()
