"""Kernels of devices, ready to be launched; this module does not import the compiler that printed them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .host_calls import run_buffer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dcarray.lowering.gpu.device import Device

_NONE: NDArray[np.int32] = np.zeros(1, np.int32)
_NARROW = (1 << 31) - (1 << 20)  # threads beyond a domain count on, by less than a block


class DeviceKernel:
    """A kernel as source text, with what a launch has to know; the device compiles it when it first runs.

    A kernel has one or more *phases*, device functions that run one after the other.

    Parameters
    ----------
    source : str
        The text in the device's dialect, with a function ``phaseK`` for each phase.
    threads : tuple of int
        The number of threads of a block, for each phase.
    sizes : tuple of int
        For each buffer the bytes of an element; 0 for an argument that is passed by value.
    checks : bool
        Whether the kernel tests values, such as indices, as it runs: then it has one more argument, a buffer
        into which it writes if a test fails (see `check_has_failed`).
    """

    loader: ClassVar[str] = f"{__name__}:DeviceKernel"

    def __init__(
        self, source: str, threads: tuple[int, ...], sizes: tuple[int, ...], checks: bool = False
    ) -> None:
        self.parts = source, threads, sizes, checks
        self.source, self.threads, self.sizes, self.checks = source, threads, sizes, checks
        self._limits = [size * _NARROW for size in sizes]  # bytes of buffers; 0 for an argument by value

    def __call__(
        self, device: Device, blocks: tuple[int, ...], arguments: tuple[Any, ...], ints: tuple[int, ...]
    ) -> None:
        """Launch the kernel: put its phases into the device's queue, in order.

        Parameters
        ----------
        device : Device
        blocks : tuple of int
            The number of blocks of threads of each phase.
        arguments : tuple
            For each of the kernel's buffers a buffer and an offset in elements, or a NumPy scalar.
        ints : tuple of int
            The kernel's integer arguments.
        """
        narrow, given = self.prepare(device, blocks, arguments, ints)
        device.launch(self, narrow, blocks, given, ints)

    def prepare(
        self, device: Device, blocks: tuple[int, ...], arguments: tuple[Any, ...], ints: tuple[int, ...]
    ) -> tuple[bool, list[Any]]:
        """Return whether 32-bit indices suffice for a launch, and the arguments as one list: for each buffer
        the buffer and its offset, or a scalar."""
        narrow = device.short_indices and (not ints or (max(ints) < _NARROW and min(ints) > -_NARROW))
        given: list[Any] = []
        for argument, limit in zip(arguments, self._limits, strict=True):
            if limit:
                given += argument
                narrow = narrow and argument[0].size < limit
            else:
                given.append(argument)
        for count, threads in zip(blocks, self.threads, strict=True):
            narrow = narrow and count * threads < _NARROW
        if self.checks:
            given += (failed(device), 0)
        return narrow, given


def failed(device: Device) -> Any:
    """Return the buffer into which a device's kernels write if a check fails; the first call allocates it."""
    if device.failed is None:
        device.failed = run_buffer(device, _NONE.nbytes, _NONE)
    return device.failed


def check_has_failed(device: Device) -> bool:
    """Wait for the device's queue; return whether a kernel's check has failed since the last call."""
    if device.failed is None:
        return False
    flag = np.empty_like(_NONE)
    device.download(device.failed, flag)
    if flag[0]:
        device.upload(_NONE, device.failed)
    return bool(flag[0])
