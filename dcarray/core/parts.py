"""Parts of one NumPy call, run by several threads.

NumPy gives the interpreter lock up in its loops, so where the elements of a result are independent of each
other, threads can compute parts of it at the same time.  The results have NumPy's bits, since no axis of a
sum is cut.

The helping threads are started when they are first needed, and stay.  Parts are taken one by one, so a helper
that wakes up late, or a processor that is busy, takes fewer of them; a helper without a part is not waited
for.  A helper with a part may lose its processor to another program, and is waited for; if such waits cost
more than help gains, no helpers are called for a while.
"""

from __future__ import annotations

import contextvars
import os
from _thread import allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from time import monotonic
from typing import Any

import numpy as np

from . import config
from .processes import communicator

__all__ = ["cut", "number_of_parts", "run"]

LEAST = 1.5e-4
"""Seconds of work that are worth a part: to wake a thread takes some 30 us, and longer where it has slept."""
_FOR_EACH_THREAD = 4  # parts, so that threads are done at about the same time

# Seconds lost by help until there is none for a while, for how many times as long that is, at least and at
# most, and how long help has to do well until earlier losses do not count (as in `thread_pool/pool.py`).
_MOST_LOST, _REPAID, _LEAST_ALONE, _MOST_ALONE, _CALM = 2e-4, 16, 1e-3, 0.5, 0.05

Job = Callable[[], object]


def number_of_parts(seconds: float, most: int) -> int:
    """Return the number of parts to divide a call into; 1 for little work, for one thread, and for several
    ranks.

    Parameters
    ----------
    seconds : float
        The seconds that the work takes in one thread.
    most : int
        The most parts that are possible.
    """
    if seconds < 2 * LEAST:
        return 1
    threads = config.look_again().threads
    if threads < 2 or communicator() is not None:
        return 1
    return max(1, min(most, _FOR_EACH_THREAD * threads, int(seconds / LEAST)))


def cut(extent: int, parts: int) -> list[slice]:
    """Return slices of about equal lengths that cover an axis, one for each part."""
    ends = [extent * k // parts for k in range(parts + 1)]
    return [slice(*ends[k : k + 2]) for k in range(parts)]


def run(jobs: Sequence[Job]) -> bool:
    """Run all jobs in this thread and its helpers, each under the state of this thread's context.

    Returns
    -------
    bool
        False if a job raised an exception, or a floating-point exception that is not ignored.  Then some jobs
        have not run, and the caller runs the whole call in NumPy, which warns or raises.
    """
    return _Call(jobs).run()


class _Call:
    """The jobs of one call: those not yet taken by a thread, and the results of the others."""

    __slots__ = ("_called", "_ended", "_failed", "_helping", "_jobs", "_lock", "_modes")

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = deque(jobs)
        self._lock = allocate_lock()
        self._helping = 0  # jobs that helpers have taken
        self._ended: SimpleQueue[None] = SimpleQueue()  # one for each of them that has ended
        self._failed = self._called = False
        state: Any = np.geterr()
        self._modes: Any = {kind: "ignore" if mode == "ignore" else "raise" for kind, mode in state.items()}

    def run(self) -> bool:
        start = monotonic()
        interrupt: BaseException | None = None
        try:
            self._work(False)
        except BaseException as error:
            interrupt = error
        with self._lock:
            self._jobs.clear()
            helped = left = self._helping
        alone = monotonic()
        while left:
            try:
                self._ended.get()
                left -= 1
            except BaseException as error:  # others still write to the memory, which must not be given up
                interrupt = error
        if interrupt is not None:
            raise interrupt
        if self._called:
            _ACCOUNT.judge(start, alone, helped > 0)
        return not self._failed

    def _work(self, helping: bool) -> None:
        """Take and run jobs until none is left."""
        with np.errstate(**self._modes):
            while (job := self._take(helping)) is not None:
                if not (helping or self._called):
                    self._call_helpers()
                try:
                    if not self._failed:
                        job()
                except Exception:
                    self._failed = True
                finally:
                    if helping:
                        self._ended.put(None)

    def _call_helpers(self) -> None:
        """Ask helpers to begin, unless they were of no use lately; a later job tries again."""
        helpers = min(config.current().threads - 1, len(self._jobs))
        if helpers > 0 and monotonic() >= _ACCOUNT.until:
            self._called = True
            work = [partial(contextvars.copy_context().run, self._work, True) for _ in range(helpers)]
            _HELPERS.call(work)

    def _take(self, helping: bool) -> Job | None:
        with self._lock:
            if not self._jobs:
                return None
            self._helping += helping
            return self._jobs.popleft()


class _Account:
    """The account of the time that helping threads have lately gained and lost.  Threads that write to it at
    the same time do no harm."""

    def __init__(self) -> None:
        self.until = 0.0  # no help is called before
        self._lost = self._good = self._rest = 0.0

    def judge(self, start: float, alone: float, helped: bool) -> None:
        """Note a call: when it began, when its own thread ran out of work, and whether others did some."""
        now = monotonic()
        took = now - start
        self._good += took
        self._lost = max(0.0, self._lost + now - alone - (took / 4 if helped else 0.0))
        if self._lost > max(_MOST_LOST, took / 8):
            longer = _LEAST_ALONE if self._good > _CALM else 2 * self._rest
            self._rest = min(max(longer, _REPAID * self._lost, _LEAST_ALONE), _MOST_ALONE)
            self.until = now + self._rest
            self._lost = self._good = 0.0


class _Helpers:
    """The helping threads of this process, and the jobs that no thread has begun."""

    def __init__(self) -> None:
        self._started = 0
        self._waiting: SimpleQueue[Job] = SimpleQueue()

    def call(self, tasks: Sequence[Job]) -> None:
        """Have helpers begin the tasks as soon as they can; one is started for each task without a helper."""
        while self._started < len(tasks):
            try:
                start_new_thread(_serve, (self._waiting,))
            except RuntimeError:  # no thread can be started: the others, or the caller, do all
                break
            self._started += 1
            _watch_forks()
        for task in tasks[: self._started]:
            self._waiting.put(task)


def _serve(waiting: SimpleQueue[Job]) -> None:
    """Run tasks for ever, without keeping a reference to any of them."""
    while True:
        waiting.get()()


_HELPERS = _Helpers()
_ACCOUNT = _Account()
_watching = False


def _watch_forks() -> None:
    """Have a child of this process, which has none of its threads, start its own."""
    global _watching
    if not _watching:
        _watching = True
        os.register_at_fork(after_in_child=_forget)


def _forget() -> None:
    global _HELPERS
    _HELPERS = _Helpers()
