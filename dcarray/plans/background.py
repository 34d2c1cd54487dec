"""The background thread, which has plans made while the program runs in NumPy."""

from __future__ import annotations

import atexit
import ctypes
import math
import os
import queue
import threading
import time
from _thread import start_new_thread
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from typing import Any, NamedTuple

from dcarray.tiering.admission import PATIENCE, SUSPECT

_TOKEN = object()  # of a job, in the queue
_SHARE = 1 / 16  # of the program's time, which the thread gets at least while it has jobs
REST = 0.25
"""The least number of seconds between two returns of unused memory to the system."""


class _Heap:
    """The C library's heap, of which free memory is given back to the operating system now and then.

    Loading plans uses and frees some MB.  Memory is not given back often, since the program's next arrays
    would need fresh pages.
    """

    def __init__(self) -> None:
        self._trim = _trim()
        self._due, self._last = False, 0.0

    def used(self) -> None:
        """Note that a job has run; give memory back if that was last done long enough ago."""
        self._due = self._trim is not None
        if time.monotonic() - self._last >= REST:
            self._give_back()

    def next_job(self, jobs: queue.SimpleQueue[Any]) -> Any:
        """Wait for the next job and return it; free memory if none comes for a while."""
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
    """Return the C library's function that gives free memory back to the system, or None."""
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return found


class _Job(NamedTuple):
    """A job: how much time it gains, its number (lower the later it was submitted), its function, and its
    plan's request."""

    gain: float | Callable[[], float]
    serial: int
    run: Callable[[], None]
    request: Any

    def rank(self) -> tuple[float, int]:
        """Return the job's gain now and its number; the job with the greatest rank is next."""
        return (self.gain() if callable(self.gain) else self.gain), self.serial


_MOST_LEFT = 32
"""Requests of a program that has ended, which the planning process goes on with."""


class Background:
    """One thread that runs planning jobs.

    Attributes
    ----------
    finished : list of callable
        Called after each job.
    start_planning : callable
        Starts the planning process without waiting for it.
    finish : callable
        Leaves requests to the planning process, which makes the plans for later runs; `dcarray.plans.client`
        sets it.
    is_stopping : bool
        Whether the program is ending, so that no more plans are made.
    """

    def __init__(self) -> None:
        self.finished: list[Callable[[], None]] = []
        self.start_planning: Callable[[], None] = lambda: None
        self.finish: Callable[[list[Any]], None] = lambda left: None
        self.is_stopping = False
        self._held: list[tuple[Callable[[], None], float]] = []
        self._suspects = False  # whether a planning process was started before there was a job for it
        self.seconds = 0.0  # that the program has worked without plans
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._undone: list[_Job] = []  # the jobs of which the queue has a token each, and the one that runs
        self._serial = count()
        self._ended: threading.Lock | None = None  # held by the thread while it exists
        self._pid = 0
        self._busy = threading.Lock()  # held during a job, which a fork would tear apart
        if hasattr(os, "register_at_fork"):  # a child must not inherit a compiler in the middle of a job
            lock = self._busy
            os.register_at_fork(
                before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
            )
        atexit.register(self._stop)

    def submit_later(self, job: Callable[[], None], gain: float = 0.0) -> None:
        """Submit a job once the program has run without plans for `PATIENCE` seconds in all."""
        self._held.append((job, gain))
        self.add_unplanned_work(0.0)

    def add_unplanned_work(self, seconds: float) -> None:
        """Add to the seconds that the program has run without plans, and give the thread its share.

        NumPy holds the interpreter's lock in some calls, such as `accumulate`.  Then the thread gets the lock
        only between two calls, and waits for the end of a call after each file operation.
        """
        self.seconds += seconds
        if self._held and self.seconds >= PATIENCE:
            self._release()
        elif self._held and self.seconds >= SUSPECT and not self._suspects:
            self._suspects = True
            self.submit(self.start_planning)
        if self._undone and self._busy.acquire(timeout=seconds * _SHARE):
            self._busy.release()

    def _release(self) -> None:
        held, self._held = self._held, []
        for job, gain in held:
            self.submit(job, gain)

    def submit(
        self, job: Callable[[], None], gain: float | Callable[[], float] = math.inf, request: Any = None
    ) -> None:
        """Have the thread run a job.

        Parameters
        ----------
        job : callable
        gain : float or callable, optional
            The seconds that its result saves each time, or a function that estimates them when a job can
            begin; the job that gains most is next.  By default the job is short and runs next.
        request : Request, optional
            The request of the job's plan; if the program ends first, the plan is made for its later runs.
        """
        if self._ended is None or self._pid != os.getpid():  # threads do not survive a fork
            jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
            undone: list[_Job] = []
            ended = threading.Lock()
            ended.acquire()
            try:  # `Thread.start` would wait until it runs, which takes long where all cores are busy
                start_new_thread(self._work, (jobs, undone, ended))
            except RuntimeError:  # no thread can be started
                with self._busy:
                    return job()
            self._queue, self._pid, self._ended = jobs, os.getpid(), ended
            self._undone = undone
        self._undone.append(_Job(gain, -next(self._serial), job, request))
        self._queue.put(_TOKEN)

    @property
    def is_working(self) -> bool:
        """Whether jobs run or wait to run; false if the only waiting jobs are those of `submit_later`."""
        return not self._held and bool(self._undone) and self._pid == os.getpid()

    @property
    def pending(self) -> bool:
        """Whether any job is not done yet, also one of `submit_later`."""
        return bool(self._held) or (bool(self._undone) and self._pid == os.getpid())

    def _work(self, jobs: queue.SimpleQueue[Any], undone: list[_Job], ended: threading.Lock) -> None:
        heap = _Heap()
        try:
            while heap.next_job(jobs) is not None:
                best = max(undone, key=_Job.rank)
                with self._busy:
                    best.run()
                    heap.used()
                undone.remove(best)
                for call in self.finished:
                    call()
        finally:
            ended.release()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A context inside a job while it only waits; the program may fork its process then."""
        self._busy.release()
        try:
            yield
        finally:
            self._busy.acquire()

    def _stop(self) -> None:
        """Wait for a running compilation before the interpreter ends."""
        jobs: list[_Job] = []
        if self._ended is not None and self._pid == os.getpid():
            self.is_stopping = True
            while not self._queue.empty():
                self._queue.get()
            self._queue.put(None)
            with self._ended:
                pass
            jobs = sorted(self._undone, key=_Job.rank, reverse=True)
        self.finish([job.request for job in jobs if job.request is not None][:_MOST_LEFT])

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all jobs submitted so far are done, or ``timeout`` is over; return whether they are."""
        self._release()
        if self._ended is None or self._pid != os.getpid():
            return True
        done = threading.Event()
        self.submit(done.set, -math.inf)  # after all others
        return done.wait(timeout)


BACKGROUND = Background()
"""That of this process."""
