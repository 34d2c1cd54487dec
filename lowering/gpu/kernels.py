"""Loaded kernels of devices: what a process needs to launch them, without what has made them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from dcarray.lowering.gpu.device import Device

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
    """The source of a kernel with what a launch has to know; a device builds it when it first runs.

    Parameters
    ----------
    source : str
        The text, with a function ``phaseK`` for each phase.
    threads : tuple of int
        The threads of a block, for each phase.
    sizes : tuple of int
        For each buffer the bytes of an element; 0 for an argument by value.
    """

    loader: ClassVar[str] = f"{__name__}:DeviceKernel"

    def __init__(self, source: str, threads: tuple[int, ...], sizes: tuple[int, ...]) -> None:
        self.parts = source, threads, sizes
        self.source, self.threads, self.sizes = source, threads, sizes

    def __call__(
        self, device: Device, blocks: tuple[int, ...], arguments: tuple[Any, ...], ints: tuple[int, ...]
    ) -> None:
        """Enqueue all phases on a device; see `LaunchedKernel`."""
        narrow, given = self.prepare(device, blocks, arguments, ints)
        device.launch(self, narrow, blocks, given, ints)

    def prepare(
        self, device: Device, blocks: tuple[int, ...], arguments: tuple[Any, ...], ints: tuple[int, ...]
    ) -> tuple[bool, list[Any]]:
        """Return whether indices have 32 bits, and buffers, offsets and values one after the other."""
        narrow = device.short_indices and all(-_NARROW < n < _NARROW for n in ints)
        given: list[Any] = []
        for argument, size in zip(arguments, self.sizes, strict=True):
            if size:
                buffer, offset = argument
                narrow = narrow and buffer.size < _NARROW * size
                given += (buffer, offset)
            else:
                given.append(argument)
        narrow = narrow and all(n * t < _NARROW for n, t in zip(blocks, self.threads, strict=True))
        return narrow, given
