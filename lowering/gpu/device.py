"""The interface of devices with their own memory; `dcarray.lowering.gpu.devices` lists this machine's."""

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
        How many bytes the temporaries of a graph may take, if some order of its nodes allows so few; None for
        a fixed part of the device's memory.
    failed : object or None
        The buffer into which kernels write if a test of theirs fails (`check_has_failed`); None before the
        first launch of such a kernel.
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
        """Return a context for a run of a plan, in which calls need not look up the device's state again."""

    def allocate(self, nbytes: int) -> Any:
        """Return a buffer of at least ``nbytes`` bytes, which returns to a pool when it is garbage-collected.

        Raises
        ------
        MemoryError
            If the device has no memory left.
        """

    def upload(self, source: NDArray[Any], buffer: Any, start: int = 0) -> None:
        """Copy a C-contiguous host array into a buffer, from the buffer's byte ``start`` on; ``source`` may
        change afterwards."""

    def download(self, buffer: Any, target: NDArray[Any], start: int = 0) -> None:
        """Wait for the queue, then copy a buffer's bytes from ``start`` on into a C-contiguous host array."""

    def mapped(self, buffer: Any, size: int, written: bool) -> AbstractContextManager[NDArray[Any]]:
        """Return a context that waits for the queue and gives a buffer's first ``size`` bytes as an array on
        the same memory; only if the device is the processor.  ``written``: whether the array is written."""

    def build(self, kernel: DeviceKernel) -> None:
        """Compile a kernel for the device's usual size of indices, if that has not been done yet.

        Raises
        ------
        RuntimeError
            If the device's compiler refuses the kernel.
        """

    def copy(self, source: Any, target: Any, nbytes: int) -> None:
        """Enqueue a copy of the first ``nbytes`` bytes of ``source`` to the start of ``target``."""

    def launch(
        self,
        kernel: DeviceKernel,
        narrow: bool,
        blocks: tuple[int, ...],
        arguments: list[Any],
        ints: Sequence[int],
    ) -> None:
        """Put the phases of a kernel, one device function each, into the queue, in order.

        Parameters
        ----------
        kernel : DeviceKernel
            The kernel, which is compiled when it is first launched.
        narrow : bool
            Whether indices have 32 bits; else they have 64.
        blocks : tuple of int
            The number of blocks of each phase; a phase with 0 blocks is not launched.
        arguments : list
            For each of the kernel's buffers the buffer and an offset in elements, or a NumPy scalar.
        ints : sequence of int
            The kernel's integer arguments.
        """

    def library(self, name: str) -> Callable[..., Any] | None:
        """Return the vendor's function that computes the same as the NumPy function ``name`` (such as
        ``"numpy.fft.fft"``) for arrays made by `array`; None if there is none."""

    def array(
        self, buffer: Any, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]
    ) -> Any:
        """Return an array of the vendor's library on a buffer's memory, with strides in elements."""

    def buffer_of(self, array: Any) -> Any:
        """Return a buffer on the memory of a contiguous array of the vendor's library."""

    def synchronise(self) -> None:
        """Wait until all work in the queue is done."""


class NoDevice(RuntimeError):
    """Raised if no device of a kind can be used; the text has the reason and how to install support."""
