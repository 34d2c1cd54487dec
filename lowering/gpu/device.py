"""The interface of devices with their own memory; `devices` has the table of those of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray

    from dcarray.lowering.gpu.kernels import DeviceKernel


__all__ = ["Device", "NoDevice"]


class Device(Protocol):
    """One device: its memory, and one queue in which its work is done in order.

    Attributes
    ----------
    name : str
        The kind of device and a number, such as ``"opencl:0"``.
    target : str
        The name of the target that compiles plans for it.
    description : str
        The vendor's name of the device, the number of its compute units, and its memory.
    memory : int
        The size of its memory in bytes.
    fp64 : bool
        Whether it has double-precision arithmetic.
    is_processor : bool
        Whether the device is the host's processor.
    cache_dir : str or None
        The folder in which built kernels are cached; None if they are not stored.
    short_indices : bool
        Whether indices have 32 bits where these suffice.
    graphs : bool
        Whether launches are collected into graphs, if the device has these.
    graph_memory : int or None
        Bytes that the temporaries of a graph may take where an order of its nodes allows it; None for a part
        of the device's memory.
    failed : object or None
        The buffer in which kernels write that a check has failed, once there is such a kernel.
    """

    name: str
    target: str
    description: str
    memory: int
    fp64: bool
    is_processor: bool
    short_indices: bool
    cache_dir: str | None
    graphs: bool
    graph_memory: int | None
    failed: Any

    def running(self) -> AbstractContextManager[Any]:
        """Return a context for a run, in which the device looks up once what each call would look up."""

    def allocate(self, nbytes: int) -> Any:
        """Return a buffer of at least ``nbytes`` bytes, which returns to a pool when it is garbage-collected.

        Raises
        ------
        MemoryError
            If the device has no memory left.
        """

    def upload(self, source: NDArray[Any], buffer: Any, start: int = 0) -> None:
        """Copy a C-contiguous host array to the bytes of a buffer from ``start`` on; ``source`` may change
        afterwards."""

    def download(self, buffer: Any, target: NDArray[Any], start: int = 0) -> None:
        """Copy bytes of a buffer, from ``start``, into a C-contiguous host array, after the queued work."""

    def mapped(self, buffer: Any, size: int, written: bool) -> AbstractContextManager[NDArray[Any]]:
        """Return a context with the first bytes of a buffer where they lie, if the device is the processor,
        after the work in the queue."""

    def build(self, kernel: DeviceKernel) -> None:
        """Build a kernel if it has not been built, with 32-bit indices.

        Raises
        ------
        RuntimeError
            If the device's compiler refuses the kernel.
        """

    def copy(self, source: Any, target: Any, nbytes: int) -> None:
        """Enqueue a copy of the first ``nbytes`` of a buffer into another."""

    def launch(
        self,
        kernel: DeviceKernel,
        narrow: bool,
        blocks: tuple[int, ...],
        arguments: list[Any],
        ints: Sequence[int],
    ) -> None:
        """Enqueue the phases of a kernel, in order.

        Parameters
        ----------
        kernel : DeviceKernel
            It is built when it is first launched.
        narrow : bool
            Whether indices have 32 bits.
        blocks : tuple of int
            The number of blocks of each phase; a phase with 0 blocks is not launched.
        arguments : list
            For each buffer of the kernel the buffer and an offset in elements, or a NumPy scalar.
        ints : sequence of int
            The integer arguments.
        """

    def library(self, name: str) -> Callable[..., Any] | None:
        """Return the vendor's function that computes the same as the NumPy function ``name`` (such as
        ``"numpy.fft.fft"``) for arrays made by `array`; None if there is none."""

    def array(
        self, buffer: Any, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]
    ) -> Any:
        """Return an array of the vendor's libraries on a buffer, with strides in elements."""

    def buffer_of(self, array: Any) -> Any:
        """Return the buffer that holds a contiguous array of the vendor's libraries."""

    def synchronise(self) -> None:
        """Wait until all work in the queue is done."""


class NoDevice(RuntimeError):
    """Raised if no device of a kind can be used; the text has the reason and how to install support."""
