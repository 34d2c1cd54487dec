"""OpenCL devices, through pyopencl: a context, an in-order queue and a pool of buffers for each."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from dcarray.lowering.gpu.device import NoDevice
from dcarray.lowering.gpu.opencl.vendors import wheel_runtime_added

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["OpenCLDevice", "find"]

INSTALL: Final = "pip install 'dcarray[opencl]'"
_GIB: Final = 1 << 30


class OpenCLDevice:
    """A device of an OpenCL platform; see `dcarray.lowering.gpu.device.Device`.

    Attributes
    ----------
    handle : pyopencl.Device
    context : pyopencl.Context
    queue : pyopencl.CommandQueue
        In order; all work on the device's buffers goes through it, so that a freed buffer may be handed out
        again while commands that use it are pending.
    """

    target = "opencl"

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
        self._pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(self.queue))
        # Beyond it free buffers go back to the device: a program whose sizes change would fill it with them.
        self._most_free = self.memory // 4

    def __repr__(self) -> str:
        return f"<{self.name}: {self.description}>"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn the errors of pyopencl into Python's, with the device's name."""
        try:
            yield
        except self._cl.MemoryError as error:
            raise MemoryError(f"{self.name} has no memory left: {error}") from None
        except self._cl.Error as error:
            raise RuntimeError(f"{self.name}: {error}") from error

    def allocate(self, nbytes: int) -> Any:
        """See `Device`."""
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
            return pool.allocate(max(nbytes, 1))

    def upload(self, source: NDArray[Any], buffer: Any) -> None:
        """See `Device`."""
        if source.nbytes:
            with self._errors():
                self._cl.enqueue_copy(self.queue, buffer, source, is_blocking=True)

    def download(self, buffer: Any, target: NDArray[Any]) -> None:
        """See `Device`."""
        if target.nbytes:
            with self._errors():
                self._cl.enqueue_copy(self.queue, target, buffer, is_blocking=True)

    def copy(self, source: Any, target: Any, nbytes: int) -> None:
        """See `Device`."""
        if nbytes:
            with self._errors():
                self._cl.enqueue_copy(self.queue, target, source, byte_count=nbytes)

    def synchronise(self) -> None:
        """See `Device`."""
        with self._errors():
            self.queue.finish()


def find() -> list[OpenCLDevice]:
    """Return the devices of all platforms: GPUs first, processors last.

    Raises
    ------
    NoDevice
        If pyopencl or a runtime is missing, or no device can be used.
    """
    try:
        with wheel_runtime_added():
            import pyopencl as cl

            platforms = cl.get_platforms()  # the first call reads which runtimes there are
    except ImportError as error:
        raise NoDevice(f"no OpenCL: {error}; {INSTALL}") from None
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "pyopencl":
            raise
        raise NoDevice(f"no OpenCL runtime ({error}); {INSTALL}, or the driver of your device") from None
    handles: list[Any] = []
    refusals: list[str] = []
    for platform in platforms:
        try:
            handles += platform.get_devices()
        except cl.Error as error:
            refusals.append(f"{platform.name}: {error}")
    kinds = cl.device_type
    handles.sort(key=lambda handle: (not handle.type & kinds.GPU, bool(handle.type & kinds.CPU)))
    devices: list[OpenCLDevice] = []
    for handle in handles:
        try:
            if not handle.available or not handle.compiler_available:
                refusals.append(f"{handle.name}: not available")
                continue
            devices.append(OpenCLDevice(f"opencl:{len(devices)}", handle))
        except cl.Error as error:
            refusals.append(f"{handle.name}: {error}")
    if not devices:
        why = "; ".join(refusals) or "no platform has a device"
        raise NoDevice(f"no OpenCL device ({why}); {INSTALL}, or the driver of your device")
    return devices
