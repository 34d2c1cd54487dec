"""Buffers of devices that hold the elements of stores.

A buffer counts as work pending on the memory of its storage family: who reads that memory has newer elements
copied into it first, and who writes to it has the buffer dropped.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dcarray.core.config import current
from dcarray.core.handle import Handle, large
from dcarray.core.processes import LOCK
from dcarray.core.store import Store, memory
from dcarray.core.strides import c_strides
from dcarray.core.window import Index
from dcarray.lowering.runtime.buffer_pool import allocate

if TYPE_CHECKING:
    from dcarray.lowering.gpu.device import Device

__all__ = [
    "DeviceBuffer", "DeviceError", "array_in", "least_elements", "lost", "reserved", "resident", "settle",
    "settle_new", "uploaded",
]  # fmt: skip


SINGLE = 100_000
"""Bytes that a copy to the host takes no longer for than for one element."""


AT_LEAST = 1024
"""Elements from which on an array that is put on a device lies there."""


def least_elements() -> int:
    """Return the elements from which on an array lies on the device that it is put on.

    What works on smaller ones alone is done on the host before a kernel is launched.  Each use of a small
    array together with one on the device copies it, so that these are fewer than where NumPy is sooner on the
    processor (`eager_below`).
    """
    return min(current().eager_below, AT_LEAST)


class DeviceError(RuntimeError):
    """The error of reading elements that a device has lost."""


class DeviceBuffer:
    """The elements of a storage family in a device's memory, in C order of the head's geometry.

    Attributes
    ----------
    device : Device
        The device.
    buffer : object
        Its buffer.
    ahead : bool
        Whether the host's memory is out of date.
    behind : bool
        Whether the buffer is out of date.
    exposed : bool
        Whether other libraries know it: they may write to it at any time, and it has to stay.
    done : bool
        Whether the buffer was dropped.
    read : int
        Bytes that were copied to the host in parts, each of which counts as `SINGLE` at least.
    limits : tuple of int or None
        The least and the greatest of its elements, if these are integers and somebody has asked.
    failure : Exception or None
        The error by which a run on the device has left the elements in an unknown state.
    """

    __slots__ = (
        "__weakref__",
        "ahead",
        "behind",
        "buffer",
        "device",
        "done",
        "exposed",
        "failure",
        "limits",
        "read",
    )

    def __init__(self, device: Device, buffer: Any, ahead: bool) -> None:
        self.device, self.buffer, self.ahead = device, buffer, ahead
        self.behind = self.exposed = self.done = False
        self.read = 0
        self.failure: Exception | None = None
        self.limits: tuple[int, int] | None = None

    def run(self, head: Store, writing: bool = False) -> None:
        """Nothing has to run: what fills the buffer is in the device's queue."""

    def materialise(self, head: Store, writing: bool = False) -> None:
        """Bring the host's memory up to date; before it is written, drop the buffer.

        Raises
        ------
        DeviceError
            If the elements cannot be had.
        """
        with LOCK:
            if self.ahead and not self.done:
                self._download(head)
            if writing and not self.done:
                self.drop(head)

    def part(
        self, head: Store, store: Store, shape: tuple[int, ...], index: Index
    ) -> np.ndarray[Any, Any] | None:
        """Return a copy of the elements at a window of one of the family's stores, which has all elements of
        the head.

        What lies between the window's first element and its last one is copied.

        Returns
        -------
        ndarray or None
            None if the host has the elements, or had better have all of them: so much has been read like
            this, or the window has few of those in between.

        Raises
        ------
        DeviceError
            If they cannot be had.
        """
        item = store.dtype.itemsize
        strides = c_strides(store.shape)
        steps = [0] * len(shape)
        low = 0
        for stride, (offset, step, axis) in zip(strides, index, strict=True):
            low += stride * offset
            if axis is not None:
                steps[axis] += stride * step
        reach = [step * (extent - 1) for step, extent in zip(steps, shape, strict=True)]
        start = low + sum(r for r in reach if r < 0)
        count = sum(map(abs, reach)) + 1
        size = math.prod(shape)
        if not size or count * item > max(SINGLE, 2 * size * item):
            return None
        with LOCK:
            if self.done or not self.ahead or self.read + count * item > head.size * head.dtype.itemsize:
                return None
            self.check()
            found = np.empty(count, store.dtype)
            self._copy_into(found, start * item)
            self.read += max(SINGLE, count * item)
        return as_strided(found[low - start :], shape, [step * item for step in steps])

    def check(self) -> None:
        """Raise the error of elements that were lost.

        Raises
        ------
        DeviceError
        """
        if self.failure is not None:
            raise self._lost(self.failure)

    def drop(self, head: Store) -> None:
        """Forget the buffer: the host's memory has the elements, and is about to change."""
        if self.exposed:
            self.ahead, self.behind = False, True
            if head.dirty is self:
                head.dirty = None
            return
        self.done = True
        self.buffer = None
        if head.remote is self:
            head.remote = None
        if head.dirty is self:
            head.dirty = None
        if head.used is self:
            head.used = None

    def _download(self, head: Store) -> None:
        self.check()
        mem, address = head.mem, head.address
        if mem is None:
            mem, address = allocate(head.shape, head.dtype, head.size)
        into = mem if mem.flags.c_contiguous else np.empty(head.shape, head.dtype)
        self._copy_into(into)
        if into is not mem:
            mem[...] = into
        if head.mem is None:
            head.bind_new(mem, address)
        if not self.exposed:
            self.ahead = False
            if head.dirty is self:
                head.dirty = None

    def _copy_into(self, target: np.ndarray[Any, Any], start: int = 0) -> None:
        try:
            self.device.download(self.buffer, target, start)
        except MemoryError:
            raise
        except Exception as error:
            raise self._lost(error) from error

    def refresh(self, head: Store) -> None:
        """Bring the buffer up to date."""
        if self.behind:
            self.device.upload(np.ascontiguousarray(memory(head)), self.buffer)
            self.behind, self.ahead, self.limits = False, self.exposed, None

    def expose(self, head: Store) -> None:
        """Let other libraries have the buffer: operations on it run at the call from now on."""
        self.exposed = self.ahead = True
        head.dirty = head.used = self
        head.exports = [lambda: self]

    def _lost(self, error: Exception) -> DeviceError:
        if isinstance(error, DeviceError):
            return DeviceError(str(error))  # a traceback would keep the frames of the first attempt alive
        return DeviceError(f"the elements of an array on {self.device.name} are lost: {error}")


def lost(device: Device, error: Exception) -> DeviceBuffer:
    """Return what stands for elements that are lost."""
    made = DeviceBuffer(device, None, True)
    made.failure = error
    return made


def uploaded(device: Device, a: np.ndarray[Any, Any]) -> DeviceBuffer:
    """Return a buffer with a copy of an array's elements in C order.

    Raises
    ------
    MemoryError
        If the device has no memory left.
    """
    buffer = device.allocate(max(a.nbytes, 1))
    if a.size:
        device.upload(np.ascontiguousarray(a), buffer)
    return DeviceBuffer(device, buffer, False)


def settle_new(store: Store, held: DeviceBuffer) -> None:
    """Give a store without memory its elements in a buffer."""
    held.ahead = True
    store.remote = store.used = store.dirty = held


def array_in(cls: type[Handle], held: DeviceBuffer, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return an array whose elements are those of a buffer, in C order."""
    store = Store(shape, dtype)
    settle_new(store, held)
    return large(cls, store, shape, None)


def resident(device: Device, store: Store) -> DeviceBuffer | None:
    """Return the buffer on a device of a store's family, uploaded if there is none.  None if the store does
    not have all elements of the head in C order.

    Raises
    ------
    MemoryError
        If the device has no memory left.
    """
    head = store.family
    if store is not head and not _whole(store, head):
        return None
    held = head.remote
    if held is None and head.is_unused():  # there is nothing to copy
        held = DeviceBuffer(device, device.allocate(max(head.size * head.dtype.itemsize, 1)), True)
        settle_new(head, held)
    elif held is None:
        held = head.remote = uploaded(device, memory(head))
    held.check()
    held.refresh(head)
    return held  # type: ignore[no-any-return]


def reserved(store: Store, device: Device) -> bool:
    """Whether a store that was never used has got a buffer on a device, with no elements in it."""
    if not device.target:  # one that is chosen later
        return False
    try:
        return resident(device, store) is not None
    except MemoryError:
        return False  # the host has more


def _whole(store: Store, head: Store) -> bool:
    """Whether a store has all elements of its head, which is contiguous, in the same order."""
    if store.size * store.dtype.itemsize != head.size * head.dtype.itemsize:
        return False
    if store.strides is not None or head.strides is not None:
        return False
    return store.mem is None or head.mem is None or store.address == head.address


def settle(rec: Any) -> None:
    """Mark the buffers of the families that a recording has used as pending on these, at its end."""
    for slot in rec.slots:
        store = slot if type(slot) is Store else slot()
        if store is None:
            continue
        head = store.family
        held = head.remote
        if held is None or held.device is None:
            continue
        if head.used is rec or head.used is None:
            head.used = held
        if held.ahead:
            head.dirty = held
        elif head.dirty is rec:
            head.dirty = None
