"""Sessions: what a thread has recorded and not yet run, and how it is run.

A `Recording` is the log of one region to be.  `Session.flush` ends it: the log is the key of a plan;
outputs that somebody still holds are allocated, the plan runs, and the stores get their memory.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import weakref
from types import FrameType
from typing import Any

import numpy as np

from . import config
from .executor import Executor
from .fpstate import captured, watched
from .store import Store

# The functions under ``signal.signal`` and ``signal.getsignal``, which spend microseconds on enumerations.
_signal: Any = importlib.import_module("_signal")

ARENA = 512  # scalars a recording can hold
ENTRIES = 256  # a recording of so many ends where a loop comes round
MAX_ENTRIES = 1024  # and of so many anywhere
HELD_BYTES = 256 << 20

_CHARS = "?bBhHiIlLqQefdFD"


class Recording:
    """A log in the making.

    Attributes
    ----------
    log : list of tuple
        The entries, as in `dcarray.ir.build`.
    slots : list
        For each declaration the store (strongly for existing memory, weakly for what is to be computed).
    marks : list of (code, int, state)
        For each statement (not declaration): the user's code object and instruction, from which the line
        follows, and NumPy's floating-point error state when it was recorded.
    mask : int
        The floating-point exceptions that some entry does not ignore.
    """

    __slots__ = (
        "__weakref__", "arena", "done", "held", "kinds", "log", "marks", "mask", "session", "slots", "state",
        "urgent", "views",
    )  # fmt: skip

    def __init__(self, session: Session) -> None:
        self.session = session
        self.done = False
        self.log: list[tuple[Any, ...]] = []
        self.slots: list[Any] = []
        self.marks: list[tuple[Any, int, Any]] = []
        self.state: Any = None
        self.mask = 0
        self.held = 0
        self.urgent = False
        self.kinds = ""
        self.arena, self.views = session.take_arena()

    def scalar(self, value: Any, char: str) -> int:
        """The number of a new scalar argument.

        Raises
        ------
        OverflowError
            If a Python integer does not fit the dtype.
        """
        k = len(self.kinds)
        self.views[char][k] = value
        self.kinds += char
        return k

    def declare(self, store: Store) -> int:
        """The slot of a store that is read or written (``old``), or reshapes a pending one (``new``)."""
        head = store.family
        slot = len(self.slots)
        store.slot = slot
        store.rec = self
        first = slot
        if head is not store:
            if head.rec is not self:
                head_slot = self.declare(head)
                slot = store.slot = len(self.slots)
                first = head_slot
            else:
                first = head.slot
        if store.mem is None and head.mem is None:
            self.log.append(("new", store.char, store.shape, first))
        else:
            if store.mem is None:
                from .handle import memory

                memory(store)
            self.log.append(("old", store.char, store.shape, store.strides, first))
        self.slots.append(store)
        self.held += store.size * store.dtype.itemsize
        return slot

    def fresh(self, store: Store) -> int:
        """The slot of a new store that the next entry computes."""
        slot = len(self.slots)
        store.slot = slot
        store.rec = store.dirty = self
        self.slots.append(weakref.ref(store))
        self.log.append(("new", store.char, store.shape, slot))
        return slot

    def add(self, entry: tuple[Any, ...], frame: FrameType) -> None:
        """Log a statement that ``frame`` asked for."""
        self.log.append(entry)
        state = captured()
        if state is not self.state:
            self.state = state
            self.mask |= self.session.watched(state)
        self.marks.append((frame.f_code, frame.f_lasti, state))

    def due(self) -> bool:
        """Must something be done about this recording?"""
        return self.urgent or len(self.log) > ENTRIES or self.held > HELD_BYTES or len(self.kinds) > ENTRIES

    def statements(self) -> list[tuple[Any, ...]]:
        """The entries that are no declarations; a statement's ``loc`` counts them."""
        return [entry for entry in self.log if entry[0] not in ("old", "new")]

    def drop(self) -> None:
        """Take the last entry back."""
        self.log.pop()
        self.marks.pop()

    def scalar_addresses(self) -> list[int]:
        return [self.arena + 16 * k for k in range(len(self.kinds))]

    def scalar_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        return {f"c{k}": self.views[char][k : k + 1].reshape(()) for k, char in enumerate(self.kinds)}

    def store_at(self, slot: int) -> Store | None:
        entry = self.slots[slot]
        return entry if type(entry) is Store else entry()

    def declared(self, slot: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and dtype of a slot that is to be computed."""
        store = self.store_at(slot)
        if store is not None:
            return store.shape, store.dtype
        # its last holder, in another thread, has let it go meanwhile
        entry = [e for e in self.log if e[0] in ("old", "new")][slot]
        return entry[2], np.dtype(entry[1])


class Session:
    """The recordings of one thread."""

    def __init__(self) -> None:
        self._arenas: list[tuple[int, dict[str, Any]]] = []
        self._watched: list[tuple[Any, int]] = []
        self._cut: Any = None  # where the user's code was when a long recording ended
        self.rec = Recording(self)

    # ---- recording ---------------------------------------------------------------------------------
    def take_arena(self) -> tuple[int, dict[str, Any]]:
        if self._arenas:
            return self._arenas.pop()
        arena: np.ndarray[Any, Any] = np.zeros(ARENA * 2, dtype=np.float64)
        address = int(arena.__array_interface__["data"][0])
        return address, {c: arena.view(c)[:: 16 // np.dtype(c).itemsize] for c in _CHARS}

    def watched(self, state: Any) -> int:
        """The exceptions that an error state does not ignore (most programs have one or two states)."""
        for known, bits in self._watched:
            if known is state:
                return bits
        bits = watched(state)
        self._watched = [*self._watched[-15:], (state, bits)]
        return bits

    def after(self, rec: Recording) -> None:
        """To be called when an entry was added to a recording that is `due`."""
        if rec.urgent or len(rec.kinds) > ARENA - 16:
            self.flush(rec)
        elif len(rec.log) > ENTRIES:
            # A long program is cut at the same place of the user's code each time, after a write: what a
            # loop records is then the same region again and again.
            here = rec.marks[-1][:2]
            writes = rec.log[-1][0] == "map" and rec.log[-2][0] != "new"
            again = here == self._cut
            if again or (writes and self._cut is None) or len(rec.log) > MAX_ENTRIES:
                self._cut = here if again or writes else None
                self.flush(rec)
        if rec.held > HELD_BYTES:
            self._release(rec)

    def _release(self, rec: Recording) -> None:
        """Flush when the log alone keeps much memory alive."""
        kept = 0
        for entry in rec.slots:
            # references: the slot list, the loop variable, getrefcount's argument
            if type(entry) is Store and sys.getrefcount(entry) <= 3:
                kept += entry.size * entry.dtype.itemsize
        if kept > HELD_BYTES // 2:
            self.flush(rec)
        rec.held = 0

    # ---- running -----------------------------------------------------------------------------------
    def flush(self, rec: Recording | None = None) -> None:
        """Run what is pending (in this recording or before it).

        Raises
        ------
        MemoryError
            If the outputs cannot be allocated; everything stays pending.
        FloatingPointError, Warning
            As `numpy.errstate` asked when the calls were recorded.
        """
        with LOCK:
            current = self.rec
            if (rec is not None and rec is not current) or not current.log:
                return
            with _Uninterrupted():
                after = EXECUTOR.run(current, config.current())
                self.rec = Recording(self)
                current.done = True
                self._arenas.append((current.arena, current.views))
                # a finished recording may live on in its stores' marks; what it held must not
                current.log, current.slots = [], []
        after()


# One lock for all threads: whoever records or runs holds it.  The calls under it are short, or kernels
# that use every core anyway, and an array may pass from thread to thread.
LOCK = threading.RLock()

_local = threading.local()
EXECUTOR = Executor()
if hasattr(os, "register_at_fork"):  # the child finds nothing half done
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)


def session() -> Session:
    """The session of this thread."""
    try:
        return _local.session  # type: ignore[no-any-return]
    except AttributeError:
        _local.session = Session()
        return _local.session  # type: ignore[no-any-return]


class _Uninterrupted:
    """Holds an interrupt back until the region is done, so that no array is left half-way."""

    __slots__ = ("_caught", "_old")

    def __enter__(self) -> None:
        self._caught: list[Any] = []
        self._old = None
        if threading.current_thread() is threading.main_thread():
            old = _signal.getsignal(signal.SIGINT)
            if callable(old):  # Python's own or the user's handler; nothing to hold back otherwise
                _signal.signal(signal.SIGINT, lambda *args: self._caught.append(args))
                self._old = old

    def __exit__(self, *exc: object) -> None:
        old = self._old
        if old is not None:
            _signal.signal(signal.SIGINT, old)
            if self._caught:
                old(*self._caught[0])
