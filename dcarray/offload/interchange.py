"""Arrays on devices given to other libraries: DLPack, and CUDA's array interface.

Arrays on a CUDA device are shared, by address.  Other devices share no memory with other libraries: elements
are brought to the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.core.handle import large
from dcarray.core.store import Store

from .buffer import DeviceBuffer
from .library_calls import placed_in_buffer

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CUDA", "cuda_array_interface", "dlpack", "dlpack_device"]

CPU, CUDA = 1, 2  # types of devices by DLPack


def _is_cuda(x: Any) -> bool:
    return bool(x._device.target == "cuda")


def dlpack_device(x: Any) -> tuple[int, int]:
    """Return the type and the number of the device whose memory an array on a device shares by DLPack."""
    return (CUDA, x._device.number) if _is_cuda(x) else (CPU, 0)


def dlpack(x: Any, on_host: Callable[..., Any], **how: Any) -> Any:
    """Return the capsule of an array on a device; ``on_host`` makes that of the host's memory."""
    if not _is_cuda(x) or (how["dl_device"] is not None and how["dl_device"][0] == CPU):
        return on_host(x, **how)
    held, strides, offset = _shared(x)
    view = x._device.cupy.ndarray(x.shape, x.dtype, held.buffer.memory + offset, strides)
    return view.__dlpack__(**how)


def cuda_array_interface(x: Any) -> dict[str, Any]:
    """Return the description of an array on a CUDA device by its address.

    Raises
    ------
    AttributeError
        If it is on another one.
    """
    if not _is_cuda(x):
        raise AttributeError(f"arrays on {x.device} have no attribute '__cuda_array_interface__'")
    held, strides, offset = _shared(x)
    return {
        "shape": x.shape,
        "strides": strides,
        "typestr": x.dtype.str,
        "data": (held.buffer.ptr + offset, x._small is None and x._readonly),
        "version": 3,
        "stream": 1,  # the default stream, in which all of the device's work is
    }


def _shared(x: Any) -> tuple[DeviceBuffer, tuple[int, ...], int]:
    """Return the buffer of an array, that others may write to from now on; strides and offset in bytes."""
    if x._small is not None or not x._store.char:  # whose memory is the host's
        x._become(_in_buffer(x))
    placed = placed_in_buffer(x._device, x)
    if placed is None:  # elements that are not in C order
        x._become(_in_buffer(x))
        placed = placed_in_buffer(x._device, x)
    assert placed is not None
    held, strides, offset = placed
    head = x._store.family
    head.used = held
    held.expose(head)
    itemsize = x.dtype.itemsize
    return held, tuple(s * itemsize for s in strides), offset * itemsize


def _in_buffer(x: Any) -> Any:
    """Return the same elements in a buffer of their own."""
    a = x._evaluated()
    store = Store(a.shape, a.dtype, None, a.size)
    store.bind(np.ascontiguousarray(a))
    return large(type(x), store, a.shape, None)
