"""Loaded kernels of devices, which can be launched without importing the compiler that made them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dcarray.lowering.gpu.device import Device

_NONE: NDArray[np.int32] = np.zeros(1, np.int32)
_NARROW = (1 << 31) - (1 << 20)  # threads beyond a domain count on, by less than a block


class LaunchedKernel(Protocol):
    """A kernel that a device's driver launches by calling it.

    An argument is a buffer and an offset in elements, or a NumPy scalar.
    """

    def __call__(
        self, device: Any, blocks: tuple[int, ...], arguments: tuple[Any, ...], ints: tuple[int, ...]
    ) -> None:
        """Enqueue all phases: the number of blocks of each, an argument for each buffer, the integers."""


class DeviceKernel:
    """The source text of a kernel, and the facts that a launch needs; a device builds it when it first runs.

    Parameters
    ----------
    source : str
        The text in the device's dialect, with a function ``phaseK`` for each phase.
    threads : tuple of int
        The number of threads of a block, for each phase.
    sizes : tuple of int
        For each buffer the bytes of an element; 0 for an argument by value.
    checks : bool
        Whether one more buffer tells the device that a check has failed.
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
        """Enqueue all phases on a device; see `LaunchedKernel`."""
        narrow, given = self.prepare(device, blocks, arguments, ints)
        device.launch(self, narrow, blocks, given, ints)

    def prepare(
        self, device: Device, blocks: tuple[int, ...], arguments: tuple[Any, ...], ints: tuple[int, ...]
    ) -> tuple[bool, list[Any]]:
        """Return whether indices have 32 bits in a launch, and the list of buffers, offsets and values."""
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
            given += (_failed(device), 0)
        return narrow, given


def _failed(device: Device) -> Any:
    """Return the buffer in which kernels of a device write that a check has failed."""
    if device.failed is None:
        device.failed = device.allocate(_NONE.nbytes)
        device.upload(_NONE, device.failed)
    return device.failed


def check_has_failed(device: Device) -> bool:
    """Whether a check of a kernel has failed since the last call, after the work in the queue."""
    if device.failed is None:
        return False
    found = np.empty_like(_NONE)
    device.download(device.failed, found)
    if found[0]:
        device.upload(_NONE, device.failed)
    return bool(found[0])
