"""The background thread, which requests plans and waits for them while the program runs in NumPy."""

from __future__ import annotations

import atexit
import ctypes
import math
import os
import threading
from _thread import allocate_lock
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from threading import Lock
from typing import Any, NamedTuple

from dcarray.core.uncollected import start_thread, thread_without_collections, waiting
from dcarray.core.unpatched import monotonic
from dcarray.lowering.runtime.forks import held_in_forks
from dcarray.tiering.admission import PATIENCE, SUSPECT

_LEAST_SHARE = 1 / 16  # of the program's time, which the thread gets at least while it has jobs
REST = 0.25
"""The least number of seconds between two returns of unused memory to the system."""


class _Heap:
    """The C library's heap, whose free memory is given back to the operating system now and then.

    Loading plans uses and frees some MB.  Memory is not given back often, since the program's next arrays
    would need fresh pages.
    """

    def __init__(self) -> None:
        self._trim = _trim()
        self._due, self._last = False, 0.0

    def used(self) -> None:
        """Note that a job has run; give free memory back if the last time is `REST` seconds ago."""
        self._due = self._trim is not None
        if monotonic() - self._last >= REST:
            self._give_back()

    def wait(self, more: Lock) -> None:
        """Wait until there may be more jobs; give free memory back if that is not soon."""
        if self._due and not waiting(more.acquire, True, REST):
            self._give_back()
        if not self._due:
            waiting(more.acquire)

    def _give_back(self) -> None:
        if self._trim is not None:
            self._trim(0)
        self._due, self._last = False, monotonic()


@cache
def _trim() -> Callable[[int], int] | None:
    """Return the C library's function that gives free memory back to the system; None if it has none."""
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return trim


class _Job(NamedTuple):
    """A job: how many seconds its result saves (see `Background.submit`), its number (lower the later it was
    submitted), its function, and the request of its plan, or None."""

    gain: float | Callable[[], float]
    serial: int
    run: Callable[[], None]
    request: Any

    def rank(self) -> tuple[float, int]:
        """Return the job's gain now and its number; the job with the greatest rank is next."""
        return (self.gain() if callable(self.gain) else self.gain), self.serial


def _locked() -> Lock:
    lock = allocate_lock()
    lock.acquire()
    return lock


def _release(lock: Lock) -> None:
    with suppress(RuntimeError):  # it is released already
        lock.release()


_MOST_LEFT = 32
"""The most requests that a program leaves to the planning process when it ends."""


class Background:
    """One thread that runs planning jobs.

    Attributes
    ----------
    start_planning : callable
        Starts the planning process without waiting for it.
    finish : callable
        Sends requests to the planning process, which makes their plans for later runs; set by
        `dcarray.plans.client`.
    has_planner : callable
        Returns whether the planning process is ready for requests; set by `dcarray.plans.client`.
    wake : callable
        Has no job wait for the planning process any more; set by `dcarray.plans.client`.
    need_plans : callable
        Returns whether the program's next run needs plans; set by `dcarray.jit.loops.sites.site_plans`.
    is_stopping : bool
        Whether the program is ending, so that no more plans are made.
    """

    def __init__(self) -> None:
        self.start_planning: Callable[[], None] = lambda: None
        self.finish: Callable[[list[Any]], None] = lambda left: None
        self.has_planner: Callable[[], bool] = lambda: False
        self.wake: Callable[[], None] = lambda: None
        self.need_plans: Callable[[], bool] = lambda: True
        self.is_stopping = False
        self._held: list[tuple[Callable[[], None], float]] = []
        self._suspects = False  # whether a planning process was started before there was a job for it
        self.seconds = 0.0  # that the program has worked without plans
        self._more = _locked()  # released when there are more jobs
        self._undone: list[_Job] = []  # all jobs that have not ended
        self._serial = count()
        self._ended: Lock | None = None  # held by the thread while it exists
        self._pid = 0
        self._busy = held_in_forks(threading.Lock())  # held during a job, which a fork would tear apart
        atexit.register(self._stop)

    def submit_later(self, job: Callable[[], None], gain: float = 0.0) -> None:
        """Submit a job once the program has run without plans for `PATIENCE` seconds in all."""
        self._held.append((job, gain))
        self.add_unplanned_work(0.0)

    def add_unplanned_work(self, seconds: float) -> None:
        """Add to the seconds that the program has run without plans, and wait a little for a running job.

        NumPy holds the interpreter's lock in some calls, such as `accumulate`.  The background thread then
        only gets the lock between two calls, and would wait for the end of a call after each file operation.
        """
        self.seconds += seconds
        if self._held and self.seconds >= PATIENCE:
            self._release()
        elif self._held and self.seconds >= SUSPECT and not self._suspects:
            self._suspects = True
            self.submit(self.start_planning)
        if self._undone and self._busy.acquire(timeout=seconds * _LEAST_SHARE):
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
            The seconds that the job's result saves each time, or a function that estimates them when a job
            can begin; the job with the greatest gain runs next.  By default, the job is short and runs next.
        request : Request, optional
            The request of the job's plan; if the program ends first, the plan is made for its later runs.
        """
        if self._ended is None or self._pid != os.getpid():  # threads do not survive a fork
            more, undone, ended, self.is_stopping = _locked(), list[_Job](), _locked(), False
            try:  # `Thread.start` would wait until it runs, which takes long where all cores are busy
                start_thread(self._work, more, undone, ended)
            except RuntimeError:  # no thread can be started
                with self._busy:
                    return job()
            self._more, self._pid, self._ended = more, os.getpid(), ended
            self._undone = undone
        self._undone.append(_Job(gain, -next(self._serial), job, request))
        _release(self._more)

    @property
    def pending(self) -> bool:
        """Whether any job is not done yet, including the jobs of `submit_later`."""
        return bool(self._held) or (bool(self._undone) and self._pid == os.getpid())

    @thread_without_collections
    def _work(self, more: Lock, undone: list[_Job], ended: Lock) -> None:
        heap = _Heap()
        try:
            while not self.is_stopping:
                heap.wait(more)
                while undone and not self.is_stopping:
                    best = max(undone, key=_Job.rank)
                    with self._busy:
                        best.run()
                        heap.used()
                    undone.remove(best)
        finally:
            ended.release()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A context for a job while it only waits for something: the program may fork its process then."""
        self._busy.release()
        try:
            yield
        finally:
            self._busy.acquire()

    def _stop(self) -> None:
        """Before the interpreter ends, wait for a running job, and leave the other requests by `finish`."""
        jobs: list[_Job] = []
        if self._ended is not None and self._pid == os.getpid():
            self.is_stopping = True
            self.wake()
            _release(self._more)
            with self._ended:
                pass
            with suppress(Exception):
                jobs = sorted(self._undone, key=_Job.rank, reverse=True) if self.need_plans() else []
        self.finish([job.request for job in jobs if job.request is not None][:_MOST_LEFT])
        self._undone, self._held = [], []  # they keep objects of the program alive

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all jobs submitted so far are done; return False if ``timeout`` seconds pass before."""
        self._release()
        if self._ended is None or self._pid != os.getpid():
            return True
        done = threading.Event()
        self.submit(done.set, -math.inf)  # after all others
        return done.wait(timeout)


BACKGROUND = Background()
"""The background thread of this process."""
