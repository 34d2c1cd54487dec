"""A recording: the log of one region in the making."""

from __future__ import annotations

import copy
from types import FrameType
from typing import Any, Protocol
from weakref import ref

import numpy as np

from dcarray.core.fp_state import captured, watched
from dcarray.core.processes import communicator, foreign_thread
from dcarray.core.store import Store, memory
from dcarray.tiering import call_sites

ENTRIES = 256  # a recording of so many ends where a loop comes round
ENTRIES_TOGETHER = 2 * ENTRIES  # where several ranks run it: before and after it they tell each other of it
HELD_ELEMENTS = 1 << 19  # from so many on it is looked what a recording alone keeps alive
CHARS = "?bBhHiIlLqQefdFD"

Site = tuple[Any, int, Any, str | None]


class Keeper(Protocol):
    """Whose recording it is."""

    def flush(self, rec: Recording | None = None) -> None:
        """Run it."""

    def flush_sparing(self, rec: Recording, store: Store) -> None:
        """Run it for a result taken from a store, which need not be stored."""

    def forget(self, rec: Recording, length: int) -> None:
        """Nobody wants what a recording of this length holds; drop it if nothing was added."""

    @property
    def rec(self) -> Recording:
        """The current recording."""

    @property
    def iteration_ends(self) -> dict[int, Any]:
        """Where loops come round whose windows move: code objects by their instruction."""

    def take_arena(self) -> tuple[int, dict[str, Any]]:
        """Memory for scalars: its address, and views of it by dtype character."""


class Recording:
    """A log in the making.

    Attributes
    ----------
    log : list of tuple
        The entries, as in `dcarray.ir.build`.
    slots : list
        For each declaration the store (strongly for existing memory, weakly for what is to be computed).
    news : list of int
        The slots of what is to be computed.
    sites : list of (code, int, state, str or None)
        For each statement (not declaration): the user's code object and instruction, from which the line
        follows, NumPy's floating-point error state when it was recorded, and what NumPy calls it when it
        warns, if that does not follow from the operation.
    urgent : bool
        It holds something that must not wait: run it as soon as the entry is complete.
    due : bool
        It is long, or may keep much memory alive: before the next entry, `Session.ready` looks at it.
    entry_limit : int
        So many entries are many.
    held_elements : int
        The elements of the memory that it reads and writes.
    writes : bool
        It changes memory that existed before.
    composed : int
        Its length when the last of the entries was there that make one new array in parts: no loop's write.
    made : list of (code, int)
        The places where NumPy has made at once what it reads or writes; see `dcarray.tiering.call_sites`.
    leftover : (Replay, Exception) or None
        After a run: the statements that could not run, and why the first of them could not.
    failure : Exception or None
        Why the statements that it began with could not run before.
    one_off : bool
        Nothing like it will come again.
    iteration_ends : dict
        Where loops come round whose windows move: code objects by instruction.
    unstored : int
        The slot of an array that is not to be stored though somebody holds it; see
        `dcarray.recording.rematerialise`.
    selections : list of weak reference
        The selections by masks (`dcarray.api.lazy_selection`) made meanwhile; they are gathered after the
        run.
    history : object
        What is known of its values; see `dcarray.recording.value_numbering`.
    program : Program or None
        What this rank has run of it, where several have run it together.
    latest_mask : weak reference or None
        To the last mask that selected something; see `dcarray.recording.masked_assignment`.
    watched : int
        The floating-point exceptions that some entry does not ignore.
    """

    __slots__ = (
        "__weakref__", "arena", "composed", "done", "due", "entry_limit", "failure", "guard", "held_elements",
        "history", "iteration_ends", "kinds", "latest_mask", "leftover", "log", "made", "news", "one_off",
        "program", "selections", "session", "sites", "slots", "state", "unstored", "urgent", "views",
        "watched", "writes",
    )  # fmt: skip

    def __init__(self, session: Keeper) -> None:
        self.session = session
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
        self.composed = 0
        self.made: list[tuple[Any, int]] = []
        self.leftover: Any = None
        self.program: Any = None
        self.failure: Exception | None = None
        self.unstored = -1
        self.selections: list[Any] = []
        self.guard: Any = None
        self.history: Any = None
        self.latest_mask: Any = None
        self.writes = False
        self.one_off = False
        self.iteration_ends = session.iteration_ends
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
        if k > ENTRIES:
            self.due = True
        return k

    def materialise(self, head: Store, writing: bool = False) -> None:
        """As `run`, so that the memory of ``head`` may be read (or written)."""
        self.run(head, writing)
        if head.shard is not None:
            head.shard.materialise(head)

    def run(self, head: Store, writing: bool = False) -> None:
        """Run what is recorded here, if it has not run, so that the elements of ``head`` may be read (or
        written).

        Raises
        ------
        MemoryError
            If that cannot be computed for want of memory; it stays pending.
        """
        if not self.done:
            self.session.flush(self)
            left = head.used if writing else head.dirty
            if left is not None and not left.done:
                left.check()

    def check(self) -> None:
        """Raise what kept the statements that this recording began with from running, if any are left."""
        if self.failure is not None:
            raise copy.copy(self.failure)  # the traceback of the one that is kept would keep much alive

    def declare(self, store: Store) -> int:
        """The slot of a store that is read or written (``old``), or reshapes a pending one (``new``)."""
        slots = self.slots
        head = store._head
        if head is not None and head.rec is not self:
            self.declare(head)
        elif head is None and store.blank():
            memory(store)
        store.slot = slot = len(slots)
        store.rec = self
        first = slot if head is None else head.slot
        if store.eager_site is not None:
            call_sites.demote(store.eager_site)
            self.made.append(store.eager_site)
            store.eager_site = None
        if store.mem is not None:
            self.log.append(("old", store.char, store.shape, store.strides, first))
        elif store.family.shard is not None:
            if communicator() is None:
                raise foreign_thread()
            self.log.append(("old", store.char, store.shape, None, first))
        elif head is None or head.mem is None:
            self.log.append(("new", store.char, store.shape, first))
            if communicator() is None:  # who holds it must not keep its head alive, and so unfused
                slots.append(ref(store))
                return slot
        else:
            memory(store)
            self.log.append(("old", store.char, store.shape, store.strides, first))
        slots.append(store)
        self.held_elements += store.size
        if self.held_elements > HELD_ELEMENTS:
            self.due = True
        return slot

    def fresh(self, store: Store) -> int:
        """The slot of a new store that the next entry computes."""
        slots = self.slots
        store.slot = slot = len(slots)
        store.rec = store.dirty = self
        slots.append(ref(store))
        self.news.append(slot)
        self.log.append(("new", store.char, store.shape, slot))
        return slot

    def begun(self, store: Store) -> int:
        """The slot of a store without memory, all of which the next entry writes."""
        head = store._head
        if head is None:
            return self.fresh(store)
        self.fresh(head)
        return self.declare(store)

    def add(self, entry: tuple[Any, ...], frame: FrameType, warned_as: str | None = None) -> None:
        """Log a statement that ``frame`` asked for; ``warned_as``: as in `sites`."""
        log = self.log
        log.append(entry)
        code, place = frame.f_code, frame.f_lasti
        if len(log) > self.entry_limit or (self.iteration_ends and self.iteration_ends.get(place) is code):
            self.due = True
        state = captured()
        if state is not self.state:
            self.state = state
            self.watched |= watched(state)
        self.sites.append((code, place, state, warned_as))

    def wanted(self) -> bool:
        """Would anybody see it run?"""
        slots = self.slots
        return self.writes or any([slots[k]() is not None for k in self.news])

    def declarations(self) -> list[tuple[Any, ...]]:
        """The entries of the slots, in order."""
        return [entry for entry in self.log if entry[0] in ("old", "new")]

    def statements(self) -> list[tuple[Any, ...]]:
        """The entries that are no declarations; a statement's ``loc`` counts them."""
        return [entry for entry in self.log if entry[0] not in ("old", "new")]

    def drop(self) -> None:
        """Take the last entry back."""
        self.log.pop()
        self.sites.pop()
        self.history = None

    def scalar_addresses(self) -> list[int]:
        return [self.arena + 16 * k for k in range(len(self.kinds))]

    def scalar_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        return {f"c{k}": self.views[char][k : k + 1].reshape(()) for k, char in enumerate(self.kinds)}

    def store_at(self, slot: int) -> Store | None:
        entry = self.slots[slot]
        return entry if type(entry) is Store else entry()

    def lost(self, slot: int) -> Store:
        """A store like that of a slot whose last holder, in another thread, has let it go meanwhile."""
        entry = self.declarations()[slot]
        return Store(entry[2], np.dtype(entry[1]))
