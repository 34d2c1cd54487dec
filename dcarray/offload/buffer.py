"""Buffers in device memory that hold the elements of stores.

A buffer counts as a pending operation on the host memory of its storage family: before that memory is read,
newer elements are copied there, and before the host writes to it, the buffer is dropped.
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
from dcarray.lowering.runtime.array_memory import allocate

if TYPE_CHECKING:
    from dcarray.lowering.gpu.device import Device

__all__ = [
    "DeviceBuffer", "DeviceError", "array_in", "least_elements", "lost", "reserved", "resident", "settle",
    "settle_new", "uploaded",
]  # fmt: skip


SINGLE = 100_000
"""The bytes of a copy to the host that takes about as long as a copy of a single element."""


MOST_HOST_ELEMENTS = 1024
"""The size in elements from which an array that is put on a device gets a buffer there, at the latest."""


def least_elements() -> int:
    """Return the size in elements from which an array that is put on a device gets a buffer there.

    Operations on smaller arrays alone are faster on the host than the launch of a kernel.  But each use of
    such an array together with one in a buffer copies it to the device.  So the size is not above
    `MOST_HOST_ELEMENTS`, even if calls on larger arrays run at once (the option ``eager_below``).
    """
    return min(current().eager_below, MOST_HOST_ELEMENTS)


class DeviceError(RuntimeError):
    """Raised if elements are read that a device has lost, since a run of a kernel there failed."""


class DeviceBuffer:
    """The elements of a storage family in a device's memory, in C order and with the shape of the family's
    head.

    Attributes
    ----------
    device : Device
    buffer : object
        The device's own object for the memory.
    ahead : bool
        Whether the host's memory is out of date.
    behind : bool
        Whether the buffer is out of date.
    exposed : bool
        Whether other libraries have the buffer: they may write to it at any time, so it is never dropped.
    done : bool
        Whether the buffer was dropped.
    read : int
        How many bytes `part` has copied to the host; each copy counts as `SINGLE` at least.
    limits : tuple of int or None
        The least and the greatest element, if they are integers and were computed for the present elements.
    failure : Exception or None
        The error of a run on the device that has left the elements in an unknown state.
    """

    __slots__ = (
        "__weakref__", "ahead", "behind", "buffer", "device", "done", "exposed", "failure", "limits",
        "read",
    )  # fmt: skip

    def __init__(self, device: Device, buffer: Any, ahead: bool) -> None:
        self.device, self.buffer, self.ahead = device, buffer, ahead
        self.behind = self.exposed = self.done = False
        self.read = 0
        self.failure: Exception | None = None
        self.limits: tuple[int, int] | None = None

    def run(self, head: Store, writing: bool = False) -> None:
        """Do nothing: the work that fills the buffer is in the device's queue already."""

    def materialise(self, head: Store, writing: bool = False) -> None:
        """Copy newer elements to the host's memory; if the host is going to write there, drop the buffer.

        Raises
        ------
        DeviceError
            If the elements are lost.
        """
        with LOCK:
            if self.ahead and not self.done:
                self._download(head)
            if writing and not self.done:
                self.drop(head)

    def part(
        self, head: Store, store: Store, shape: tuple[int, ...], index: Index
    ) -> np.ndarray[Any, Any] | None:
        """Return a copy of a part of the family: a window (``shape``, ``index``) on ``store``, a store that
        has all elements of the ``head``.

        All elements between the window's first and last one are copied.

        Returns
        -------
        ndarray or None
            None if the host has the elements, or should copy all of them: because much has been copied in
            parts already, or because the window has few of the elements between its first and last one.

        Raises
        ------
        DeviceError
            If the elements are lost.
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
            span = np.empty(count, store.dtype)
            self._copy_into(span, start * item)
            self.read += max(SINGLE, count * item)
        return as_strided(span[low - start :], shape, [step * item for step in steps])

    def check(self) -> None:
        """Raise a DeviceError if the elements are lost."""
        if self.failure is not None:
            raise self._lost(self.failure)

    def drop(self, head: Store) -> None:
        """Forget the buffer, since the host's memory has the elements and is about to change.  A buffer that
        other libraries have is kept, as out of date."""
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
            mem, address = allocate(head.shape, head.dtype)
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
        """Copy the host's elements to the buffer if it is out of date."""
        if self.behind:
            self.device.upload(np.ascontiguousarray(memory(head)), self.buffer)
            self.behind, self.ahead, self.limits = False, self.exposed, None

    def expose(self, head: Store) -> None:
        """Mark the buffer as one that other libraries have: from now on operations on it run at the call."""
        self.exposed = self.ahead = True
        head.dirty = head.used = self
        head.exports = [lambda: self]

    def _lost(self, error: Exception) -> DeviceError:
        if isinstance(error, DeviceError):
            return DeviceError(str(error))  # a traceback would keep the frames of the first attempt alive
        return DeviceError(f"the elements of an array on {self.device.name} are lost: {error}")


def lost(device: Device, error: Exception) -> DeviceBuffer:
    """Return a buffer without memory for elements that are lost; reading them raises a DeviceError."""
    buffer = DeviceBuffer(device, None, True)
    buffer.failure = error
    return buffer


def uploaded(device: Device, a: np.ndarray[Any, Any]) -> DeviceBuffer:
    """Return a buffer on a device with a copy of a plain array's elements in C order.

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
    """Make a buffer the elements of a store that has no memory on the host."""
    held.ahead = True
    store.remote = store.used = store.dirty = held


def array_in(cls: type[Handle], held: DeviceBuffer, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return an array of the class ``cls`` on a new store whose elements, in C order, are a buffer's."""
    store = Store(shape, dtype)
    settle_new(store, held)
    return large(cls, store, shape, None)


def resident(device: Device, store: Store) -> DeviceBuffer | None:
    """Return the up-to-date buffer of a store's family on a device; a new one if the family has none.  Return
    None if the store does not have all elements of the family's head in C order.

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
    """Try to allocate a device buffer for a store that was never used; return whether it has got one."""
    if not device.target:  # one that is chosen later
        return False
    try:
        return resident(device, store) is not None
    except MemoryError:
        return False  # the host has more


def _whole(store: Store, head: Store) -> bool:
    """Whether a store has all elements of its family's head in the same order, and both are contiguous."""
    if store.size * store.dtype.itemsize != head.size * head.dtype.itemsize:
        return False
    if store.strides is not None or head.strides is not None:
        return False
    return store.mem is None or head.mem is None or store.address == head.address


def settle(rec: Any) -> None:
    """At the end of a recording, make the buffers of the families that it has used, instead of the recording,
    pending on these families."""
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
