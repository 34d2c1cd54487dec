"""``x[mask]`` on a device: selected elements are gathered there, and only their number comes to the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.api.array import evaluate, ndarray
from dcarray.core.handle import Handle, as_class
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.gpu.indexing import THREADS, selection
from dcarray.recording.session import recording_for

from .arrays import array_class
from .auto import AutoDevice
from .buffer import DeviceBuffer, array_in, resident
from .kernel_calls import compiled

__all__ = ["selected"]


def selected(x: Handle, mask: Handle) -> Any:
    """Return ``x[mask]`` as an array on the device that has the elements of ``x``.

    Parameters
    ----------
    x, mask : ndarray
        Large arrays of the same shape; the mask is boolean.

    Returns
    -------
    ndarray or None
        None if the host has the elements, or if the device has no kernel for the dtype.
    """
    device = _device_of(x)
    if device is None or x._shape != mask._shape or not x._store.char:
        return None
    there = device.there if isinstance(device, AutoDevice) else device
    try:
        kernel = compiled(there.target, selection(x.dtype))
    except (Unsupported, ValueError):  # the target has no such dtype, or is none that is built in
        return None
    with recording_for(device):
        whole = _whole(as_class(ndarray, x))
        counts: Any = np.cumsum(as_class(ndarray, mask).reshape(-1), dtype=np.int64)
        evaluate(whole, counts)
    size = whole._store.size
    number = int(counts[size - 1])
    given = [held for one in (whole, counts) if (held := resident(device, one._store)) is not None]
    if len(given) < 2:
        return None
    buffer = DeviceBuffer(device, there.allocate(max(number * x.dtype.itemsize, 1)), True)
    if number:
        blocks = -(-number // THREADS)
        buffers = tuple((held.buffer, 0) for held in (buffer, *given))
        kernel(there, (blocks,), buffers, (number, size, blocks))
    return array_in(array_class(device) if type(x)._device is device else ndarray, buffer, (number,), x.dtype)


def _device_of(x: Handle) -> Any:
    """Run what is pending on an array; return the device that has its newest elements, None if the host has
    them."""
    head = x._store.family
    if head.dirty is not None and not head.dirty.done:
        head.dirty.run(head)
    held = head.remote
    return held.device if isinstance(held, DeviceBuffer) and held.ahead and held.failure is None else None


def _whole(x: Any) -> Any:
    """Return an array itself if it is a whole store in C order, else a copy that is."""
    is_whole = x._index is None and x._store is x._store.family and x._shape == x._store.shape
    return x if is_whole else x.copy()
