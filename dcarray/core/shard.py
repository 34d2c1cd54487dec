"""Shards: a rank's block of a distributed store.

The elements of a storage family lie either whole in memory of this process, or in blocks, one on each rank
(`Store.remote` of the family's head).  A shard counts as work pending on the memory: any access to the whole
memory first gathers it, on all ranks.
"""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.lowering.runtime.array_memory import allocate

from .config import current
from .counters import note, user_line
from .errors import StrictError
from .own_files import is_inside
from .processes import communicating
from .references import GIVEN, LISTED
from .store import FAMILIES, Store, owner

if TYPE_CHECKING:
    from dcarray.comm.layout.layouts import Layout
    from dcarray.comm.planning.analysis.halo_state import ValidHalos
    from dcarray.comm.transport.protocol import Communicator

__all__ = ["Shard", "gather_store", "local_block", "set_shard"]

NDArray = np.ndarray[Any, Any]


class Shard:
    """This rank's block of a store; while it is there, the store's own memory is out of date.

    Attributes
    ----------
    layout : Layout
        The layout, with the halo that the block has room for.
    held : ndarray or object
        This rank's elements and halo, or what has them on the rank's device.
    comm : Communicator
        The ranks.
    filled : Valid or None
        The part of the halo whose values are those of the neighbours.
    done : bool
        Whether the elements have been moved elsewhere.
    exposed : bool
        Whether the block may be written to without notice.
    device : None
        Its elements are in the memory of a process.
    """

    __slots__ = ("__weakref__", "comm", "done", "exposed", "filled", "held", "layout")
    device = None

    def __init__(
        self, layout: Layout, held: Any, comm: Communicator, filled: ValidHalos | None = None
    ) -> None:
        self.layout, self.held, self.comm, self.filled = layout, held, comm, filled
        self.done = self.exposed = False

    def elements(self) -> NDArray:
        """This rank's elements and halo on the host, for reading only."""
        held = self.held
        return held if isinstance(held, np.ndarray) else held.on_host()

    @property
    def block(self) -> NDArray:
        """This rank's elements and halo on the host, where they may be written to."""
        if not isinstance(self.held, np.ndarray):
            self.held = self.held.on_host(True)
        return self.held

    @block.setter
    def block(self, elements: NDArray) -> None:
        self.held = elements

    def run(self, head: Store, writing: bool = False) -> None:
        """Do nothing: the elements of a shard are computed."""

    def materialise(self, head: Store, writing: bool = False) -> None:
        """Gather the elements in the memory of ``head``.  If a NumPy function without a distributed form
        needs them, the report notes it.

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
        """Do nothing: shards hold no failed work."""


_NAMES = {"__getitem__": "getitem", "__setitem__": "setitem", "reshape": "reshape"}


def _calling_function() -> str | None:
    """Return the name of the NumPy function that the user has called and that needs whole memory, or None."""
    frame: FrameType | None = sys._getframe(2)
    called = None
    while frame is not None and is_inside(frame.f_code.co_filename):
        if frame.f_code.co_name in ("__array_function__", "__array_ufunc__"):
            what = frame.f_locals.get("func", frame.f_locals.get("ufunc"))
            called = getattr(what, "__name__", None)
        elif frame.f_code.co_name in _NAMES:
            called = _NAMES[frame.f_code.co_name]
        elif frame.f_code.co_name == "method":  # a method that was made by its name
            called = frame.f_locals.get("name", called)
        frame = frame.f_back
    return called


def set_shard(head: Store, held: Shard) -> None:
    """Make a shard hold the elements of a family.

    Whole memory that other objects know is kept, to be gathered into; any other is freed.
    """
    mem = head.mem
    if mem is not None and _is_unshared(mem):
        head.mem = None
        head.strides, head.permuted = None, False
    head.remote = head.dirty = held
    if head.is_exposed():
        _exposed_stores()[id(head)] = head


_local = threading.local()


def _exposed_stores() -> dict[int, Store]:
    """Return the distributed stores of this thread whose whole memory other objects know, in the order in
    which they were distributed.  The table keeps them alive until they are gathered."""
    try:
        return _local.shared  # type: ignore[no-any-return]
    except AttributeError:
        _local.shared = {}
        return _local.shared  # type: ignore[no-any-return]


def gather_exported() -> None:
    """Gather all distributed stores whose whole memory other objects know."""
    known = _exposed_stores()
    while known:
        gather_store(known.pop(next(iter(known))))


def _is_unshared(mem: NDArray) -> bool:
    """Whether no object outside this package refers to this memory."""
    if FAMILIES.find(owner(mem)) is not None or not mem.flags.c_contiguous:
        return False
    base = mem.base  # the store has the array, and the array its base
    return sys.getrefcount(mem) <= GIVEN and (base is None or sys.getrefcount(base) <= LISTED)


def gather_store(head: Store) -> None:
    """Gather the elements of a family in its whole memory, on all ranks."""
    from dcarray.comm.exchange.redistribute import redistribute
    from dcarray.comm.layout.layouts import Layout

    held = head.remote
    if held is None:
        return
    mem, address = head.mem, head.address
    if mem is None:
        mem, address = allocate(head.shape, head.dtype)
    copies = Layout.copies(held.layout.shape, held.layout.grid)
    with communicating():
        held.comm.step(("gather", held.layout.shape))
        redistribute(held.layout, copies, held.comm.rank).run(held.comm, held.elements(), mem)
    if head.mem is None:
        head.bind_new(mem, address)
    discard_shard(head)


def discard_shard(head: Store) -> None:
    """Remove the shard of a family, whose elements are elsewhere."""
    held = head.remote
    held.done, head.remote = True, None
    _exposed_stores().pop(id(head), None)
    if head.dirty is held:
        head.dirty = None


def empty_sharded(shape: tuple[int, ...], dtype: np.dtype[Any], layout: Layout, comm: Communicator) -> Store:
    """Return a distributed store with uninitialised elements."""
    store = Store(shape, dtype)
    block = allocate(layout.local_shape(comm.rank), dtype)[0]
    set_shard(store, Shard(layout, block, comm))
    return store


def element(head: Store, index: tuple[int, ...]) -> Any:
    """Return one element of a distributed family, after its rank has sent it to all others."""
    held = head.remote
    layout, comm = held.layout, held.comm
    owner = layout.owner(index)
    value: NDArray = np.empty((), head.dtype)
    if comm.rank == owner:
        value[...] = held.elements()[layout.to_local(index)]
    with communicating():
        comm.bcast(value, owner)
    return value[()]


def local_block(mem: NDArray, layout: Layout, comm: Communicator) -> NDArray:
    """Return a copy of this rank's block of whole memory; no communication."""
    from dcarray.comm.exchange.redistribute import redistribute
    from dcarray.comm.layout.layouts import Layout

    block: NDArray = np.empty(layout.local_shape(comm.rank), mem.dtype)
    redistribute(Layout.copies(layout.shape, layout.grid), layout, comm.rank).run(comm, mem, block)
    return block
