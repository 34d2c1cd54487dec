"""Launches that lose by sharing run alone for a while; phases are Python functions and know who runs them."""

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dcarray.core.native import BUILT
from dcarray.lowering.cpu.llvm.launches import Launch

pytestmark = pytest.mark.skipif(
    not BUILT or not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="threads cannot be kept on different processors",
)
PHASE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
# Constants of `thread_pool.h` and `launches.h`.
GRAIN, WORTH_WAKING, LONG_JOB = 1 << 17, 8, 4096
LATE_NS, REPAID, LEAST_ALONE, MOST_ALONE, CALM = 80_000, 16, 1_000_000, 500_000_000, 50_000_000
EXTENT = 64
# Work of an element, so that workers are woken, and chunks are few.
WORK = WORTH_WAKING * GRAIN // EXTENT
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
        repeat = self.launch.repeat
        assert repeat is not None
        repeat(range(times), 2, [(self.launch, lambda t: self.launch.pack(EXTENT, WORK))])


class Account:
    """What sharing has cost lately: a tuple of nanoseconds (lost, good, last time alone, until when)."""

    @property
    def rest(self) -> int:
        return judge_sharing(None)[2]

    @property
    def until(self) -> int:
        return judge_sharing(None)[3]

    def set(self, lost: int = 0, good: int = 0, rest: int = 0, until: int = 0) -> None:
        judge_sharing((lost, good, rest, until))


def judge_sharing(*given: Any) -> tuple[int, int, int, int]:
    from dcarray._native.extension import judge_sharing

    return judge_sharing(*given)


def now() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


@pytest.fixture
def account() -> Iterator[Account]:
    """The account of the threads, of which the first has another processor than the one that calls."""
    found = Account()
    found.set()
    before = os.sched_getaffinity(0)
    first, *others = sorted(before)
    Phase(lambda: None, lambda: None)()  # it starts a thread
    tasks = {int(task) for task in os.listdir("/proc/self/task")} - {
        t.native_id for t in threading.enumerate()
    }
    for task in tasks:
        os.sched_setaffinity(task, others)
    os.sched_setaffinity(0, {first})
    yield found
    for task in (0, *tasks):
        os.sched_setaffinity(task, before)
    found.set()


def one_is_late(account: Account, run: Callable[[Phase], None]) -> Phase:
    """Run phases until a thread has had a part in one, and was late with it: it is not if the calling thread
    had no processor meanwhile, or it had none itself."""
    rest, until, end = account.rest, account.until, time.monotonic() + 100
    while time.monotonic() < end:
        phase = Phase(lambda: time.sleep(SLOW), lambda: time.sleep(LATE))
        run(phase)
        if phase.helped and account.until > 0:
            return phase
        account.set(rest=rest, until=until)
    raise AssertionError("no thread had a part and was late")


def test_after_a_late_thread_launches_run_alone(account: Account) -> None:
    phase = one_is_late(account, Phase.__call__)
    assert (phase.done == 1).all() and account.until > 0 and account.rest >= LEAST_ALONE
    account.set(rest=account.rest, until=now() + 10**12)
    helped = phase.helped
    for _ in range(5):
        phase()
    assert phase.helped == helped and (phase.done == 6).all()


def test_turns_of_a_loop_run_alone_after_a_late_thread(account: Account) -> None:
    phase = one_is_late(account, lambda phase: phase.repeat(3))
    assert (phase.done == 3).all() and account.until > 0 and account.rest >= LEAST_ALONE
    account.set(rest=account.rest, until=now() + 10**12)
    helped = phase.helped
    phase.repeat(4)
    assert phase.helped == helped and (phase.done == 7).all()


def test_long_launches_are_shared_all_the_same(account: Account) -> None:
    account.set(until=now() + 10**12)
    assert one_is_late(account, lambda phase: phase(LONG_JOB * GRAIN)).helped


def test_after_the_rest_launches_are_shared_again(account: Account) -> None:
    rest = one_is_late(account, Phase.__call__).helped and account.rest
    account.set(rest=rest, until=now() - 1)
    assert one_is_late(account, Phase.__call__).helped


# ---- what decides -------------------------------------------------------------------------------------
class Judge:
    """An account of threads that do nothing meanwhile."""

    def __init__(self) -> None:
        self.now = 10**12
        self.account = 0, 0, 0, 0

    def __call__(self, lost: int, took: int) -> int:
        """Note a job; return for how long jobs run alone from now on."""
        before = judge_sharing(None)
        self.account = judge_sharing(self.account, lost, took, self.now)
        judge_sharing(before)
        return max(0, self.account[3] - self.now)

    def sleep(self) -> None:
        self.now = max(self.now, self.account[3])


def test_gains_pay_losses() -> None:
    judge, lost = Judge(), LATE_NS // 2
    for _ in range(20):
        assert judge(lost, 10 * lost) == judge(-lost, 10 * lost) == 0
    assert [judge(lost, lost) > 0 for _ in range(3)] == [False, False, True]


def test_what_is_lost_of_a_long_job_is_no_sign() -> None:
    judge = Judge()
    assert judge(20 * LATE_NS, 200 * LATE_NS) == 0
    assert judge(20 * LATE_NS, 200 * LATE_NS) > 0


def test_the_rest_grows_while_sharing_is_a_loss() -> None:
    judge, rests = Judge(), []
    for _ in range(12):
        rests.append(judge(2 * LATE_NS, 0))
        judge.sleep()
    assert rests[0] == max(LEAST_ALONE, 2 * REPAID * LATE_NS) and rests[-1] == MOST_ALONE
    assert all(b == min(2 * a, MOST_ALONE) for a, b in pairwise(rests))
    lost, _, rest, until = judge.account
    judge.account = lost, CALM + 1, rest, until
    assert judge(2 * LATE_NS, 0) == rests[0]
    judge.sleep()
    assert judge(10**9, 0) == MOST_ALONE


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
