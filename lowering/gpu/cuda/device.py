"""CUDA devices, through CuPy: its memory pool, and the default stream of each."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from dcarray.lowering import target
from dcarray.lowering.gpu.device import NoDevice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["CudaDevice", "find"]

INSTALL: Final = "pip install 'dcarray[cuda]'"
_GIB: Final = 1 << 30


class CudaDevice:
    """A GPU of NVIDIA; see `dcarray.lowering.gpu.device.Device`.

    Buffers are CuPy's ``MemoryPointer``, from its pool.  All work goes through the default stream, in order.

    Attributes
    ----------
    number : int
        Of the device, as CUDA counts.
    """

    target = "cuda"
    fp64 = True  # on all that CUDA 13 knows

    def __init__(self, number: int) -> None:
        import cupy

        self._cupy = cupy
        self.number = number
        self.name = f"cuda:{number}"
        facts = cupy.cuda.runtime.getDeviceProperties(number)
        self.memory = int(facts["totalGlobalMem"])
        self.description = (
            f"{facts['name'].decode()} (compute capability {facts['major']}.{facts['minor']}, "
            f"{facts['multiProcessorCount']} multiprocessors, {self.memory / _GIB:.0f} GiB)"
        )

    def __repr__(self) -> str:
        return f"<{self.name}: {self.description}>"

    @contextmanager
    def _current(self) -> Iterator[Any]:
        """Make it CUDA's current device, and turn CuPy's errors into Python's, with its name."""
        runtime = self._cupy.cuda.runtime
        try:
            with self._cupy.cuda.Device(self.number):
                yield self._cupy.cuda.Stream.null
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            raise MemoryError(f"{self.name} has no memory left: {error}") from None
        except runtime.CUDARuntimeError as error:
            raise RuntimeError(f"{self.name}: {error}") from error

    def allocate(self, nbytes: int) -> Any:
        """See `Device`."""
        with self._current():
            return self._cupy.cuda.alloc(max(nbytes, 1))

    def upload(self, source: NDArray[Any], buffer: Any) -> None:
        """See `Device`."""
        if not source.flags.c_contiguous:
            raise ValueError("only C-contiguous arrays are copied to devices")
        if source.nbytes:
            with self._current():
                buffer.copy_from_host(source.ctypes.data, source.nbytes)

    def download(self, buffer: Any, target: NDArray[Any]) -> None:
        """See `Device`."""
        if not target.flags.c_contiguous:
            raise ValueError("devices are copied to C-contiguous arrays only")
        if target.nbytes:
            with self._current():
                buffer.copy_to_host(target.ctypes.data, target.nbytes)

    def copy(self, source: Any, target: Any, nbytes: int) -> None:
        """See `Device`."""
        if nbytes:
            with self._current() as stream:
                target.copy_from_device_async(source, nbytes, stream)

    def synchronise(self) -> None:
        """See `Device`."""
        with self._current() as stream:
            stream.synchronize()


def find() -> list[CudaDevice]:
    """Return all GPUs that CUDA's driver knows.

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
        raise NoDevice("no GPU of NVIDIA is there")
    if "cuda" not in target.names():
        raise NoDevice(f"nothing is compiled for {devices[0].description} yet")
    return devices
