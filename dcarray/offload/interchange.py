"""Arrays on devices passed to other libraries, by DLPack or CUDA's array interface.

The memory of arrays on a CUDA device is shared.  Other devices cannot share their memory with other
libraries: the elements are copied to the host.
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
    """Return DLPack's type and number of the device whose memory `dlpack` shares: CUDA's, or else the CPU."""
    return (CUDA, x._device.number) if _is_cuda(x) else (CPU, 0)


def dlpack(x: Any, on_host: Callable[..., Any], **how: Any) -> Any:
    """Return the DLPack capsule of an array on a device.

    On CUDA it shares the device's memory.  For other devices, or if the CPU is asked for, ``on_host(x,
    **how)`` makes it from host memory.  ``how``: the arguments of ``__dlpack__``.
    """
    if not _is_cuda(x) or (how["dl_device"] is not None and how["dl_device"][0] == CPU):
        return on_host(x, **how)
    held, strides, offset = _shared(x)
    view = x._device.cupy.ndarray(x.shape, x.dtype, held.buffer.memory + offset, strides)
    return view.__dlpack__(**how)


def cuda_array_interface(x: Any) -> dict[str, Any]:
    """Return the dictionary ``__cuda_array_interface__``, which has the address of an array on a CUDA device.

    Raises
    ------
    AttributeError
        If the array is not on a CUDA device.
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
    """Return an array's buffer, and its strides and offset there in bytes.

    From now on others may write to the buffer.  An array without a buffer, or not in C order, gets a new one.
    """
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
    """Return a copy of an array in C order, which will get a device buffer of its own."""
    a = x._evaluated()
    store = Store(a.shape, a.dtype, None, a.size)
    store.bind(np.ascontiguousarray(a))
    return large(type(x), store, a.shape, None)
