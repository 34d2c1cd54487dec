"""Memory that is dealt out over the ranks: this rank's block of a store.

A store's elements lie either in memory that this process has whole, or in blocks, one on each rank.  Which it
is, is a matter of the head of a family (`Store.shard`).  As long as they lie in blocks, that is
something pending on the memory: whoever asks for it, by whatever way, has it gathered first, on all ranks.
"""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.lowering.runtime.memory import allocate

from .config import current
from .counters import is_inside, note, user_line
from .errors import StrictError
from .processes import communicating
from .store import FAMILIES, Store, owner

if TYPE_CHECKING:
    from dcarray.comm.layout.layouts import Layout
    from dcarray.comm.planning.analysis.halo_state import ValidHalos
    from dcarray.comm.transport.protocol import Communicator

__all__ = ["Shard", "gather_store", "local_block", "set_shard"]

NDArray = np.ndarray[Any, Any]


class Shard:
    """This rank's block of a store, which holds the truth about its elements.

    Attributes
    ----------
    layout : Layout
        With the halo that the block has room for.
    block : ndarray
        This rank's elements and halo.
    comm : Communicator
        The ranks.
    filled : Valid or None
        What of the halo is what the neighbours have.
    done : bool
        The elements do not lie in this block any more.
    exposed : bool
        Somebody may write to the block unseen.
    """

    __slots__ = ("__weakref__", "block", "comm", "done", "exposed", "filled", "layout")

    def __init__(
        self, layout: Layout, block: NDArray, comm: Communicator, filled: ValidHalos | None = None
    ) -> None:
        self.layout, self.block, self.comm, self.filled = layout, block, comm, filled
        self.done = self.exposed = False

    def run(self, head: Store, writing: bool = False) -> None:
        """Nothing has to run."""

    def materialise(self, head: Store, writing: bool = False) -> None:
        """Gather the elements in the memory of ``head``; for a function without a distributed form with a
        line in the report.

        Raises
        ------
        StrictError
            In strict mode, for such a function.
        """
        if not self.done:
            function = _calling_function()
            if function is not None and head.size > 1:
                if current().strict:
                    raise StrictError(f"{function} of distributed arrays", user_line())
                note(f"{function} (gathered)", head.size * head.dtype.itemsize)
            gather_store(head)

    def check(self) -> None:
        """Nothing that is in blocks has failed."""


_NAMES = {"__getitem__": "getitem", "__setitem__": "setitem", "reshape": "reshape"}


def _calling_function() -> str | None:
    """The function of NumPy that the user has called and that asks for whole memory now, if it is one."""
    frame: FrameType | None = sys._getframe(2)
    found = None
    while frame is not None and is_inside(frame.f_code.co_filename):
        if frame.f_code.co_name in ("__array_function__", "__array_ufunc__"):
            what = frame.f_locals.get("func", frame.f_locals.get("ufunc"))
            found = getattr(what, "__name__", None)
        elif frame.f_code.co_name in _NAMES:
            found = _NAMES[frame.f_code.co_name]
        elif frame.f_code.co_name == "method":  # one of those made by name
            found = frame.f_locals.get("name", found)
        frame = frame.f_back
    return found


def set_shard(head: Store, held: Shard) -> None:
    """From now on the elements of a family lie in blocks.

    Whole memory that others may look at stays, to be gathered into; any other goes.
    """
    mem = head.mem
    if mem is not None and _unshared(mem):
        head.mem = None
        head.strides, head.permuted = None, False
    head.shard = head.dirty = held
    if head.known():
        _shared()[id(head)] = head


_local = threading.local()


def _shared() -> dict[int, Store]:
    """The arrays of this thread whose whole memory somebody else knows, in the order in which they were
    laid out in blocks.  They live until they are gathered, whoever else has let them go."""
    try:
        return _local.shared  # type: ignore[no-any-return]
    except AttributeError:
        _local.shared = {}
        return _local.shared  # type: ignore[no-any-return]


def gather_exported() -> None:
    """Bring memory that others look at up to date."""
    known = _shared()
    while known:
        gather_store(known.pop(next(iter(known))))


def _unshared(mem: NDArray) -> bool:
    """Does nobody else know this memory?"""
    if FAMILIES.find(owner(mem)) is not None or not mem.flags.c_contiguous:
        return False
    # references to the array: the store's, the caller's, ours, getrefcount's argument; to its base one less
    base = mem.base
    return sys.getrefcount(mem) <= 4 and (base is None or sys.getrefcount(base) <= 3)


def gather_store(head: Store) -> None:
    """Gather the elements of a family in its memory, on all ranks."""
    from dcarray.comm.exchange.redistribute import redistribute
    from dcarray.comm.layout.layouts import Layout

    held = head.shard
    if held is None:
        return
    mem, address = head.mem, head.address
    if mem is None:
        mem, address = allocate(head.shape, head.dtype, head.size)
    copies = Layout.copies(held.layout.shape, held.layout.grid)
    with communicating():
        held.comm.step(("gather", held.layout.shape))
        redistribute(held.layout, copies, held.comm.rank).run(held.comm, held.block, mem)
    if head.mem is None:
        head.bind_new(mem, address)
    discard_shard(head)


def discard_shard(head: Store) -> None:
    """The elements of a family do not lie in blocks any more."""
    held = head.shard
    held.done, head.shard = True, None
    _shared().pop(id(head), None)
    if head.dirty is held:
        head.dirty = None


def empty_sharded(shape: tuple[int, ...], dtype: np.dtype[Any], layout: Layout, comm: Communicator) -> Store:
    """A store in blocks without values."""
    store = Store(shape, dtype)
    block = allocate(layout.local_shape(comm.rank), dtype)[0]
    set_shard(store, Shard(layout, block, comm))
    return store


def element(head: Store, place: tuple[int, ...]) -> Any:
    """One element of a family that lies in blocks, on all ranks."""
    held = head.shard
    layout, comm = held.layout, held.comm
    owner = layout.owner(place)
    found: NDArray = np.empty((), head.dtype)
    if comm.rank == owner:
        found[...] = held.block[layout.to_local(place)]
    with communicating():
        comm.bcast(found, owner)
    return found[()]


def local_block(mem: NDArray, layout: Layout, comm: Communicator) -> NDArray:
    """This rank's block of whole memory, as a copy; nothing travels."""
    from dcarray.comm.exchange.redistribute import redistribute
    from dcarray.comm.layout.layouts import Layout

    block: NDArray = np.empty(layout.local_shape(comm.rank), mem.dtype)
    redistribute(Layout.copies(layout.shape, layout.grid), layout, comm.rank).run(comm, mem, block)
    return block
