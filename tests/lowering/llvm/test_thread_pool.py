"""Launches on threads: many of them, many calling threads, fork, the end of the process."""

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

from dcarray.core.native import BUILT
from dcarray.lowering import targets
from dcarray.lowering.kernel import nodes as k
from dcarray.lowering.kernel.flags import INVALID
from dcarray.lowering.runtime import threads as pool

pytestmark = pytest.mark.skipif(not BUILT, reason="the C module has the threads")

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
    cpu = targets.get("cpu")
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
import test_thread_pool as t
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


def test_without_the_module_the_calling_thread_does_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "native", None)
    x, silent = np.zeros(1000), np.full(10, 0x7FF0000000000001).view("d")  # signalling
    assert job(x, 4)() == 0 and (x == 1).all()
    assert job(silent, 4)() == INVALID and job(x, 4)() == 0
    assert increment().repeat is None


# ---- turns of a loop ----------------------------------------------------------------------------------
def turns(x: np.ndarray[Any, Any], extent: Callable[[int], int], work: Callable[[int], int]) -> Any:
    """A launch with what it is given in a turn: so many elements, of so much work each."""
    launch = increment()
    return launch, lambda t: launch.pack(extent(t), work(t), x.ctypes.data, extent(t))


@pytest.mark.parametrize("threads", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("size", [1, 2, 63, 1000, 12345])
def test_every_element_once_a_turn(threads: int, size: int) -> None:
    x, y = np.zeros(size + 2), np.zeros(size + 2)
    rows = [turns(inner, lambda t: size, lambda t: WORTH) for inner in (x[1:-1], y[1:-1])]
    for number in (1, 2, 50):
        assert increment().repeat(range(number), threads, rows) == 0
    for each in (x, y):
        assert (each[1:-1] == 53).all() and each[0] == each[-1] == 0


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_turns_of_other_sizes(threads: int) -> None:
    """Some of them are empty, and some too slight for several threads."""
    grows, shrinks, slight = np.zeros(60), np.zeros(90), np.zeros(60)
    rows = [
        turns(grows, lambda t: t, lambda t: WORTH),
        turns(shrinks, lambda t: 30 - t, lambda t: WORTH),
        turns(slight, lambda t: 60, lambda t: t * 500),
    ]
    increment().repeat(range(0, 60, 1), threads, rows)
    np.testing.assert_array_equal(grows, 59 - np.arange(60))
    np.testing.assert_array_equal(shrinks, np.maximum(0, 30 - np.arange(90)))
    assert (slight == 60).all()
    increment().repeat(range(59, -1, -1), threads, rows[:1])
    np.testing.assert_array_equal(grows, 2 * (59 - np.arange(60)))


def test_turns_that_nobody_shares() -> None:
    x = np.zeros(100)
    increment().repeat(range(30), 2, [turns(x, lambda t: 100, lambda t: 1)])
    assert (x == 30).all()


def test_turns_from_many_threads() -> None:
    """One of them has the workers; all others do everything by themselves."""
    arrays = [np.zeros(500) for _ in range(5)]

    def repeat(x: np.ndarray[Any, Any]) -> None:
        for _ in range(20):
            increment().repeat(range(30), 2, [turns(x, lambda t: 500, lambda t: WORTH)] * 2)

    workers = [threading.Thread(target=repeat, args=(x,)) for x in arrays]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all((x == 1200).all() for x in arrays)


@pytest.mark.parametrize("threads", [1, 2])
def test_flags_of_each_launch_are_its_own(threads: int) -> None:
    """What a launch cannot raise is not said of it, whoever raised it in which turn."""
    launch = increment()
    deaf = type(launch).of(launch.parts[0], launch.parts[1], launch.parts[2], 0)
    huge = np.full(1000, np.inf)
    huge[7] = -np.inf
    fine = np.zeros(1000)
    silent = np.frombuffer(np.full(1000, 0x7FF0000000000001).tobytes(), "d").copy()  # signalling
    assert launch.repeat(range(9), threads, [turns(huge, lambda t: 1000, lambda t: WORTH)]) == 0

    def packed(x: np.ndarray[Any, Any]) -> Callable[[int], bytes]:
        return lambda t: launch.pack(1000, WORTH, x.ctypes.data, 1000)

    raised = INVALID
    assert launch.repeat(range(9), threads, [(launch, packed(silent.copy()))]) & raised
    assert not launch.repeat(range(9), threads, [(deaf, packed(silent.copy())), (launch, packed(fine))])
    assert launch.repeat(range(9), threads, [(deaf, packed(fine)), (launch, packed(silent.copy()))]) & raised
