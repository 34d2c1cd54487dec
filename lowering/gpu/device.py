"""What a device with memory of its own has to offer; `devices` has the table of those of this machine."""

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
        The kind and a number: ``"opencl:0"``.
    target : str
        The name of the target that makes its plans.
    description : str
        Its name by the vendor, with units and memory.
    memory : int
        Bytes.
    fp64 : bool
        Whether it computes in double precision.
    is_processor : bool
        Whether it is the processor.
    cache_dir : str or None
        The folder in which kernels that it has built outlive the process; None for nowhere.
    short_indices : bool
        Whether indices have 32 bits where these suffice.
    graphs : bool
        Whether launches become graphs, where it has such.
    graph_memory : int or None
        Bytes that the temporaries of a graph may take where an order of its nodes allows it; None for a part
        of the device's memory.
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

    def running(self) -> AbstractContextManager[Any]:
        """Return a context for a run: what a device has to look for at each call is looked for once."""

    def allocate(self, nbytes: int) -> Any:
        """Return a buffer of at least ``nbytes``, which goes back to a pool when it is garbage.

        Raises
        ------
        MemoryError
            If the device has no memory left.
        """

    def upload(self, source: NDArray[Any], buffer: Any) -> None:
        """Copy a C-contiguous host array to the beginning of a buffer; ``source`` may change afterwards."""

    def download(self, buffer: Any, target: NDArray[Any], start: int = 0) -> None:
        """Copy the bytes of a buffer from ``start`` on into a C-contiguous host array, after the work in the
        queue."""

    def mapped(self, buffer: Any, size: int, written: bool) -> AbstractContextManager[NDArray[Any]]:
        """Return a context with the first bytes of a buffer where they lie, if the device is the processor,
        after the work in the queue."""

    def build(self, kernel: DeviceKernel) -> None:
        """Build a kernel if it has not been built, with 32-bit indices.

        Raises
        ------
        RuntimeError
            If its compiler refuses it.
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
            Built when it is launched for the first time.
        narrow : bool
            Whether indices have 32 bits.
        blocks : tuple of int
            The number of blocks of each phase; a phase of none is left out.
        arguments : list
            For each buffer of the kernel the buffer and an offset in elements, or a NumPy scalar.
        ints : sequence of int
            The integer arguments.
        """

    def library(self, name: str) -> Callable[..., Any] | None:
        """Return a function of the vendor's libraries that does what NumPy's of that name does, like
        ``"numpy.fft.fft"``, with arrays made by `array`; None if there is none."""

    def array(
        self, buffer: Any, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]
    ) -> Any:
        """Return an array of the vendor's libraries on a buffer, with strides in elements."""

    def buffer_of(self, array: Any) -> Any:
        """Return the memory of such an array, which is contiguous, as a buffer."""

    def synchronise(self) -> None:
        """Wait for the work in the queue."""


class NoDevice(RuntimeError):
    """The error of a kind of which no device can be used: the reason, and the command that installs it."""
