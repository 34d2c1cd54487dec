"""Recordings: the log of one region before it runs."""

from __future__ import annotations

import copy
from math import prod
from types import FrameType
from typing import TYPE_CHECKING, Any
from weakref import ref as weak

import numpy as np

from dcarray.core.device_backend import device_backend
from dcarray.core.fp_state import current_state, watched_flags
from dcarray.core.native import BUILT
from dcarray.core.processes import communicator, foreign_thread_error
from dcarray.core.store import Store, memory
from dcarray.ir import log_entries
from dcarray.ir.log_entries import Declaration, Statement
from dcarray.tiering import policy

if TYPE_CHECKING:
    from .session import Session

ENTRIES = 256  # from so many on a recording ends at the end of a loop's iteration
ENTRIES_TOGETHER = 2 * ENTRIES  # with several ranks, which communicate before and after each
HELD_ELEMENTS = 1 << 19  # from so many on the memory that only a recording keeps alive is counted
MAX_SWEPT = 1024
CHARS = "?bBhHiIlLqQefdFD"

Site = tuple[Any, int, Any, str | None]

if BUILT:  # so that finalizers may use stores (`_native/collections.h`)
    from dcarray._native.extension import kept, weak  # type: ignore[assignment]
else:

    def kept(store: Any, /) -> Any:
        return store


class Recording:
    """Operations recorded and not yet run: the log, and the stores and scalars that its entries refer to.

    Attributes
    ----------
    device : Device or None
        The device that it runs on; None for the CPU.
    log : list of tuple
        The entries, as in `dcarray.ir.log_entries`.
    slots : list
        The store of each declaration (a weak reference if it is to be computed).
    news : list of int
        The slots of stores that are to be computed.
    sites : list of (code, int, state, str or None)
        The call site of each statement: the user's code object and instruction, from which the line follows,
        NumPy's floating-point error state at the time, and NumPy's name of the call in warnings, if it does
        not follow from the operation.
    urgent : bool
        Whether it has to run as soon as the current entry is complete.
    due : bool
        Whether it is long or may keep much memory alive: `Session.ready` checks it before the next entry.
    entry_limit : int
        The number of entries beyond which it is due.
    held_elements : int
        The number of elements of the memory that it reads and writes.
    parts : set of (int, int, str)
        The call sites (by the identity of the code object) and operations of the statements on parts of
        arrays since the last statement on a large one.
    writes : bool
        Whether it changes memory that existed before.
    composed : int
        The log's length after the last part of a new array made in parts; such a part does not count as a
        write of a loop.
    leftover : (Replay, Exception) or None
        After a run: the statements that could not run, and the error of the first.
    failure : Exception or None
        The error for which the statements that it begins with could not run before.
    one_off : bool
        Whether an equal recording is not expected later, so that no plan is made.
    iteration_ends : dict
        The ends of iterations of loops whose windows move: code objects by instruction.
    unstored : int
        The slot of an array that is not to be stored though it is alive; see
        `dcarray.recording.rematerialise`.
    program : Program or None
        This rank's program, where several ranks have run it.
    watched : int
        The floating-point exceptions, as FPE bits, that some statement does not ignore.
    """

    __slots__ = (
        "__weakref__", "arena", "composed", "device", "done", "due", "entry_limit", "failure",
        "guard", "held_elements", "iteration_ends", "kinds",
        "leftover", "log", "news", "one_off", "parts", "program", "session", "sites", "slots",
        "state", "unstored", "urgent", "views", "watched", "writes",
    )  # fmt: skip

    def __init__(self, session: Session) -> None:
        self.session = session
        self.device = session.device
        self.done = False
        self.log: list[tuple[Any, ...]] = []
        self.slots: list[Any] = []
        self.news: list[int] = []
        self.sites: list[Site] = []
        self.state: Any = None
        self.watched = 0
        self.held_elements = 0
        self.due = False
        self.entry_limit = ENTRIES
        self.urgent = False
        self.parts: set[tuple[int, int, str]] = set()
        self.composed = 0
        self.leftover: Any = None
        self.program: Any = None
        self.failure: Exception | None = None
        self.unstored = -1
        self.guard: Any = None
        self.writes = False
        self.one_off = False
        self.iteration_ends = session.iteration_ends
        self.kinds = ""
        self.arena, self.views = session.take_arena()

    def scalar(self, value: Any, char: str) -> int:
        """Add a scalar argument; returns its number.

        Raises
        ------
        OverflowError
            If a Python integer does not fit the dtype.
        """
        k = len(self.kinds)
        self.views[char][k] = value
        self.kinds += char
        if k > ENTRIES:
            self.due = True
        return k

    def materialise(self, head: Store, writing: bool = False) -> None:
        """Run the recording so that the memory of ``head`` may be read or, with ``writing``, written; see
        `run`."""
        self.run(head, writing)
        if head.remote is not None:
            head.remote.materialise(head, writing)

    def run(self, head: Store, writing: bool = False) -> None:
        """Run the recording, if it has not run, so that the elements of ``head`` may be read (or written).

        Raises
        ------
        MemoryError
            If memory is too small to compute ``head``, which stays pending.
        """
        if not self.done:
            self.session.flush(self)
            left = head.used if writing else head.dirty
            if left is not None and not left.done:
                left.check()

    def check(self) -> None:
        """Raise the error of an earlier run for which this recording's first statements are still pending."""
        if self.failure is not None:
            raise copy.copy(self.failure)  # a copy, since a traceback would keep its frames alive

    def declare(self, store: Store) -> int:
        """Declare a store that is read or written (``old``), or reshapes a pending one (``new``); return its
        slot."""
        slots = self.slots
        head = store._head
        if head is not None and head.rec is not self:
            self.declare(head)
        elif head is None and store.is_unused() and not self._is_reserved(store):
            memory(store)
        store.slot = slot = len(slots)
        store.rec = self
        first = slot if head is None else head.slot
        if store.mem is not None:
            self.log.append(("old", store.char, store.shape, store.strides, first))
        elif (remote := store.family.remote) is not None:
            if remote.device is None and communicator() is None:
                raise foreign_thread_error()
            self.log.append(("old", store.char, store.shape, None, first))
        elif head is None or head.mem is None:
            self.log.append(("new", store.char, store.shape, first))
            if communicator() is None:  # a reshape must not keep its head alive, and so unfused
                slots.append(weak(store))
                return slot
        else:
            memory(store)
            self.log.append(("old", store.char, store.shape, store.strides, first))
        slots.append(kept(store))
        self.held_elements += store.size
        if self.held_elements > HELD_ELEMENTS:
            self.due = True
        return slot

    def declare_new(self, store: Store) -> int:
        """Declare a new store that the next entry computes; returns its slot."""
        slots = self.slots
        store.slot = slot = len(slots)
        store.rec = store.dirty = self
        slots.append(weak(store))
        self.news.append(slot)
        self.log.append(("new", store.char, store.shape, slot))
        return slot

    def _is_reserved(self, store: Store) -> bool:
        """Whether a store without elements has a buffer on the recording's device; nothing is copied then."""
        return self.device is not None and device_backend().reserved(store, self.device)

    def begin_whole(self, store: Store) -> int:
        """Declare a store without memory that the next entry writes as a whole; returns its slot."""
        head = store._head
        if head is None:
            return self.declare_new(store)
        self.declare_new(head)
        return self.declare(store)

    def add(self, entry: tuple[Any, ...], frame: FrameType, warned_as: str | None = None) -> None:
        """Log a statement that the user's code called in ``frame``; ``warned_as`` is NumPy's name of the call
        in warnings, if it does not follow from the operation."""
        log = self.log
        log.append(entry)
        code, instruction = frame.f_code, frame.f_lasti
        ends = self.iteration_ends
        if len(log) > self.entry_limit or (ends and ends.get(instruction) is code):
            self.due = True
        state = current_state()
        if state is not self.state:
            self.note_state(state)
        self.sites.append((code, instruction, state, warned_as))
        if self.device is not None:
            return
        kind, op, _, domain = entry[:4]
        if kind != "call" and policy.eager(prod(domain)):
            self.note_part(code, instruction, op)
        elif self.parts:
            self.parts.clear()

    def note_state(self, state: Any) -> None:
        """Note the floating-point error state of the statements that follow."""
        self.state = state
        self.watched |= watched_flags(state)

    def note_part(self, code: Any, instruction: int, op: str) -> None:
        """Note a statement on a part of an array that is so small that NumPy would have done it at once, had
        nothing been pending on it.

        If the call site has done so before with no large statement in between, the program sweeps over parts
        of an array.  Then the recording ends here, now and in future, and NumPy runs the calls that follow.
        """
        if communicator() is not None:
            return
        site = id(code), instruction, op
        swept = self.session.swept
        if site in self.parts and site not in swept:
            if len(swept) >= MAX_SWEPT:
                swept.clear()
            swept.add(site)
        self.parts.add(site)
        self.urgent |= site in swept

    def has_effects(self) -> bool:
        """Whether its effects are visible: it writes existing memory, or a result is alive."""
        slots = self.slots
        return self.writes or any([slots[k]() is not None for k in self.news])

    def declarations(self) -> list[Declaration]:
        """Return the arrays by their slots."""
        return log_entries.declarations(self.log)

    def statements(self) -> list[Statement]:
        """Return the statements in order: a statement's ``loc`` is its position."""
        return log_entries.statements(self.log)

    def drop(self) -> None:
        """Remove the last entry."""
        self.log.pop()
        self.sites.pop()

    def scalar_addresses(self) -> list[int]:
        return [self.arena + 16 * k for k in range(len(self.kinds))]

    def scalar_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        return {f"c{k}": self.views[char][k : k + 1].reshape(()) for k, char in enumerate(self.kinds)}

    def scalar_values(self) -> list[np.generic]:
        """Return the scalar arguments as NumPy scalars."""
        return [self.views[char][k] for k, char in enumerate(self.kinds)]

    def store_at(self, slot: int) -> Store | None:
        entry = self.slots[slot]
        return entry if type(entry) is Store else entry()

    def substitute(self, slot: int) -> Store:
        """Return a substitute for a slot's store that another thread has released since it was recorded."""
        entry = self.declarations()[slot]
        return Store(entry.shape, np.dtype(entry.char))
