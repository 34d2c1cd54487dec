"""OpenCL devices, by pyopencl: each has a context, an in-order queue and a pool of buffers."""

from __future__ import annotations

import os
import re
import threading
import warnings
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dcarray.lowering.gpu.device import NoDevice
from dcarray.lowering.gpu.opencl.vendors import wheel_runtime_added
from dcarray.lowering.runtime.disk import cache_in, sha256

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from dcarray.lowering.gpu.kernels import DeviceKernel

__all__ = ["OpenCLDevice", "find"]

PARTS: Final = "DCARRAY_OPENCL_PARTS"
"""The environment variable that says into how many parts each device is divided."""
INSTALL: Final = "pip install 'dcarray[opencl]'"
_GIB: Final = 1 << 30
_ON_PROCESSORS: Final = "dcarray.lowering.gpu.opencl.target:ON_PROCESSORS"
_VALUES: Final = (np.generic, np.ndarray)
_NO_FP64: Final = "#define double no_double_precision_on_this_device\n"
_BITS: Final[dict[str, type]] = {"?": np.uint8, "e": np.uint16}  # what stands for these types in kernels


class OpenCLDevice:
    """A device of an OpenCL platform, as a `dcarray.lowering.gpu.device.Device`.

    Attributes
    ----------
    handle : pyopencl.Device
    context : pyopencl.Context
    queue : pyopencl.CommandQueue
        In order; all work on the device's buffers goes through it, so that a freed buffer may be handed out
        again while commands that use it are pending.
    """

    cache_dir: str | None = None
    graphs = False
    graph_memory: int | None = None
    failed: Any = None

    def __init__(self, name: str, handle: Any) -> None:
        import pyopencl as cl

        self._cl = cl
        self.name = name
        self.handle = handle
        self.memory = int(handle.global_mem_size)
        self.fp64 = bool(handle.double_fp_config)
        self.description = (
            f"{' '.join(handle.name.split())} ({' '.join(handle.version.split()[:2])}, "
            f"{handle.max_compute_units} compute units, {self.memory / _GIB:.0f} GiB"
            f"{'' if self.fp64 else ', no double precision'})"
        )
        self.context = cl.Context([handle])
        self.queue = cl.CommandQueue(self.context)
        self._launching = threading.Lock()  # a kernel keeps its arguments until it is enqueued
        self.is_processor = bool(handle.type & cl.device_type.CPU)
        self.target = _ON_PROCESSORS if self.is_processor else "opencl"
        # A processor's addresses have 64 bits: shorter indices would be extended for each access.
        self.short_indices = not self.is_processor
        self._built: dict[tuple[str, bool], _Functions | RuntimeError] = {}
        self._pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(self.queue))
        self._simulated = _is_simulator(handle)
        # Beyond it free buffers go back to the device: a program whose sizes change would fill it with them.
        self._most_free = self.memory // (8 if handle.host_unified_memory else 2)

        self._forked = False
        os.register_at_fork(after_in_child=self._fork)

    def _fork(self) -> None:
        self._forked = True

    def _check(self) -> None:
        """Raise RuntimeError in a forked process, in which the runtime's threads do not exist."""
        if self._forked:
            raise RuntimeError(f"{self.name} cannot be used after a fork")

    def __repr__(self) -> str:
        return f"<{self.name}: {self.description}>"

    def _error(self, error: Exception) -> Exception:
        """Return the MemoryError or RuntimeError, with the device's name, for an error of pyopencl."""
        if isinstance(error, self._cl.MemoryError):
            return MemoryError(f"{self.name} has no memory left: {error}")
        return RuntimeError(f"{self.name}: {error}")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """A context that turns errors of pyopencl into MemoryError or RuntimeError."""
        try:
            yield
        except self._cl.Error as error:
            raise self._error(error) from error

    def running(self) -> nullcontext[None]:
        """Return an empty context for a run: this device has nothing to look up."""
        return nullcontext()

    def allocate(self, nbytes: int) -> Any:
        """Return a buffer of at least ``nbytes`` bytes from the pool; MemoryError if there is no room."""
        self._check()
        pool = self._pool
        in_use = pool.active_bytes
        if nbytes > self.handle.max_mem_alloc_size or in_use + nbytes > self.memory:
            raise MemoryError(
                f"{self.name} cannot allocate {nbytes} bytes: it has {self.memory}, {in_use} of them in use, "
                f"and at most {self.handle.max_mem_alloc_size} in one buffer"
            )
        if pool.managed_bytes - in_use > self._most_free:
            pool.free_held()
        with self._errors():
            if self._simulated:  # it finds accesses beyond a buffer, not beyond its size class
                return self._cl.Buffer(self.context, self._cl.mem_flags.READ_WRITE, max(nbytes, 1))
            return pool.allocate(max(nbytes, 1))

    def upload(self, source: NDArray[Any], buffer: Any, start: int = 0) -> None:
        """Copy a C-contiguous host array into a buffer, from the buffer's byte ``start`` on."""
        if not source.flags.c_contiguous:
            raise ValueError("only C-contiguous arrays are copied to devices")
        if source.nbytes:
            with self._errors():
                self._cl.enqueue_copy(self.queue, buffer, source, dst_offset=start, is_blocking=True)

    def download(self, buffer: Any, target: NDArray[Any], start: int = 0) -> None:
        """Wait for the work in the queue, then copy a buffer's bytes from ``start`` on to a C-contiguous host
        array."""
        if not target.flags.c_contiguous:
            raise ValueError("devices are copied to C-contiguous arrays only")
        if target.nbytes:
            with self._errors():
                self._cl.enqueue_copy(self.queue, target, buffer, src_offset=start, is_blocking=True)

    @contextmanager
    def mapped(self, buffer: Any, size: int, written: bool) -> Iterator[NDArray[Any]]:
        """Wait for the queue, then yield a buffer's first ``size`` bytes as an array on the same memory."""
        flags = self._cl.map_flags
        flag = flags.READ | flags.WRITE if written else flags.READ
        with self._errors():
            elements, _ = self._cl.enqueue_map_buffer(self.queue, buffer, flag, 0, (max(size, 1),), np.uint8)
        try:
            yield elements
        finally:
            with self._errors():
                elements.base.release(self.queue)

    def copy(self, source: Any, target: Any, nbytes: int) -> None:
        """Enqueue a copy of the first ``nbytes`` bytes of ``source`` to the start of ``target``."""
        if nbytes:
            with self._errors():
                self._cl.enqueue_copy(self.queue, target, source, byte_count=nbytes)

    def launch(
        self,
        kernel: DeviceKernel,
        narrow: bool,
        blocks: tuple[int, ...],
        arguments: list[Any],
        ints: Sequence[int],
    ) -> None:
        """Enqueue a kernel's phases, each with its number of ``blocks``; see `Device.launch`."""
        self._check()
        built = self._functions(kernel, narrow)
        if not built.typed:
            built.tell_types([*arguments, *ints])
        given = [_passed(x) if isinstance(x, _VALUES) else x for x in arguments]
        try:
            with self._launching:
                for function, count, threads in zip(built.phases, blocks, kernel.threads, strict=True):
                    if count > 0:
                        function(self.queue, (count * threads,), (threads,), *given, *ints)
        except self._cl.Error as error:
            raise self._error(error) from error

    def build(self, kernel: DeviceKernel) -> None:
        """Compile a kernel for the device's usual size of indices, if that has not been done yet."""
        self._check()
        self._functions(kernel, self.short_indices)

    def _functions(self, kernel: DeviceKernel, narrow: bool) -> _Functions:
        """Return the compiled functions of a kernel's phases; ``narrow``: with indices of 32 bits, not 64."""
        built = self._built.get((kernel.source, narrow))
        if built is None:
            try:
                built = _Functions(self._build(kernel, narrow), np.dtype(np.int32 if narrow else np.int64))
            except RuntimeError as error:
                built = error
                for path in re.findall(r"\(source saved as (.*)\)", str(error)):  # pyopencl leaves it behind
                    with suppress(OSError):
                        os.unlink(path)
            self._built[kernel.source, narrow] = built
        if isinstance(built, RuntimeError):
            raise RuntimeError(*built.args)
        return built

    def _build(self, kernel: DeviceKernel, narrow: bool) -> list[Any]:
        options = ["-DINDEX=int" if narrow else "-DINDEX=long", "-cl-std=CL1.2"]
        options += ["-DFP64"] if self.fp64 else []
        options += ["-DPROCESSOR"] if self.is_processor else []
        options += (
            ["-cl-opt-disable"] if self._simulated else []
        )  # Oclgrind lacks intrinsics of LLVM's optimiser
        if self.handle.single_fp_config & self._cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT:
            options.append("-cl-fp32-correctly-rounded-divide-sqrt")
        with self._errors():
            program = self._program(kernel.source if self.fp64 else _NO_FP64 + kernel.source, options)
            return [self._cl.Kernel(program, f"phase{number}") for number in range(len(kernel.threads))]

    def _program(self, source: str, options: list[str]) -> Any:
        """Return the program for a source text, from the cache folder or compiled by the device's driver."""
        make = self._cl.Program
        disk = cache_in(os.path.join(self.cache_dir, "opencl")) if self.cache_dir else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", self._cl.CompilerWarning)  # remarks of compilers, not of users
            if disk is None:
                return make(self.context, source).build(options, cache_dir=False)
            handle = self.handle
            parts = (handle.platform.version, handle.name, handle.version, handle.driver_version)
            key = sha256("\0".join(("opencl", *parts, *options, source)).encode()).hexdigest()
            binary = disk.read(key)
            if binary is not None:
                with suppress(self._cl.Error):  # the driver may refuse what an older one has made
                    return make(self.context, [handle], [binary]).build(options, cache_dir=False)
            program = make(self.context, source).build(options, cache_dir=False)
            (binary,) = program.get_info(self._cl.program_info.BINARIES)
            if binary:
                disk.write(key, binary)
            return program

    def library(self, name: str) -> None:
        """Return None: OpenCL comes without libraries."""

    def array(self, *_: Any) -> Any:
        """Raise NotImplementedError: there are no libraries for OpenCL whose arrays could be made."""
        raise NotImplementedError

    def buffer_of(self, array: Any) -> Any:
        """Raise NotImplementedError: there are no libraries for OpenCL whose arrays have buffers."""
        raise NotImplementedError

    def synchronise(self) -> None:
        """Wait until all work in the queue is done."""
        with self._errors():
            self.queue.finish()


class _Functions:
    """The compiled functions of a kernel's phases, with the dtype of their integer arguments."""

    __slots__ = ("index", "phases", "typed")

    def __init__(self, phases: list[Any], index: np.dtype[Any]) -> None:
        self.phases, self.index, self.typed = phases, index, False

    def tell_types(self, arguments: list[Any]) -> None:
        """Tell pyopencl the types of all arguments, so that launches need not inspect each argument, which
        takes many times as long."""
        types = [self.index if type(x) is int else _type(x) for x in arguments]
        for function in self.phases:
            function.set_scalar_arg_dtypes(types)
        self.typed = True


def _type(argument: Any) -> np.dtype[Any] | None:
    """Return the dtype that pyopencl needs for a scalar argument; None for a buffer, and for a complex
    number, which is passed as bytes."""
    if not isinstance(argument, _VALUES) or argument.dtype.kind == "c":
        return None
    return np.dtype(_BITS.get(argument.dtype.char, argument.dtype))


def _passed(value: Any) -> Any:
    """Return a scalar argument in the form that pyopencl accepts."""
    if value.dtype.kind == "c":
        return value.tobytes()
    bits = _BITS.get(value.dtype.char)
    return value.item() if bits is None else value.view(bits).item()


def _is_simulator(handle: Any) -> bool:
    """Whether a device is a simulator, which executes kernels to find their mistakes."""
    return "simulator" in handle.name.lower()


def _rank(handle: Any) -> int:
    """Return the sort key of a device: GPUs first, then other accelerators, processors, simulators."""
    import pyopencl as cl

    kind = handle.type
    if _is_simulator(handle):
        return 3
    return 0 if kind & cl.device_type.GPU else 2 if kind & cl.device_type.CPU else 1


def _parts_wanted() -> int:
    """Return into how many parts `PARTS` asks devices to be divided."""
    text = os.environ.get(PARTS, "1")
    if not text.isdecimal() or not int(text):
        raise ValueError(f"{PARTS}={text!r}: must be an integer >= 1")
    return int(text)


def _parts(handle: Any, wanted: int) -> list[tuple[str, Any]]:
    """Return ``wanted`` equal parts of a device, each with the end of its name (``".0"``).  A device that
    cannot be divided so is returned whole, with an empty end."""
    import pyopencl as cl

    how = cl.device_partition_property.EQUALLY
    units = handle.max_compute_units // wanted
    if wanted == 1 or not units or how not in handle.partition_properties:
        return [("", handle)]
    return [(f".{k}", one) for k, one in enumerate(handle.create_sub_devices([how, units])[:wanted])]


def find() -> list[OpenCLDevice]:
    """Return the devices of all platforms: GPUs first, then accelerators, processors, simulators.  With
    `PARTS` in the environment these are their parts: ``opencl:0.0``, ``opencl:0.1``.

    Raises
    ------
    NoDevice
        If pyopencl or an OpenCL runtime is missing, or if no device can be used.
    """
    try:
        with wheel_runtime_added():
            import pyopencl as cl

            platforms = cl.get_platforms()  # the first call reads which runtimes there are
    except ImportError as error:
        raise NoDevice(f"pyopencl cannot be imported ({error}): {INSTALL}") from None
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "pyopencl":
            raise
        raise NoDevice(f"no OpenCL runtime ({error}): {INSTALL}, or your device's driver") from None
    handles: list[Any] = []
    refusals: list[str] = []
    for platform in platforms:
        try:
            handles += platform.get_devices()
        except cl.Error as error:
            refusals.append(f"{platform.name}: {error}")
    handles.sort(key=_rank)
    devices: list[OpenCLDevice] = []
    number = 0
    for handle in handles:
        try:
            if not handle.available or not handle.compiler_available:
                refusals.append(f"{handle.name}: not available")
                continue
            parts = [
                OpenCLDevice(f"opencl:{number}{part}", one) for part, one in _parts(handle, _parts_wanted())
            ]
            devices, number = devices + parts, number + 1
        except cl.Error as error:
            refusals.append(f"{handle.name}: {error}")
    if not devices:
        why = "; ".join(refusals) or "no platform has a device"
        raise NoDevice(f"no OpenCL device ({why}): {INSTALL}, or your device's driver")
    return devices
