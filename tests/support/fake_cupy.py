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


class MemoryPointer:
    """Memory with something in it that was never written there."""

    def __init__(self, size: int, pool: FakeCupy) -> None:
        self.elements = np.full(size, 0x5A, np.uint8)
        self.ptr, self.pool = self.elements.ctypes.data, pool
        pool.in_use += size
        pool.peak = max(pool.peak, pool.in_use)

    def __del__(self) -> None:
        self.pool.in_use -= self.elements.size

    def copy_from_host(self, address: int, size: int) -> None:
        assert size <= self.elements.size
        ctypes.memmove(self.ptr, address, size)

    def copy_to_host(self, address: int, size: int) -> None:
        assert size <= self.elements.size
        ctypes.memmove(address, self.ptr, size)

    def copy_from_device_async(self, source: MemoryPointer, size: int, stream: Any) -> None:
        assert size <= self.elements.size and size <= source.elements.size and stream is not None
        ctypes.memmove(self.ptr, source.ptr, size)


class Stream:
    """A stream: everything is done at once."""

    null: Stream

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
    """

    def __init__(self, memory: int = 1 << 28, devices: int = 1) -> None:
        self.log: list[str] = []
        self.built = self.in_use = self.peak = 0
        self.memory = memory
        facts = {
            "totalGlobalMem": memory, "name": b"Made up", "major": 9, "minor": 0, "multiProcessorCount": 4,
        }  # fmt: skip
        runtime = SimpleNamespace(
            getDeviceCount=lambda: devices,
            getDeviceProperties=lambda number: facts,
            CUDARuntimeError=CUDARuntimeError,
        )
        self.cuda = SimpleNamespace(
            runtime=runtime,
            driver=SimpleNamespace(CUDADriverError=CUDADriverError),
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            Device=self._device,
            Stream=Stream,
            alloc=self._alloc,
        )

    @contextmanager
    def _device(self, number: int) -> Any:
        yield number

    def _alloc(self, size: int) -> MemoryPointer:
        if self.in_use + size > self.memory:
            raise OutOfMemoryError(f"{size} bytes")
        return MemoryPointer(size, self)

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
