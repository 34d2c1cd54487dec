"""Launches that lose by sharing run alone for a while; phases are Python functions and know who runs them."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pytest

from dcarray.lowering.cpu.llvm.object_code import engine, linking
from dcarray.lowering.cpu.llvm.thread_pool import pool, threads
from dcarray.lowering.cpu.llvm.thread_pool.layout import OFFSETS, pool_bytes
from dcarray.lowering.cpu.llvm.thread_pool.threads import Launch

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="threads cannot be kept on different processors",
)
PHASE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
GRAIN = 1 << pool.GRAIN_BITS
EXTENT = 64
# Work of an element, so that workers are woken, and chunks are few.
WORK = pool._WORTH_WAKING * GRAIN // EXTENT
SLOW, LATE = 1e-3, 0.06  # seconds of a chunk, and of one of a worker that comes late


class Phase:
    """A phase of a kernel that notes which elements are done, and calls a function of its thread."""

    def __init__(self, caller: Callable[[], object], helper: Callable[[], object]) -> None:
        self.done = np.zeros(EXTENT, int)
        self.helped = 0  # chunks of other threads
        self.caller, self.helper, self.thread = caller, helper, threading.get_ident()
        self.code = PHASE(self._run)
        self.launch = Launch([ctypes.cast(self.code, ctypes.c_void_p).value or 0], 0)

    def _run(self, arguments: object, first: int, end: int) -> int:
        self.done[first:end] += 1
        if threading.get_ident() == self.thread:
            self.caller()
        else:
            self.helped += 1
            self.helper()
        return 0

    def __call__(self, work: int = WORK) -> None:
        self.launch(self.launch.pack(EXTENT, work), 2)

    def repeat(self, times: int) -> None:
        self.launch.repeat(range(times), 2, [(self.launch, lambda t: self.launch.pack(EXTENT, WORK))])


class State:
    """The fields of the state of the pool of two threads."""

    def __getattr__(self, name: str) -> int:
        return ctypes.c_int64.from_address(threads._pool(2) + OFFSETS[name]).value

    def __setattr__(self, name: str, value: int) -> None:
        ctypes.c_int64.from_address(threads._pool(2) + OFFSETS[name]).value = value

    def forget(self) -> None:
        self.COOL = self.REST = self.DEBT = self.GOOD = 0


def now() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


@pytest.fixture
def state() -> Iterator[State]:
    """The state of the pool, whose worker has another processor than the launching thread."""
    found = State()
    found.forget()
    main = threading.get_native_id()
    workers = [
        t.native_id for t in threading.enumerate() if t.name.startswith("dcarray-worker") and t.native_id
    ]
    before = {thread: os.sched_getaffinity(thread) for thread in (main, *workers)}
    first, *others = sorted(before[main])
    for thread in before:
        os.sched_setaffinity(thread, {first} if thread == main else others)
    yield found
    for thread, processors in before.items():
        os.sched_setaffinity(thread, processors)
    found.forget()


def one_is_late(state: State, run: Callable[[Phase], None]) -> Phase:
    """Run phases until a worker has had a part in one, and was late with it: it is not if the launching
    thread had no processor meanwhile."""
    rest, cool = state.REST, state.COOL
    for _ in range(200):
        phase = Phase(lambda: time.sleep(SLOW), lambda: time.sleep(LATE))
        run(phase)
        if phase.helped and state.COOL > 0:
            return phase
        state.REST, state.COOL, state.DEBT = rest, cool, 0
    raise AssertionError("no worker had a part and was late")


def test_after_a_late_worker_launches_run_alone(state: State) -> None:
    phase = one_is_late(state, Phase.__call__)
    assert (phase.done == 1).all() and state.COOL > 0 and state.REST >= pool._COOL_NS
    state.COOL = now() + 10**12
    helped = phase.helped
    for _ in range(5):
        phase()
    assert phase.helped == helped and (phase.done == 6).all()


def test_turns_of_a_loop_run_alone_after_a_late_worker(state: State) -> None:
    phase = one_is_late(state, lambda phase: phase.repeat(3))
    assert (phase.done == 3).all() and state.COOL > 0 and state.REST >= pool._COOL_NS
    state.COOL = now() + 10**12
    helped = phase.helped
    phase.repeat(4)
    assert phase.helped == helped and (phase.done == 7).all()


def test_long_launches_are_shared_all_the_same(state: State) -> None:
    state.COOL = now() + 10**12
    assert one_is_late(state, lambda phase: phase(pool._LONG * GRAIN)).helped


def test_after_the_rest_launches_are_shared_again(state: State) -> None:
    one_is_late(state, Phase.__call__)
    state.COOL = now() - 1
    assert one_is_late(state, Phase.__call__).helped


# ---- what decides -------------------------------------------------------------------------------------
class Judge:
    """The account of a pool that nobody runs on."""

    def __init__(self) -> None:
        text = pool.source().replace("define internal void @judge", "define void @judge")
        (address,) = linking.load(engine.compile_object(text, optimised=False), ("judge",))
        self._judge = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * 3)(address)
        self._memory = ctypes.create_string_buffer(pool_bytes(2) + 64)
        self.now = 10**12

    def field(self, name: str) -> ctypes.c_int64:
        return ctypes.c_int64.from_buffer(self._memory, OFFSETS[name])

    def __call__(self, lost: int, took: int) -> int:
        """Note a job; return for how long jobs run alone from now on."""
        self._judge(ctypes.addressof(self._memory), lost, took, self.now)
        return max(0, self.field("COOL").value - self.now)

    def sleep(self) -> None:
        self.now = max(self.now, self.field("COOL").value)


def test_gains_pay_losses() -> None:
    judge, lost = Judge(), pool._LATE_NS // 2
    for _ in range(20):
        assert judge(lost, 10 * lost) == judge(-lost, 10 * lost) == 0
    assert [judge(lost, lost) > 0 for _ in range(3)] == [False, False, True]


def test_what_is_lost_of_a_long_job_is_no_sign() -> None:
    judge = Judge()
    assert judge(20 * pool._LATE_NS, 200 * pool._LATE_NS) == 0
    assert judge(20 * pool._LATE_NS, 200 * pool._LATE_NS) > 0


def test_the_rest_grows_while_sharing_is_a_loss() -> None:
    judge, rests = Judge(), []
    for _ in range(12):
        rests.append(judge(2 * pool._LATE_NS, 0))
        judge.sleep()
    assert rests[0] == max(pool._COOL_NS, 2 * pool._REPAID * pool._LATE_NS) and rests[-1] == pool._LONGEST_NS
    assert all(b == min(2 * a, pool._LONGEST_NS) for a, b in pairwise(rests))
    judge.field("GOOD").value = pool._CALM_NS + 1
    assert judge(2 * pool._LATE_NS, 0) == rests[0]
    judge.sleep()
    assert judge(10**9, 0) == pool._LONGEST_NS


ALONE = """
import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
sys.path[:0] = sys.argv[1:]
from test_thread_pool_rest import Phase
phase = Phase(lambda: None, lambda: None)
for _ in range(50):
    phase()
phase.repeat(50)
assert (phase.done == 100).all()
print(phase.helped)
"""


def test_no_worker_takes_turns_with_the_launching_thread() -> None:
    command = [sys.executable, "-c", ALONE, os.path.dirname(__file__)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "0\n", done.stderr
