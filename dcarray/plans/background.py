"""What runs beside the program: one thread."""

from __future__ import annotations

import atexit
import ctypes
import os
import queue
import threading
import time
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

PATIENCE = 0.1
"""Seconds without plans from which on they are worth their while.  To make the first ones takes half a second
of another core, and a program whose threads share the work (BLAS) waits for its slowest one."""
_SHARE = 1 / 16  # of the program's time, that the thread gets at least while it has something to do
REST = 0.25
"""Seconds between two times that unused memory is given back, at least."""


class _Heap:
    """What opening plans has used of the C library's memory and dropped, some MB that nobody may need again:
    the system has it back, but not often, since the program's own next arrays are then fresh memory."""

    def __init__(self) -> None:
        self._trim = _trim()
        self._due, self._last = False, 0.0

    def used(self) -> None:
        """After a job."""
        self._due = self._trim is not None
        if time.monotonic() - self._last >= REST:
            self._give_back()

    def awaited(self, jobs: queue.SimpleQueue[Any]) -> Any:
        """The next job."""
        if self._due:
            with suppress(queue.Empty):
                return jobs.get(timeout=REST)
            self._give_back()
        return jobs.get()

    def _give_back(self) -> None:
        if self._trim is not None:
            self._trim(0)
        self._due, self._last = False, time.monotonic()


@cache
def _trim() -> Callable[[int], int] | None:
    """The C library's function that gives the system what is free, if there is one."""
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return found


class Background:
    """One thread that looks after plans while NumPy serves.

    Parameters
    ----------
    told : callable
        Called after each job.
    """

    def __init__(self, told: Callable[[], None]) -> None:
        self._told = told
        self._held: list[Callable[[], None]] = []
        self.seconds = 0.0  # which the program has worked without plans
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._undone: deque[Any] = deque()  # the jobs in the queue, and the one that runs
        self._ended: threading.Lock | None = None  # held by the thread as long as it works
        self._pid = 0
        self._busy = threading.Lock()  # held while something is half done that a fork would tear apart
        if hasattr(os, "register_at_fork"):  # a child must not inherit a compiler in the middle of its work
            lock = self._busy
            os.register_at_fork(
                before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
            )
        atexit.register(self._stop)

    def later(self, job: Callable[[], None]) -> None:
        """Submit a job once the program has worked for as long as jobs are worth their while."""
        self._held.append(job)
        self.worked(0.0)

    def worked(self, seconds: float) -> None:
        """The program has worked so long without a plan.

        Where NumPy holds the interpreter's lock all that time, as in `accumulate`, the thread has it only
        between two calls, and waits for the end of another call after each file that it has opened or read.
        So it gets a share of the time as a whole.
        """
        self.seconds += seconds
        if self._held and self.seconds >= PATIENCE:
            self._release()
        if self._undone and self._busy.acquire(timeout=seconds * _SHARE):
            self._busy.release()

    def _release(self) -> None:
        held, self._held = self._held, []
        for job in held:
            self.submit(job)

    def submit(self, job: Callable[[], None]) -> None:
        """Have the thread do something."""
        if self._ended is None or self._pid != os.getpid():  # threads do not survive a fork
            jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
            undone: deque[Any] = deque()
            ended = threading.Lock()
            ended.acquire()
            try:  # `Thread.start` would wait until it runs, which takes long where all cores are busy
                start_new_thread(self._work, (jobs, undone, ended))
            except RuntimeError:  # no thread is to be had
                with self._busy:
                    return job()
            self._queue, self._pid, self._ended = jobs, os.getpid(), ended
            self._undone = undone
        self._undone.append(job)
        self._queue.put(job)

    @property
    def begun(self) -> bool:
        """Is the thread at work on all that was asked for?"""
        return not self._held and bool(self._undone) and self._pid == os.getpid()

    @property
    def pending(self) -> bool:
        """Is anything asked for that is not done yet?"""
        return bool(self._held) or (bool(self._undone) and self._pid == os.getpid())

    def _work(self, jobs: queue.SimpleQueue[Any], undone: deque[Any], ended: threading.Lock) -> None:
        heap = _Heap()
        try:
            while (job := heap.awaited(jobs)) is not None:
                with self._busy:
                    job()
                    heap.used()
                undone.popleft()
                self._told()
        finally:
            ended.release()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """In a job: nothing is half done, since it waits for somebody else."""
        self._busy.release()
        try:
            yield
        finally:
            self._busy.acquire()

    def _stop(self) -> None:
        """Let a compilation that runs end before the interpreter goes down."""
        if self._ended is None or self._pid != os.getpid():
            return
        while not self._queue.empty():
            self._queue.get()
        self._queue.put(None)
        with self._ended:
            pass

    def wait(self, timeout: float | None = None) -> bool:
        """Return when everything that was submitted so far is done, now if not later, or after so many
        seconds.  Is it?"""
        self._release()
        if self._ended is None or self._pid != os.getpid():
            return True
        done = threading.Event()
        self.submit(done.set)
        return done.wait(timeout)
