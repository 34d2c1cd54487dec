"""Handles: the objects behind wrapped arrays.

A *small* handle has the plain ndarray in ``_small``, and NumPy runs every call on it eagerly.  A *large* one
has None there and is a window (``_shape``, ``_index``) of a store, whose memory may still have to be
computed.

How to make one:

=============================  =======================================================================
`adopt`                        on any plain array, whose memory it shares
`wrap_new`                     on a new one, to which no other object refers
`derive`                       on NumPy's result from a handle's plain view: a view or a copy of it
`part`                         on a view by a basic key, whose window is found when it is needed
`large`                        on a window of a store
`small`                        on a plain array that is known to be small
`as_class`                     on the array of a handle of another class
=============================  =======================================================================

How to get at the elements:

=============================  =======================================================================
`Handle._compute`              runs what is pending on them, wherever they are then: here, or in blocks
`Handle._evaluated`            the plain view, to read: pending writes have run
`Handle._writable`             the plain view, to write: pending reads have run, too
`Handle._eager_view`           the plain view if NumPy may work on it as it is, else None: runs nothing
`Handle._plain_view`           the plain view of memory that is known to be complete: runs nothing
`export`                       the plain view for code outside, which may keep it
=============================  =======================================================================
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from dcarray.lowering.runtime.array_memory import address_of

from . import config, window
from .processes import communicator
from .store import FAMILIES, Store, compilable, memory, owner, store_of, writeable

NDArray = np.ndarray[Any, Any]


AXES: Any = object()  # stands for a key where a view is the transpose


class Handle:
    """A window on a store, or a small plain ndarray.

    Attributes
    ----------
    _device : Device or None
        (Of the class.)  The device that its arrays are on; None for the CPU.
    """

    __slots__ = (
        "__weakref__",
        "_index",
        "_ndarray",
        "_origin",
        "_readonly",
        "_shape",
        "_small",
        "_small_view",
        "_store",
    )  # fmt: skip

    _device: Any = None
    _small: NDArray | None
    _store: Store
    _shape: tuple[int, ...]
    _index: window.Index | None
    _readonly: bool
    _ndarray: NDArray | None  # the view of the memory, once it was needed
    _small_view: (
        NDArray | None
    )  # that view, if it is so small that NumPy is to work on it when nothing is pending
    # What a slot that is still empty is found from, when somebody asks for it.  Which of two things it is
    # follows from how the array was made:
    #   by `part`, `_index` is empty: shape and index of the array that it is a view of, and the key;
    #   a view that NumPy made, `_index` and `_store` are empty: the store in whose memory `locate` finds it.
    _origin: Any

    def __getattr__(self, name: str) -> Any:
        if name != "_index":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        origin = self._origin
        if isinstance(origin, Store):
            locate(self)
            return self._index
        shape, whole, key = origin
        if whole is None:
            whole = window.identity(len(shape))
        if key is AXES:
            self._index = index = window.transpose(shape, whole, tuple(range(len(shape)))[::-1])[1]
        else:
            self._index = index = window.getitem(shape, whole, key)[1]
        return index

    @property
    def dtype(self) -> np.dtype[Any]:
        a = self._small
        return self._store.dtype if a is None else a.dtype

    def _evaluated(self) -> NDArray:
        """Return the plain view of this array's memory, after all pending writes to it have run."""
        if self._small is not None:
            return self._small
        store = self._store
        head = store._head or store
        rec = head.dirty
        if rec is not None and not rec.done:
            if 0 in self._shape and communicator() is not None:  # there is nothing to gather
                return self._empty()
            rec.materialise(head)
        return self._ndarray if self._ndarray is not None else self._plain_view()

    def _part_from_device(self) -> NDArray | None:
        """Return a copy of this part of an array on a device; None if it is no part, the host has the
        elements, or all of them should be copied."""
        if self._small is not None or self._index is None or self._store.origin is not None:
            return None
        head = self._store.family
        if head.dirty is not None and not head.dirty.done:
            head.dirty.run(head)
        if head.remote is None or head.remote.device is None:
            return None
        elements: NDArray | None = head.remote.part(head, self._store, self._shape, self._index)
        return elements

    def _empty(self) -> NDArray:
        """Return a plain array without elements, of this array's shape and dtype."""
        a = np.empty(self._shape, self._store.dtype)
        a.flags.writeable = not self._readonly
        return a

    def _compute(self) -> None:
        """Run all pending writes to this array's elements, distributed or not.  Whole memory to which other
        objects refer is updated."""
        head = self._store.family
        rec = head.dirty
        if rec is not None and not rec.done:
            rec.run(head)
        if head.remote is None or head.is_exposed():
            self._evaluated()

    def _plain_view(self) -> NDArray:
        """Return the plain view of this array's memory, which must exist."""
        if self._ndarray is None:
            mem = self._store.mem
            if mem is None:
                mem = memory(self._store)
            a = mem if self._index is None else window.view(mem, self._shape, self._index)
            if self._readonly and a.flags.writeable:
                a = a.view()
                a.flags.writeable = False
            self._ndarray = a
        return self._ndarray

    def _writable(self) -> NDArray:
        """Return the plain array for writing, after all that is pending on its memory has run, also what
        reads it."""
        if self._small is not None:
            return self._small
        head = self._store.family
        rec = head.used
        if rec is not None:
            if 0 in self._shape and communicator() is not None:
                return self._empty()
            rec.materialise(head, writing=True)
        a = self._evaluated()
        if head.remote is not None and a.size:  # what was pending has left the elements on a device, too
            head.remote.materialise(head, writing=True)
        return a

    def _eager_view(self) -> NDArray | None:
        """Return the plain view, if NumPy may work on it eagerly: it is small, and nothing is pending on it.
        NumPy's result must not be a view of it."""
        return self._small_view if self._small_view is not None and self._idle() else None

    def _idle(self) -> bool:
        """Whether nothing is pending on this memory."""
        if self._small is not None:
            return True
        head = self._store.family
        used, dirty = head.used, head.dirty
        return (used is None or used.done) and (dirty is None or dirty.done)

    def _has_pending(self) -> bool:
        """Whether a recording that uses this memory has yet to run; distributed memory is not `_idle`."""
        if self._small is not None:
            return False
        head = self._store.family
        pending = [p for p in (head.used, head.dirty) if p is not None and p is not head.remote]
        return any(not p.done for p in pending)

    def _window(self) -> window.Index:
        return window.identity(len(self._shape)) if self._index is None else self._index


def register(store: Store) -> None:
    """Register the memory of a store's family under its owner, before code outside has plain views of it."""
    head = store.family
    if head.mem is None and not head.is_unused():
        return  # of memory that does not exist yet, only views without elements are handed out
    own = owner(memory(store))
    if FAMILIES.find(own) is None:
        FAMILIES.add(own, store.family)


def small(cls: type[Handle], a: NDArray) -> Any:
    """Return a small handle on ``a``."""
    x = object.__new__(cls)
    x._small = a
    return x


def large(cls: type[Handle], store: Store, shape: tuple[int, ...], index: window.Index | None) -> Any:
    """Return a large handle on a window of a store."""
    x = object.__new__(cls)
    x._small = None
    x._store = store
    x._shape = shape
    x._index = index
    x._readonly = False
    x._ndarray = x._small_view = None
    return x


_composed: Any = Handle.__dict__["_index"]  # the slot itself: the attribute would fill it


def as_class(cls: type[Handle], x: Any) -> Any:
    """Return a handle of the class ``cls`` on the same elements as the array ``x``."""
    y = object.__new__(cls)
    y._small = x._small
    if x._small is None:
        y._store, y._shape, y._readonly = x._store, x._shape, x._readonly
        y._ndarray, y._small_view = x._ndarray, x._small_view
        try:
            y._index = _composed.__get__(x)
        except AttributeError:  # a view whose window is not composed yet
            y._origin = x._origin
    return y


def part(whole: Handle, key: Any, view: NDArray) -> Any:
    """Return the handle of ``whole[key]`` by a basic key, given the plain view of it."""
    x = object.__new__(type(whole))
    x._small = None
    x._store = whole._store
    x._shape = view.shape
    x._origin = (whole._shape, whole._index, key)
    x._readonly = whole._readonly
    x._ndarray = view
    x._small_view = view if view.size < config.current().eager_below else None
    return x


def locate(x: Handle) -> None:
    """Set the window of a view that NumPy made: of the store it is a view of, or of its own."""
    store: Store = x._origin
    a = x._ndarray
    assert a is not None
    index = window.find_window(memory(store), a) if a.dtype == store.dtype else None
    if index is None:
        register(store)
        store = store_of(a)
    else:
        axes = [axis for _, _, axis in index if axis is not None]
        store.permuted |= axes != sorted(axes)
    x._index = index
    x._store = store


def adopt(cls: type[Handle], a: NDArray, eager_below: int) -> Any:
    """Return a handle that shares the memory of ``a``.

    It is small if the owner of the memory is a small array, so that all views of one memory are of one kind.
    """
    if compilable(a):
        own = owner(a)
        if isinstance(own, np.ndarray) and own.size < eager_below and (own is a or compilable(own)):
            return small(cls, a)
    x = large(cls, store_of(a), a.shape, None)
    x._readonly = not writeable(a)
    x._ndarray = a
    return x


def wrap_new(cls: type[Handle], a: NDArray, eager_below: int) -> Any:
    """Return a handle on a new contiguous array, of a dtype that compiles, that no other object refers to."""
    if a.size < eager_below:
        return small(cls, a)
    store = Store(a.shape, a.dtype, None, a.size)
    store.bind_new(a, address_of(a))
    return large(cls, store, a.shape, None)


def export(x: Handle) -> NDArray:
    """Return the plain view for code outside; while that view, or a view of it, lives, work on this memory is
    eager.

    Its base is a memoryview, or an array with such a base: views of it keep that alive, by which they are
    noticed.
    """
    a = x._writable()  # pending reads must not see what is written through it
    if x._small is not None:
        return a
    head = x._store.family
    register(x._store)
    if not x._store.char:  # nothing is ever recorded; and buffers do not know every dtype
        head.exports = [lambda: a]
        return a
    # the elements of a part may have come alone, from other ranks or a device
    mem = a if head.mem is None and a.flags.c_contiguous else memory(x._store)
    held = None if mem is a else _lent(head, mem)
    if held is not None:
        out = held.view() if x._index is None else window.view(held, x._shape, x._index)
    else:
        # NumPy asks it whether views may be written, and only contiguous memory can say so.
        exporter: Any = mem if mem.flags.c_contiguous else a
        held = np.asarray(memoryview(exporter))
        out = held if exporter is a else window.view(held, x._shape, x._window())
        x._store.is_exported()  # drops references to those that have gone
        head.exports = [*(head.exports or []), weakref.ref(held)]
    if not writeable(a):
        out.flags.writeable = False
    return out


def _lent(head: Store, mem: NDArray) -> NDArray | None:
    """Return the plain array last given out for this memory, if it is still alive, so that parts given out
    one by one are views of one array; else None."""
    last = head.exports[-1]() if head.exports else None
    same = (
        type(last) is np.ndarray
        and last.shape == mem.shape
        and last.strides == mem.strides
        and last.dtype == mem.dtype
        and last.flags.writeable == mem.flags.writeable
        and address_of(last) == address_of(mem)
    )
    return last if same else None


def derive(x: Handle, view: NDArray, eager_below: int) -> Any:
    """Return a handle on ``view``, which NumPy made from the memory of ``x``, and which may share it.

    A view of a small array's memory is small, and so is a copy, but not one of many more elements.
    """
    a = x._small
    if a is None:
        register(x._store)
    elif view is a:
        return x
    else:
        few = view.size < eager_below
        if (few and view.dtype is a.dtype) or (compilable(view) and (few or owner(view) is owner(a))):
            return small(type(x), view)
    return adopt(type(x), view, eager_below)
