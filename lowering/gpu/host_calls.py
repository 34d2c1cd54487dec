"""The functions that the printed driver of a device's plan calls: allocation, and statements that the host
runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dcarray.lowering.gpu.device import Device
    from dcarray.lowering.gpu.kernels import DeviceKernel

__all__ = ["NotStarted", "allocate", "flag", "on_host", "prepare", "run_buffer"]

#: The buffer or value of an array, its shape and strides in elements, its dtype, and whether it is written.
Given = tuple[Any, tuple[int, ...], tuple[int, ...], np.dtype[Any], bool]


def on_host(
    device: Device, step: Callable[..., int], arrays: tuple[Given, ...], values: dict[str, int]
) -> None:
    """Run ``step(views, values)`` on the host, with NumPy views of arrays that lie on a device.

    If the device is the processor, the views are on the buffers' own memory; else each buffer is copied to
    the host, and back if the step writes to it.  ``values`` has the values of the plan's symbols.
    """
    buffers: dict[int, tuple[Any, int, bool]] = {}
    for buffer, shape, strides, dtype, is_written in arrays:
        last = sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
        size = 0 if 0 in shape else (last + 1) * dtype.itemsize
        _, most, written = buffers.get(id(buffer), (buffer, 0, False))
        buffers[id(buffer)] = buffer, max(size, most), written or is_written
    with ExitStack() as stack:
        reach = device.mapped if device.is_processor else partial(_copied, device)
        there = {
            key: stack.enter_context(reach(*given))
            for key, given in buffers.items()
            if not isinstance(given[0], np.generic | np.ndarray)
        }
        views: list[np.ndarray[Any, Any]] = []
        for buffer, shape, strides, dtype, _ in arrays:
            if id(buffer) in there:
                steps = tuple([step * dtype.itemsize for step in strides])
                views.append(np.ndarray(shape, dtype, there[id(buffer)], 0, steps))
            else:
                views.append(np.asarray(buffer, dtype))
        step(views, values)


@contextmanager
def _copied(device: Device, buffer: Any, size: int, written: bool) -> Iterator[np.ndarray[Any, Any]]:
    """Yield a host copy of a buffer's first ``size`` bytes; if it is ``written``, copy it back at the end."""
    copy: np.ndarray[Any, Any] = np.empty(size, np.uint8)
    device.download(buffer, copy)
    yield copy
    if written:
        device.upload(copy, buffer)


class NotStarted(Exception):
    """Raised if the run of a plan on a device has failed before it changed anything; its cause says why."""


def allocate(device: Device, nbytes: int) -> Any:
    """Return a buffer of ``nbytes`` bytes for a run that has changed nothing yet.

    Raises
    ------
    NotStarted
        If the device has not enough memory.
    """
    try:
        return device.allocate(nbytes)
    except Exception as error:
        raise NotStarted from error


def prepare(
    device: Device, kernels: tuple[DeviceKernel, ...], buffers: tuple[tuple[str, int | None], ...]
) -> None:
    """Build the kernels of a run that has changed nothing yet, and allocate and free its ``buffers`` in
    order.

    In the run they then come from the device's pool.  A pair of a name and None frees the buffer of that
    name.

    Raises
    ------
    NotStarted
        If a kernel cannot be built, or the device has not enough memory.
    """
    held: dict[str, Any] = {}
    try:
        for kernel in kernels:
            device.build(kernel)
        for name, nbytes in buffers:
            held[name] = None if nbytes is None else device.allocate(nbytes)
    except Exception as error:
        raise NotStarted from error


def flag(device: Device, buffer: Any) -> bool:
    """Wait for the device's queue; return the boolean in the first byte of a buffer."""
    host: np.ndarray[Any, Any] = np.empty(1, np.uint8)
    device.download(buffer, host)
    return bool(host[0])


def run_buffer(device: Device, nbytes: int, source: NDArray[Any] | None = None) -> Any:
    """Return a buffer of ``nbytes`` bytes for one run, with the elements of the host array ``source``.

    Raises
    ------
    MemoryError
        If the device has no memory left.
    """
    buffer = device.allocate(max(nbytes, 1))
    if source is not None:
        device.upload(np.ascontiguousarray(source), buffer)
    return buffer
