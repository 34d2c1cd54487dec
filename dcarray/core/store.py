"""Stores: the memory of wrapped arrays, existing or pending, and which of it is shared.

A *store* is one geometry (shape, dtype, strides) of some memory, or of memory that is still to be computed.
Stores of the same memory belong to one *family*, headed by the store that came first, which holds all that
concerns aliasing: the recordings that write the memory, and the views that have been handed out.
"""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from dcarray.lowering.runtime.array_memory import address_of, allocate

from .floor import LETTERS
from .processes import simulated
from .window import Index, view


class Pending(Protocol):
    """Work pending on a store's memory: a recording, a shard or a device's buffer."""

    done: bool

    def run(self, head: Store, writing: bool = False) -> None:
        """Run the work, if it has not run, so that the elements of ``head`` are computed, or its blocks."""

    def materialise(self, head: Store, writing: bool = False) -> None:
        """Run the work, if it has not run, so that the whole memory of ``head`` may be read (or written)."""

    def check(self) -> None:
        """Raise the error of an attempt to run the work, if one failed."""


# The dtypes that compile, by their character code.  NumPy does all others.
# Not those that are another name of the same: compiled code would change it.
COMPILED = frozenset(LETTERS) - (frozenset("qQ") if np.dtype("l").itemsize == 8 else frozenset())


class Store:
    """A piece of memory, existing or pending, seen with one shape, dtype and strides.

    Attributes
    ----------
    shape, dtype
        The geometry that windows refer to.
    strides
        In elements; None for C order.
    permuted
        Whether a view may have its axes in another order in memory than C's.
    char
        The dtype's character code; empty if kernels cannot work on this memory.
    mem
        The memory as an ndarray of this geometry; None while it is still to be computed.
    family
        The head of the memory's family (itself, for most).
    rec, slot
        The recording in which this store last got a slot, and that slot.
    used, dirty
        (Family head.)  The recordings that last read and wrote this memory; meaningless once these have run.
    exports
        (Family head.)  Weak references to plain ndarrays of this memory that were handed out.
    remote
        (Family head.)  Where the elements are besides the memory, or instead of it: this rank's block
        (`dcarray.core.shard`) or a device's buffer (`dcarray.offload.buffer`).
    origin
        The elements of a view that no window describes and that has no memory yet.
    views
        (Family head.)  Such views by their geometry, so that each is one store.
    """

    __slots__ = (
        "__weakref__",
        "_head",
        "address",
        "char",
        "dirty",
        "dtype",
        "exports",
        "mem",
        "origin",
        "permuted",
        "rec",
        "remote",
        "shape",
        "size",
        "slot",
        "strides",
        "used",
        "views",
    )  # fmt: skip

    address: int
    mem: np.ndarray[Any, Any] | None
    rec: Pending | None
    used: Pending | None
    dirty: Pending | None
    exports: list[Callable[[], Any]] | None
    remote: Any
    origin: Origin | None
    views: Any

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], family: Store | None = None, size: int = -1
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.address = 0
        self.char: str = dtype.char
        self.slot = -1
        self.size = math.prod(shape) if size < 0 else size
        self.strides: tuple[int, ...] | None = None
        self.permuted = False
        self.mem = None
        self.rec = self.used = self.dirty = self.exports = self.remote = None
        self.origin = self.views = None
        # None for itself: a cycle would keep temporaries alive, and so unfused, until the collector comes
        self._head = family

    @property
    def family(self) -> Store:
        head = self._head
        return self if head is None else head

    def bind_new(self, mem: np.ndarray[Any, Any], address: int) -> None:
        """Give the store new memory of its own geometry, contiguous and aligned."""
        self.mem = mem
        self.address = address

    def bind(self, mem: np.ndarray[Any, Any]) -> None:
        """Make an array, of any strides, the memory of the store."""
        self.mem = mem
        self.address = address_of(mem)
        if not compilable(mem):
            self.char = ""
        elif not mem.flags.c_contiguous:
            item = mem.itemsize
            self.strides = tuple(s // item for s in mem.strides)
            steps = [abs(s) for s, n in zip(self.strides, mem.shape, strict=True) if s and n > 1]
            self.permuted = steps != sorted(steps, reverse=True)

    def is_exposed(self) -> bool:
        """(Family head.)  Whether other objects may know its whole memory; the same on all ranks."""
        return self.mem is not None and FAMILIES.find(owner(self.mem)) is not None

    def is_unused(self) -> bool:
        """(Family head.)  Whether the memory was never used, so that there is none yet."""
        return self.mem is None and self.rec is None and self.dirty is None and self.remote is None

    def is_exported(self) -> bool:
        """Whether a plain ndarray of this memory that was handed out is still alive."""
        head = self.family
        if head.exports is None:
            return False
        head.exports = [r for r in head.exports if r() is not None] or None
        return head.exports is not None


class Origin(NamedTuple):
    """The elements of a view as a window of another store: its elements in C order, reinterpreted in the
    view's dtype, of which one element of the window may hold several."""

    parent: Store
    shape: tuple[int, ...]
    window: Index | None

    def view(self, store: Store) -> np.ndarray[Any, Any]:
        """Return the memory of the view, shared with the parent."""
        a = memory(self.parent)
        if self.window is not None:
            a = view(a, self.shape, self.window)
        if a.itemsize != store.dtype.itemsize:
            a = a[..., None]
        return a.view(store.dtype).reshape(store.shape)


def memory(store: Store) -> np.ndarray[Any, Any]:
    """Return the memory of a store that is computed; a reshape shares that of its head."""
    if store.mem is None:
        head = store.family
        if head.is_unused():
            head.bind_new(*allocate(head.shape, head.dtype))
        assert head.mem is not None
        if store.origin is not None:
            store.bind(store.origin.view(store))
        elif store is not head:
            store.bind(head.mem.view(store.dtype).reshape(store.shape))
    assert store.mem is not None
    return store.mem


def compiles(dtype: np.dtype[Any]) -> bool:
    """Whether kernels support a dtype, with its byte order, metadata and fields."""
    return dtype.char in COMPILED and dtype.isnative and dtype.metadata is None and dtype.fields is None


def compilable(a: np.ndarray[Any, Any]) -> bool:
    """Whether kernels may work on an array: its dtype compiles, it is aligned, strides are whole elements,
    and no two elements share memory if it may be written."""
    if not (compiles(a.dtype) and a.flags.aligned):
        return False
    if a.flags.c_contiguous:
        return True
    return all(s % a.itemsize == 0 for s in a.strides) and not (writeable(a) and _overlaps_itself(a))


def writeable(a: np.ndarray[Any, Any]) -> bool:
    """Whether an array may be written; False of `numpy.broadcast_arrays`' results, which would warn."""
    flags = a.flags.num
    return bool(flags & 0x400) and not flags & (1 << 31)


def _overlaps_itself(a: np.ndarray[Any, Any]) -> bool:
    """Whether two elements may share memory."""
    span = a.itemsize
    for stride, n in sorted((abs(s), n) for s, n in zip(a.strides, a.shape, strict=True) if n > 1):
        if stride < span:
            return True
        span += stride * (n - 1)
    return False


def owner(a: Any) -> Any:
    """Return the object at the end of the chain of bases; arrays with the same owner may share memory."""
    while True:
        base: Any = a.obj if isinstance(a, memoryview) else getattr(a, "base", None)
        if (
            base is None and type(a).__name__ == "_buffer_wrapper"
        ):  # of Python 3.12, for classes with __buffer__
            base = next((x for x in gc.get_referents(a) if isinstance(x, memoryview)), None)
        if base is None or base is a:  # arrays of Cython are their own base
            return a
        a = base


class Registry:
    """The storage families by the owners of their memory; a family keeps its owner alive, so ids stay valid.

    Attributes
    ----------
    families : dict
        Weak references to the families by the identity of the owner; also to families that are gone, until
        there are many.  The C module reads it and adds to it.
    """

    def __init__(self) -> None:
        self.families: _Families = {}
        self._many = _LEAST_SWEPT
        # ranks that are threads share arguments and globals, but no families
        self._simulated: weakref.WeakKeyDictionary[Any, _Families] = weakref.WeakKeyDictionary()

    def _here(self) -> _Families:
        rank = simulated()
        if rank is None:
            return self.families
        return self._simulated.setdefault(rank, {})

    def find(self, own: Any) -> Store | None:
        seen = self._here().get(id(own))
        return None if seen is None else seen()

    def add(self, own: Any, store: Store) -> None:
        here = self._here()
        if len(here) >= self._many:
            self.forget(here)
        here[id(own)] = weakref.ref(store)

    def forget(self, here: _Families | None = None) -> int:
        """Drop the families that no longer exist; return the number of entries at which to do so again."""
        here = self.families if here is None else here
        for key in list(here):  # pairs would have to be made, and what collects garbage may run other threads
            seen = here.get(key)
            if seen is not None and seen() is None and here.get(key) is seen:
                here.pop(key, None)
        self._many = max(_LEAST_SWEPT, 2 * len(here))
        return self._many


_Families = dict[int, weakref.ref[Store]]
_LEAST_SWEPT = 512  # entries at which those of families that are gone are dropped first


FAMILIES = Registry()


def store_of(a: np.ndarray[Any, Any]) -> Store:
    """Return the store of an ndarray, in the family of its memory."""
    own = owner(a)
    head = FAMILIES.find(own)
    if head is not None and head.mem is a:
        return head
    store = Store(a.shape, a.dtype, head)
    store.bind(a)
    if head is None:
        FAMILIES.add(own, store)
    elif not head.char:
        store.char = ""  # regions declare the head of a family too
    return store
