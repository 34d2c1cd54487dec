"""A CuPy on host memory: as much of it as CUDA devices use.  Kernels are run by the processor."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import cuda_on_host
import numpy as np


class OutOfMemoryError(MemoryError):
    pass


class CUDARuntimeError(RuntimeError):
    pass


class CUDADriverError(RuntimeError):
    pass


class Memory:
    """Memory with something in it that nobody has written; a multiple of 512 bytes, as in CuPy's pool."""

    def __init__(self, size: int, pool: FakeCupy) -> None:
        size = -(-size // 512) * 512
        self.elements, self.pool = np.full(size, 0x5A, np.uint8), pool
        pool.in_use += size
        pool.peak = max(pool.peak, pool.in_use)

    def __del__(self) -> None:
        self.pool.in_use -= self.elements.size


class MemoryPointer:
    """A place in memory."""

    def __init__(self, memory: Memory, offset: int = 0) -> None:
        self.mem, self.elements = memory, memory.elements[offset:]
        self.ptr = memory.elements.ctypes.data + offset

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.ptr - self.mem.elements.ctypes.data + offset)

    def copy_from_host(self, address: int, size: int) -> None:
        assert size <= self.elements.size
        self.mem.pool.copies += 1
        ctypes.memmove(self.ptr, address, size)

    def copy_to_host(self, address: int, size: int) -> None:
        assert size <= self.elements.size
        self.mem.pool.copies += 1
        ctypes.memmove(address, self.ptr, size)

    def copy_from_device_async(self, source: MemoryPointer, size: int, stream: Any) -> None:
        assert size <= self.elements.size and size <= source.elements.size and stream is not None
        ctypes.memmove(self.ptr, source.ptr, size)


class Stream:
    """A stream: everything is done at once."""

    null: Stream
    ptr = 0

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 0


Stream.null = Stream()


class FakeCupy:
    """The module.

    Attributes
    ----------
    log : list of str
        The functions launched one by one, in order.
    built : int
        Modules that were compiled.
    memory : int
        Bytes that there are.
    in_use, peak : int
        Bytes that are taken, and the most there ever were.
    current : int
        The current device.
    copies : int
        How often the host has waited for a copy.
    """

    def __init__(self, memory: int = 1 << 28, devices: int = 1) -> None:
        self.log: list[str] = []
        self.built = self.in_use = self.peak = self.current = 0
        self.memory = memory
        self.copies = 0
        facts = {
            "totalGlobalMem": memory, "name": b"Made up", "major": 9, "minor": 0, "multiProcessorCount": 4,
        }  # fmt: skip
        runtime = SimpleNamespace(
            getDeviceCount=lambda: devices,
            getDevice=lambda: self.current,
            getDeviceProperties=lambda number: facts,
            CUDARuntimeError=CUDARuntimeError,
            memcpyDeviceToDevice=3,
            memcpyAsync=self._memcpy,
            memsetAsync=self._memset,
        )
        self.cuda = SimpleNamespace(
            runtime=runtime,
            driver=SimpleNamespace(CUDADriverError=CUDADriverError),
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            Device=self._device,
            Stream=Stream,
            get_current_stream=lambda: Stream.null,
            alloc=self._alloc,
        )

    @contextmanager
    def _device(self, number: int) -> Any:
        before, self.current = self.current, number
        yield number
        self.current = before

    def _alloc(self, size: int) -> MemoryPointer:
        if self.in_use + size > self.memory:
            raise OutOfMemoryError(f"{size} bytes")
        return MemoryPointer(Memory(size, self))

    def _memcpy(self, target: int, source: int, size: int, kind: int, stream: int) -> None:
        assert kind == 3 and stream == 0
        self.log.append("memcpy")
        ctypes.memmove(target, source, size)

    def _memset(self, target: int, value: int, size: int, stream: int) -> None:
        assert stream == 0
        self.log.append("memset")
        ctypes.memset(target, value, size)

    def ndarray(self, shape: Any, dtype: Any, memptr: MemoryPointer, strides: Any) -> np.ndarray:
        return np.ndarray(shape, dtype, memptr.elements, 0, strides)

    def matmul(self, a: Any, b: Any, out: Any = None) -> Any:
        assert out is None or out.flags.c_contiguous
        self.log.append("matmul")
        return np.matmul(a, b, out=out)

    may_share_memory = staticmethod(np.may_share_memory)
    asarray = staticmethod(np.asarray)

    def RawModule(self, *, code: str, options: tuple[str, ...]) -> Any:
        functions = cuda_on_host.compiled(code, options)
        self.built += 1

        def get_function(name: str) -> Any:
            function = functions[name]

            def launch(grid: tuple[int, ...], block: tuple[int, ...], parameters: tuple[Any, ...]) -> None:
                self.log.append(name)
                function(*grid, *block, parameters)

            return launch

        return SimpleNamespace(get_function=get_function)
