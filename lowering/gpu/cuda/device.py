"""CUDA devices: memory from CuPy's pool, kernels loaded by cuda.core or CuPy, one stream for all."""

from __future__ import annotations

import importlib
import os
import threading
import warnings
from contextlib import ExitStack
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dcarray.lowering.gpu.cuda import libraries
from dcarray.lowering.gpu.cuda.buffers import CudaBuffer
from dcarray.lowering.gpu.cuda.nvrtc import compile_source, options, unavailable, version
from dcarray.lowering.gpu.device import NoDevice
from dcarray.lowering.runtime.disk import cache_in, sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from dcarray.lowering.gpu.kernels import DeviceKernel

__all__ = ["CudaDevice", "find"]

INSTALL: Final = "pip install 'dcarray[cuda]'"
_GIB: Final = 1 << 30
_MAX_CONFIGS: Final = 1000  # that are kept


class _Thread(threading.local):
    """Per thread: the number of cuda.core's current device, and the device in whose run (`Inside`) it is."""

    number: int | None = None
    inside: CudaDevice | None = None


_thread = _Thread()


class Current:
    """A context manager that makes a device CUDA's current device, and its stream CuPy's current stream.

    Entering it returns that stream, and changes nothing in a run (`Inside`) of the device.  CuPy's
    memory and runtime errors become MemoryError and RuntimeError with the device's name.
    """

    __slots__ = ("device", "entered")

    def __init__(self, device: CudaDevice) -> None:
        self.device = device
        self.entered: ExitStack | None = None

    def __enter__(self) -> Any:
        if _thread.inside is self.device:
            self.entered = None
        else:
            self._switch()
        return self.device.cupy.cuda.Stream.null

    def _switch(self) -> bool:
        """Make the device and its stream current; return whether another device was current before."""
        number, cuda = self.device.number, self.device.cupy.cuda
        self.entered = None
        null = cuda.Stream.null
        switched = bool(cuda.runtime.getDevice() != number)
        if switched or cuda.get_current_stream().ptr != null.ptr:
            self.entered = ExitStack()
            self.entered.enter_context(cuda.Device(number))
            self.entered.enter_context(null)
        return switched

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self.entered is not None:
            self.entered.close()
        if error is None:
            return
        name, cuda = self.device.name, self.device.cupy.cuda
        if isinstance(error, cuda.memory.OutOfMemoryError):
            raise MemoryError(f"{name} has no memory left: {error}") from None
        if isinstance(error, (cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError)):
            raise RuntimeError(f"{name}: {error}") from error


class CurrentForCore(Current):
    """A `Current` that also sets cuda.core's own current device; entering it returns the module
    ``cuda.core``, or None if that is not installed."""

    __slots__ = ("core",)

    def __init__(self, device: CudaDevice, core: Any) -> None:
        super().__init__(device)
        self.core = core

    def __enter__(self) -> Any:
        if _thread.inside is not self.device:
            number = self.device.number
            if (self._switch() or _thread.number != number) and self.core is not None:
                self.core.Device(number).set_current()
                _thread.number = number
        return self.core


class Inside(CurrentForCore):
    """A `CurrentForCore` for a whole run of a plan: inside, this thread's other contexts need not look what
    is current."""

    __slots__ = ("before",)

    def __enter__(self) -> Any:
        core = super().__enter__()
        self.before, _thread.inside = _thread.inside, self.device
        return core

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        _thread.inside = self.before
        super().__exit__(kind, error, trace)


class CudaDevice:
    """An NVIDIA GPU, as a `dcarray.lowering.gpu.device.Device`.

    Buffers come from CuPy's memory pool.  All work goes through the default stream, in order, so that a freed
    buffer may be handed out again while work that uses it is pending.

    Attributes
    ----------
    number : int
        CUDA's number of the device.
    architecture : str
        The architecture for which kernels are compiled, such as ``"sm_90"``.
    cupy : module
    graph_refusal : str or None
        Why launches are not put into graphs (`dcarray.lowering.gpu.cuda.graph`); None if they are.
    """

    target = "cuda"
    fp64 = True  # on all that CUDA 13 knows
    is_processor = False
    short_indices = True
    cache_dir: str | None = None  # without cuda.core CuPy has a folder of its own
    graphs = True
    graph_memory: int | None = None
    failed: Any = None

    def __init__(self, number: int) -> None:
        import cupy

        self.cupy, self._alloc = cupy, cupy.cuda.alloc
        self.number = number
        self.name = f"cuda:{number}"
        facts = cupy.cuda.runtime.getDeviceProperties(number)
        self.memory = int(facts["totalGlobalMem"])
        self.architecture = f"sm_{facts['major']}{facts['minor']}"
        self._functions: dict[tuple[str, bool], list[Any]] = {}
        self._configs: dict[tuple[int, int], Any] = {}
        self._core: Any = self  # until it is looked for
        self.graph_refusal: str | None = None
        self.description = (
            f"{facts['name'].decode()} (compute capability {facts['major']}.{facts['minor']}, "
            f"{facts['multiProcessorCount']} multiprocessors, {self.memory / _GIB:.0f} GiB)"
        )

    def __repr__(self) -> str:
        return f"<{self.name}: {self.description}>"

    def current(self) -> Current:
        """Return a context in which this device and its stream are current for CuPy; see `Current`."""
        return Current(self)

    def running(self) -> Current:
        """Return a context for a run of a plan, in which this device stays current for CuPy and cuda.core."""
        return Inside(self, self.core)

    def allocate(self, nbytes: int) -> CudaBuffer:
        """Return a buffer of at least ``nbytes`` bytes from CuPy's pool; MemoryError if there is no room."""
        if _thread.inside is self:  # which turns errors into Python's
            return CudaBuffer(self._alloc(max(nbytes, 1)), nbytes)
        with self.current():
            return CudaBuffer(self._alloc(max(nbytes, 1)), nbytes)

    def upload(self, source: NDArray[Any], buffer: CudaBuffer, start: int = 0) -> None:
        """Copy a C-contiguous host array into a buffer, from the buffer's byte ``start`` on."""
        if not source.flags.c_contiguous:
            raise ValueError("only C-contiguous arrays are copied to devices")
        if source.nbytes:
            with self.current():
                (buffer.memory + start).copy_from_host(source.ctypes.data, source.nbytes)

    def download(self, buffer: CudaBuffer, target: NDArray[Any], start: int = 0) -> None:
        """Wait for the work in the stream, then copy a buffer's bytes from ``start`` on to a C-contiguous
        host array."""
        if not target.flags.c_contiguous:
            raise ValueError("devices are copied to C-contiguous arrays only")
        if target.nbytes:
            with self.current():
                (buffer.memory + start).copy_to_host(target.ctypes.data, target.nbytes)

    def copy(self, source: CudaBuffer, target: CudaBuffer, nbytes: int) -> None:
        """Enqueue a copy of the first ``nbytes`` bytes of ``source`` to the start of ``target``."""
        if nbytes:
            with self.current() as stream:
                target.memory.copy_from_device_async(source.memory, nbytes, stream)

    def build(self, kernel: DeviceKernel) -> None:
        """Compile and load a kernel for indices of 32 bits, if that has not been done yet."""
        self.functions(kernel, True)

    def launch(
        self,
        kernel: DeviceKernel,
        narrow: bool,
        blocks: tuple[int, ...],
        arguments: list[Any],
        ints: Sequence[int],
    ) -> None:
        """Enqueue a kernel's phases, each with its number of ``blocks``; see `Device.launch`."""
        given = parameters(arguments, ints, narrow)
        functions = self.functions(kernel, narrow)
        if _thread.inside is self:
            self._launch(functions, blocks, kernel.threads, given)
            return
        with self.core_current():
            self._launch(functions, blocks, kernel.threads, given)

    def _launch(
        self, functions: list[Any], blocks: tuple[int, ...], threads: tuple[int, ...], given: list[Any]
    ) -> None:
        core = self.core
        for function, count, width in zip(functions, blocks, threads, strict=True):
            if count > 0 and core is None:
                function((count,), (width,), tuple(given))
            elif count > 0:
                core.launch(core.LEGACY_DEFAULT_STREAM, self.config(count, width), function, *given)

    def config(self, blocks: int, threads: int) -> Any:
        """Return cuda.core's launch configuration for a number of blocks; it is kept, as making it is
        slow."""
        config = self._configs.get((blocks, threads))
        if config is None:
            if len(self._configs) >= _MAX_CONFIGS:
                self._configs.clear()
            config = self._configs[blocks, threads] = self.core.LaunchConfig(grid=blocks, block=threads)
        return config

    def functions(self, kernel: DeviceKernel, narrow: bool) -> list[Any]:
        """Return the device function of each of a kernel's phases; the first call compiles and loads them.

        ``narrow`` says whether indices have 32 bits instead of 64.  CuPy does it if there is no cuda.core.
        """
        functions = self._functions.get((kernel.source, narrow))
        if functions is None:
            with self.core_current() as core:
                if core is None:
                    get = self.cupy.RawModule(code=kernel.source, options=options(narrow)).get_function
                else:
                    get = core.ObjectCode.from_cubin(self._cubin(kernel.source, narrow)).get_kernel
                functions = [get(f"phase{number}") for number in range(len(kernel.threads))]
            self._functions[kernel.source, narrow] = functions
        return functions

    def _cubin(self, source: str, narrow: bool) -> bytes:
        """Return a kernel's machine code from the cache folder; if not there, compile and store it."""
        disk = cache_in(os.path.join(self.cache_dir, "cuda")) if self.cache_dir else None
        parts = "cuda", version(), self.architecture, *options(narrow), source
        key = sha256("\0".join(parts).encode()).hexdigest()
        cubin = disk.read(key) if disk else None
        if cubin is None:
            cubin = compile_source(source, self.architecture, narrow).cubin
            if disk:
                disk.write(key, cubin)
        return cubin

    @property
    def core(self) -> Any:
        """The module ``cuda.core``; None if it or NVRTC is missing (then `graph_refusal` says which)."""
        if self._core is self:
            self._core, self.graph_refusal = None, unavailable()
            try:
                core = importlib.import_module("cuda.core")
            except ImportError as error:
                self.graph_refusal = f"cuda.core cannot be imported ({error}): {INSTALL}"
            if self.graph_refusal is None:
                self._core = core
        return self._core

    def core_current(self) -> Current:
        """Return a context in which this device is current for CuPy and cuda.core; see `CurrentForCore`."""
        return CurrentForCore(self, self.core)

    def mapped(self, *_: Any) -> Any:
        """Raise NotImplementedError: the host cannot address a GPU's memory."""
        raise NotImplementedError

    def buffer_of(self, array: Any) -> CudaBuffer:
        """Return a buffer on the memory of a contiguous CuPy array, without a copy."""
        return CudaBuffer(array.data, array.nbytes)

    def array(
        self, buffer: Any, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]
    ) -> Any:
        """Return a CuPy array on a buffer's memory, with strides in elements; a NumPy scalar is copied."""
        if not isinstance(buffer, CudaBuffer):
            return self.cupy.asarray(buffer, dtype)
        steps = tuple([step * dtype.itemsize for step in strides])
        return self.cupy.ndarray(shape, dtype, buffer.memory, steps)

    def copy_bytes(self, target: int, source: int, nbytes: int) -> None:
        """Enqueue a copy of ``nbytes`` bytes from one address in the device's memory to another."""
        if nbytes:
            with self.current() as stream:
                runtime = self.cupy.cuda.runtime
                runtime.memcpyAsync(target, source, nbytes, runtime.memcpyDeviceToDevice, stream.ptr)

    def fill_bytes(self, target: int, byte: int, nbytes: int) -> None:
        """Enqueue filling ``nbytes`` bytes of device memory, from the address ``target`` on, with
        ``byte``."""
        if nbytes:
            with self.current() as stream:
                self.cupy.cuda.runtime.memsetAsync(target, byte, nbytes, stream.ptr)

    @property
    def graph_bound(self) -> int:
        """How many bytes a graph's temporaries may take, if some order of its nodes allows so few."""
        return self.memory // 4 if self.graph_memory is None else self.graph_memory

    def launch_graph(self, executable: Any) -> None:
        """Enqueue one run of an instantiated CUDA graph (cuda.core's ``executable``)."""
        with self.core_current() as core:
            executable.launch(core.LEGACY_DEFAULT_STREAM)

    def refuse_graphs(self, reason: str) -> None:
        """Warn that a graph was refused, and make no further graphs on this device."""
        self.graph_refusal = reason
        warnings.warn(f"no CUDA graphs on {self.name}: {reason}", RuntimeWarning, stacklevel=2)

    def library(self, name: str) -> Callable[..., Any] | None:
        """Return CuPy's counterpart of a NumPy function by its name, such as ``"numpy.sort"``, or None."""
        return libraries.function(self, name)

    def synchronise(self) -> None:
        """Wait until all work in the device's default stream is done."""
        with self.current() as stream:
            stream.synchronize()


_narrow = lru_cache(_MAX_CONFIGS)(np.int32)


def parameters(arguments: Sequence[Any], ints: Sequence[int], narrow: bool) -> list[Any]:
    """Return a kernel's parameters for cuda.core: addresses, offsets and values, then the integers.

    A plain Python integer becomes a parameter of 64 bits, or of 32 if ``narrow``; others are NumPy scalars.
    """
    given: list[Any] = []
    for one in (*arguments, *ints):
        if type(one) is int:
            given.append(_narrow(one) if narrow else one)
        elif type(one) is CudaBuffer:
            given.append(one.ptr)
        else:
            given.append(one if isinstance(one, np.generic) else one[()])
    return given


def find() -> list[CudaDevice]:
    """Return a `CudaDevice` for each GPU that CUDA's driver lists.

    Raises
    ------
    NoDevice
        If CuPy, the driver or a GPU is missing.
    """
    try:
        import cupy
    except ImportError as error:
        raise NoDevice(f"CuPy cannot be imported ({error}): {INSTALL}, and NVIDIA's driver") from None
    runtime = cupy.cuda.runtime
    try:
        devices = [CudaDevice(number) for number in range(runtime.getDeviceCount())]
    except runtime.CUDARuntimeError as error:
        raise NoDevice(f"no GPU of NVIDIA can be used ({error}): install NVIDIA's driver") from None
    if not devices:
        raise NoDevice("there is no NVIDIA GPU")
    return devices
