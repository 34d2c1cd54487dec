"""Sessions: the recording of a thread, and the rules by which it ends and runs.

`Session.flush` ends the thread's recording: the log is the key of a plan, results that are still alive are
allocated, the plan runs, and the stores get their memory.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from dcarray.core import config
from dcarray.core.backend import backend
from dcarray.core.device_backend import device_backend
from dcarray.core.interrupts import Undisturbed
from dcarray.core.processes import LOCK as LOCK
from dcarray.core.processes import communicator, foreign_thread_error, simulated
from dcarray.core.references import LISTED
from dcarray.core.store import Store
from dcarray.lowering.runtime.array_memory import MAPPED

from . import iterations
from .log import CHARS, ENTRIES, ENTRIES_TOGETHER, HELD_ELEMENTS, Recording
from .rematerialise import leave_out

ARENA = 512  # scalars a recording can hold
HELD_BYTES = 128 << 20  # memory that nothing but a recording may keep alive
# Bytes that more arrays than so many may have together, as those that a library makes in each iteration of a
# loop: call by call, they would not exist at the same time.
HELD_ARRAYS, HELD_TOGETHER = 3, 4 << 20
HELD_BEFORE_EAGER = 1 << 20  # bytes before eager work of a library, which needs memory itself
MAX_ENTRIES = 1024  # entries at which a recording ends anywhere


class Session:
    """The recordings of one thread for one device, or for the CPU (None)."""

    def __init__(self, device: Any = None) -> None:
        self.device = device
        self._arenas: list[tuple[int, dict[str, Any]]] = []
        # an array whose buffer could not be exported, and the error, for the next attempt in another way
        self.buffer_error: tuple[Any, Exception] | None = None
        self._cut: Any = None  # the call site at which the last long recording ended
        self.iteration_ends: dict[int, Any] = {}
        # the call sites (by the identity of the code object) and operations that sweep over parts of arrays
        self.swept: set[tuple[int, int, str]] = set()
        self._rank = simulated()
        self.rec = Recording(self)

    # ---- recording ---------------------------------------------------------------------------------
    def take_arena(self) -> tuple[int, dict[str, Any]]:
        if self._arenas:
            return self._arenas.pop()
        arena: np.ndarray[Any, Any] = np.zeros(ARENA * 2, dtype=np.float64)
        address = int(arena.__array_interface__["data"][0])
        return address, {c: arena.view(c)[:: 16 // np.dtype(c).itemsize] for c in CHARS}

    def ready(self) -> Recording:
        """Return the recording for the next entry.  A long recording is run first, since at the user's next
        call the temporaries of the last one are dead."""
        rec = self.rec
        if rec.due:
            with Undisturbed():
                self._limit_recording(rec)
        return self.rec

    def _limit_recording(self, rec: Recording) -> None:
        """Run a recording that has become long, if it may end at its last statement."""
        if len(rec.log) <= ENTRIES and len(rec.kinds) <= ENTRIES and not rec.iteration_ends:
            rec.due = False  # it may only keep much memory alive
        elif len(rec.kinds) > ARENA - 16 or (rec.sites and self._ends_iteration(rec)):
            self.flush(rec)
        if rec.held_elements > HELD_ELEMENTS:
            self._release(rec, HELD_ARRAYS, HELD_TOGETHER)

    def release_held(self) -> None:
        """Run the recording before a library's eager work if it keeps memory alive that NumPy would free."""
        rec = self.rec
        if rec.held_elements * 16 > HELD_BEFORE_EAGER:
            self._release(rec, 0, HELD_BEFORE_EAGER)

    def _ends_iteration(self, rec: Recording) -> bool:
        """Whether a recording may be cut after its last statement.

        A long program is cut at the same call site each time, so that a loop records the same region again
        and again.  If the program writes in place, the cut comes after such a write.  A loop that reads or
        writes other windows each time is cut in each iteration.
        """
        code, instruction = rec.sites[-1][:2]
        if rec.iteration_ends.get(instruction) is code:
            return True
        one_rank = communicator() is None
        few = ENTRIES if one_rank else ENTRIES_TOGETHER
        if len(rec.log) <= few:
            rec.entry_limit, rec.due = few, False  # until it is longer, or keeps more memory alive
            return False
        if not rec.has_effects() and one_rank:  # ranks may differ in what is alive
            self._end(rec)
            return False
        before, last = rec.log[-2:]
        writes = last[0] == "map" and before[0] != "new" and len(rec.log) != rec.composed
        same_site = (code, instruction) == self._cut
        ends = writes
        if not same_site and (writes or (one_rank and not rec.writes)):
            if (writes or rec.entry_limit == ENTRIES) and all(site[:2] != self._cut for site in rec.sites):
                self._cut = None  # this is another loop
            rec.entry_limit = MAX_ENTRIES  # one check is enough where nothing is written
            ends = writes or (self._cut is None and iterations.is_outermost(rec))
        if not (same_site or (ends and self._cut is None) or len(rec.log) > MAX_ENTRIES):
            return False
        self._cut = (code, instruction) if same_site or ends else None
        if writes and iterations.windows_move(rec):
            self.iteration_ends[instruction] = code
            rec.one_off = True
        return True

    def _release(self, rec: Recording, arrays: int, most: int) -> None:
        """Run the recording if the log alone keeps more than ``arrays`` arrays and ``most`` bytes alive."""
        kept = together = number = 0
        for entry in rec.slots:
            if type(entry) is Store and sys.getrefcount(entry) <= LISTED:
                size = entry.size * entry.dtype.itemsize
                kept += size
                if entry._head is None and size >= MAPPED:  # a reshape may be of an array that is alive
                    together += size
                    number += 1
        many = number > arrays and together > most
        if kept > HELD_BYTES or (many and communicator() is None):  # ranks may differ in what is still held
            self.flush(rec)
        rec.held_elements = 0

    # ---- running -----------------------------------------------------------------------------------
    def flush(self, rec: Recording | None = None) -> None:
        """Run the pending statements of this thread; with ``rec``, only up to that recording.

        Statements that cannot be computed (for want of memory, say) stay pending.

        Raises
        ------
        MemoryError
            If a statement cannot be computed, and no recording was given.
        FloatingPointError, Warning
            If a statement raises a floating-point exception that `numpy.errstate` did not ignore when it was
            recorded.
        """
        with LOCK, Undisturbed():
            current = self.rec
            if (rec is not None and rec is not current) or not current.log:
                return
            after = self._run(current)
            left = self.rec
        after()
        if rec is None:
            left.check()

    def flush_sparing(self, rec: Recording, store: Store) -> None:
        """Run a recording because a result of ``store`` is read; it is not stored if that saves work."""
        with LOCK, Undisturbed():
            # several ranks may find out at different times that it is dead
            left_out = leave_out(rec, store) if rec is self.rec and communicator() is None else None
            if left_out is not None:
                rec.unstored = store.slot
            try:
                self.flush(rec)
            finally:
                rec.unstored = -1
                left = store.rec is rec and store.mem is None and store.remote is None
                if left_out is not None and rec.done and left:
                    left_out.record(self.rec)

    def forget(self, rec: Recording, length: int) -> None:
        """Drop a recording of this length, if all its results are dead.

        This does nothing with several ranks, where garbage collectors free results at different times.
        """
        if communicator() is not None:
            return
        if LOCK.acquire(blocking=False):
            try:
                if self.rec is rec and not rec.done and len(rec.log) == length and not rec.has_effects():
                    self._end(rec)
            finally:
                LOCK.release()

    def _end(self, rec: Recording) -> None:
        if self.device is not None:
            device_backend().settle(rec)
        self.rec = Recording(self)
        self.buffer_error = None
        rec.done = True
        self._arenas.append((rec.arena, rec.views))
        # stores may keep a finished recording alive, but not what it held
        rec.log, rec.slots, rec.leftover = [], [], None

    def _run(self, rec: Recording) -> Callable[[], None]:
        if simulated() is not self._rank and any(
            type(s) is Store and s.family.remote is not None for s in rec.slots
        ):
            raise foreign_thread_error()
        options = config.look_again()
        rest = None if communicator() is None else backend().split_at_reshape(rec, options.distribute_above)
        try:
            after = EXECUTOR.run(rec, options)
        except BaseException:
            if rest is not None:
                rest[1]()
            raise
        if rec.leftover is None:
            self._end(rec)
        else:
            replay, error = rec.leftover
            self._end(rec)
            replay.record(self.rec)
            self.rec.failure = error
        if rest is None:
            return after
        failed = self.rec.failure is not None
        rest[0].record(self.rec)
        if failed:
            return after
        self.rec.urgent = rec.urgent  # the owner of what it writes may read it as soon as the call returns
        beyond = self._run(self.rec)

        def both() -> None:
            after()
            beyond()

        return both


class Executor(Protocol):
    """The executor: finds or makes the plan of a recording and runs it."""

    background: Any

    def run(self, rec: Recording, options: config.Options) -> Callable[[], None]:
        """Run a recording; returns the function that reports its warnings once all results are in place."""

    def prepare(self, rec: Recording, options: config.Options) -> Any:
        """Return the plan-cache entry of a recording."""


LOCAL = threading.local()  # `session`: that of the thread; `known`: its sessions by device
EXECUTOR: Executor = None  # type: ignore[assignment]  # `dcarray.execution.executor` enters its own


def session() -> Session:
    """Return the session of this thread."""
    try:
        return LOCAL.session  # type: ignore[no-any-return]
    except AttributeError:
        LOCAL.session = Session()
        return LOCAL.session  # type: ignore[no-any-return]


class recording(Undisturbed):
    """A context in which this thread records, with the recording for the next entries.  Handlers and
    finalizers of the program, which may record themselves, do not run between parts of an entry."""

    __slots__ = ()

    def __enter__(self) -> Recording:  # type: ignore[override]
        super().__enter__()
        try:
            return session().ready()
        except BaseException:
            self.__exit__()
            raise


class recording_for:
    """A context in which this thread records for a device (None: the CPU)."""

    __slots__ = ("_before", "_device")

    def __init__(self, device: Any) -> None:
        self._device = device

    def __enter__(self) -> None:
        self._before = here = session()
        if here.device is not self._device:
            LOCAL.session = session_for(self._device)

    def __exit__(self, *exc: object) -> None:
        LOCAL.session = self._before


def session_for(device: Any) -> Session:
    """Return this thread's session for a device; recordings for several devices are pending together."""
    try:
        known: dict[Any, Session] = LOCAL.known
    except AttributeError:
        mine = session()
        known = LOCAL.known = {mine.device: mine}
    other = known.get(device)
    if other is None:
        other = known[device] = Session(device)
    return other


def sessions() -> list[Session]:
    """The sessions of this thread, for all devices."""
    here = session()
    return [here, *(other for other in getattr(LOCAL, "known", {}).values() if other is not here)]


def flush_all() -> None:
    """Run all that this thread has pending, on all devices."""
    for one in sessions():
        one.flush()


def _flush_writes() -> None:
    """Run what this thread has pending that writes into memory, which may be a file or shared."""
    for one in sessions() if communicator() is None else ():
        if one.rec.writes:
            one.flush()


atexit.register(_flush_writes)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_flush_writes)
