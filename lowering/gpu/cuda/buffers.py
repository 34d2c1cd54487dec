"""Buffers of CUDA devices: pieces of device memory, some with a twin in the host's page-locked memory.

The host puts small values for a run into the twin of a `PinnedBuffer`, and reads small results there.  The
copies between a buffer and its twin are nodes of the run's graphs, so that the host waits for no upload, and
only once for all results.
"""

from __future__ import annotations

import ctypes
import itertools
import weakref
from typing import TYPE_CHECKING, Any, Final

from .arena import size_class

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .device import CudaDevice

__all__ = ["MAX_PINNED", "CudaBuffer", "Pair", "PinnedBuffer"]

MAX_PINNED: Final = 1 << 16
"""The most bytes of a `PinnedBuffer`."""
_MAX_TWINS: Final = 16  # twins of a size, of which none is in use: then the host waits for the oldest
_turns = itertools.count()


class CudaBuffer:
    """A piece of a device's memory, which goes back to CuPy's pool when no buffer refers to it any more.

    Attributes
    ----------
    memory : cupy.cuda.MemoryPointer
    ptr : int
        The address.
    size : int
        Bytes.
    """

    __slots__ = ("memory", "ptr", "size")

    def __init__(self, memory: Any, size: int) -> None:
        self.memory, self.ptr, self.size = memory, memory.ptr, size

    def part(self, offset: int, size: int) -> CudaBuffer:
        """Return a buffer on ``size`` bytes of this memory, from byte ``offset`` on; it keeps all of it
        alive."""
        return CudaBuffer(self.memory + offset, size)


class Pair:
    """Memory of a device and its twin on the host, of one size; a device keeps them for good, so that each
    run finds the same addresses.

    Attributes
    ----------
    memory : cupy.cuda.MemoryPointer
    host : cupy.cuda.PinnedMemoryPointer
    event : cupy.cuda.Event
        What follows the last copy between the two in the stream.
    turn : int
        Which of all recorded events the last one was.
    user : callable
        Returns the buffer that has the pair; None if that is gone.
    """

    __slots__ = ("event", "host", "memory", "turn", "user")

    def __init__(self, device: CudaDevice, size: int) -> None:
        cuda = device.cupy.cuda
        self.memory = device.allocate(size).memory
        self.host, self.event = cuda.alloc_pinned_memory(size), cuda.Event(disable_timing=True)
        self.turn = -1
        self.user: Any = lambda: None


class PinnedBuffer:
    """A small buffer of one run, with a twin in page-locked memory of the host; used as a `CudaBuffer`.

    A graph copies between the two (`arrives`, `leaves`), and `launched` notes it.  Any other use asks for the
    address, `ptr` or `memory`; that first enqueues a copy that is still due, and from then on the twin does
    not count as having the elements.  One thread at a time runs plans on a device.

    Attributes
    ----------
    size : int
        Bytes.
    address : int
        The address, for a graph that copies to the buffer first.
    due : bool
        Whether the elements are still in the twin only.
    read : bool
        Whether the host reads the buffer after the run, so that graphs copy it to the twin.
    copied : bool
        Whether the twin has the buffer's elements once the last graph is done.
    """

    __slots__ = ("__weakref__", "address", "copied", "device", "due", "pair", "read", "size")

    def __init__(self, device: CudaDevice, size: int, source: NDArray[Any] | None, read: bool) -> None:
        pairs = device.pairs.setdefault(size_class(size), [])
        free = [pair for pair in pairs if pair.user() is None]
        pair = next((one for one in free if one.event.done), None)
        if pair is None and free and len(pairs) >= _MAX_TWINS:
            pair = min(free, key=lambda one: one.turn)
            pair.event.synchronize()
        if pair is None:
            pair = Pair(device, size_class(size))
            pairs.append(pair)
        pair.user = weakref.ref(self)
        if source is not None:
            ctypes.memmove(pair.host.ptr, source.ctypes.data, source.nbytes)
        self.device, self.pair, self.size, self.read = device, pair, size, read
        self.address: int = pair.memory.ptr
        self.due, self.copied = source is not None, False

    @property
    def key(self) -> tuple[Any, ...]:
        """All on which the nodes of a graph depend that uses the buffer next."""
        return self.address, self.size, self.due, self.read

    @property
    def arrives(self) -> tuple[int, int, int]:
        """The copy from the twin: target, source and bytes."""
        return self.address, self.pair.host.ptr, self.size

    @property
    def leaves(self) -> tuple[int, int, int]:
        """The copy to the twin: target, source and bytes."""
        return self.pair.host.ptr, self.address, self.size

    @property
    def ptr(self) -> int:
        """The address, for work that is enqueued now."""
        self.settle()
        return self.address

    @property
    def memory(self) -> Any:
        """The memory, for work that is enqueued now."""
        self.settle()
        return self.pair.memory

    def settle(self) -> None:
        """Enqueue the copy from the twin if it is due; the twin's elements count as out of date from now
        on."""
        self.copied = False
        if self.due:
            self.due = False
            with self.device.current() as stream:
                self.pair.memory.copy_from_host_async(self.pair.host.ptr, self.size, stream)
                self._record(stream)

    def launched(self) -> None:
        """Note that a graph was launched which uses the buffer and has its copies."""
        self.due, self.copied = False, self.read
        with self.device.current() as stream:
            self._record(stream)

    def _record(self, stream: Any) -> None:
        self.pair.event.record(stream)
        self.pair.turn = next(_turns)

    def take(self, target: NDArray[Any], start: int) -> None:
        """Wait for the graph that has copied the buffer; copy the twin's bytes from ``start`` on to a
        C-contiguous array."""
        assert self.copied and start + target.nbytes <= self.size
        with self.device.current():
            self.pair.event.synchronize()
        ctypes.memmove(target.ctypes.data, self.pair.host.ptr + start, target.nbytes)
