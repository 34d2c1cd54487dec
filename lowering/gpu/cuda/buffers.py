"""Buffers of CUDA devices: pieces of device memory."""

from __future__ import annotations

from typing import Any

__all__ = ["CudaBuffer"]


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
