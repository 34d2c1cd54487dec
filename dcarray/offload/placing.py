"""Arrays put on a device: new arrays, and copies of plain, another library's or another device's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.core.config import current
from dcarray.core.counters import note, user_line
from dcarray.core.device_names import AUTO
from dcarray.core.devices import name_of
from dcarray.core.handle import Handle, adopt, as_class, export, large
from dcarray.core.processes import communicator
from dcarray.core.store import Store, compiles
from dcarray.lowering.gpu import devices

from .arrays import DeviceArray, array_class, call
from .auto import AutoDevice, auto_device
from .buffer import DeviceBuffer, least_elements, settle_new, uploaded
from .interchange import CUDA

__all__ = ["converted", "created", "device_of", "from_dlpack", "moved", "place", "placed"]


def device_of(name: str) -> Any:
    """Return the device with a name; None if arrays on it are ordinary arrays of the CPU.

    They are with ``"cpu"``, with ``"auto"`` if the machine has no other device, and, if several ranks run the
    program, with ``"auto"`` and with the device of the option ``device``.

    Raises
    ------
    ValueError
        If there is no such device, or if several ranks run the program and it is any other device.
    """
    if name == "cpu" or (communicator() is not None and name in (AUTO, current().device)):
        return None  # on ranks the option says where their blocks are computed
    if name == AUTO:
        either = auto_device()
        if either is not None:
            either.renewed_rates()  # before anything is recorded
        return either
    device = devices.get(name)
    if communicator() is not None:
        raise ValueError(
            f"several ranks compute on {name} with dc.options(device=...), not by an array's own"
        )
    return device


def created(name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function that makes arrays, such as ``zeros``; return its results as arrays on a device."""
    device = device_of(name)
    return call(array_class(device), function, args, kwargs)


def place(name: str, value: Any) -> Any:
    """Return a value whose wrapped arrays of the CPU are replaced by arrays of a device on the same
    stores."""
    device = device_of(name)
    return value if device is None else _of_class(array_class(device), value)


def _of_class(cls: type[ndarray], value: Any) -> Any:
    kind = type(value)
    if kind is ndarray:
        return as_class(cls, value)
    if kind is tuple or kind is list:
        return kind([_of_class(cls, v) for v in value])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*(_of_class(cls, v) for v in value))
    return value


def placed(name: str, a: np.ndarray[Any, Any], owned: bool = False) -> Any:
    """Return a copy of a plain array on a device: in a buffer, or in host memory if it is small, the device
    is ``"auto"`` or has no room.  That memory may be the array's own if nobody else has the array
    (``owned``)."""
    device = device_of(name)
    cls = array_class(device)
    below = least_elements()
    stays = device is None or isinstance(device, AutoDevice)  # until it is wanted there
    if stays or a.size < below or not compiles(a.dtype) or not a.size:
        return adopt(cls, a if owned else a.copy(order="K"), below)
    axes = sorted(range(a.ndim), key=lambda k: -abs(a.strides[k]))  # as NumPy copies
    rows = a.transpose(axes)
    store = Store(rows.shape, a.dtype, None, a.size)
    try:
        settle_new(store, uploaded(device, rows))
    except MemoryError:
        note(f"interpreter ({device.name} has no memory left)", a.nbytes, where=user_line())
        return adopt(cls, a if owned else a.copy(order="K"), below)
    if axes == sorted(axes):
        return large(cls, store, a.shape, None)
    store.permuted = True
    return large(cls, store, a.shape, tuple((0, 1, k) for k in axes))


def converted(name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the first argument as an array on a device; ``function`` (``asarray``, ...) converts it on the
    CPU.

    Raises
    ------
    ValueError
        If a copy is needed, with ``copy=False``.
    """
    device = device_of(name)
    if device is None and communicator() is not None:
        return function(*args, **kwargs)
    a = args[0] if args else None
    if isinstance(a, Handle) and a._device is device:
        return call(array_class(device), function, args, kwargs)
    if kwargs.get("copy") is False:
        raise ValueError(
            f"Unable to avoid copy while creating an array as requested: {name} has memory of its own."
        )
    plain = tuple(map(_plain, args))
    array = function(*plain, **kwargs)
    if not isinstance(array, Handle):
        return array
    host = array._evaluated()
    return placed(name, host, owned=host.base is None and not any(host is v for v in plain))


def _plain(a: Any) -> Any:
    """Return a value with each wrapped array, also those in lists and tuples, replaced by a plain array."""
    if isinstance(a, Handle):
        return a._evaluated()
    if type(a) is list or type(a) is tuple:
        inner = [_plain(v) for v in a]
        return a if all(p is v for p, v in zip(inner, a, strict=True)) else inner
    return a


def moved(x: Any, name: str) -> Any:
    """Return an array on the device ``name``: ``x`` itself if it is there, or else a copy."""
    device = device_of(name)
    if x._device is device:
        return x
    return placed(name, x._elements_now())


def from_dlpack(x: Any, device: str, copy: bool | None) -> Any:
    """Return another library's array, read by DLPack, as an array on a device.

    If it is on a CUDA device in C order, and ``copy`` is not true, its memory is shared there, and
    only copied if ``device`` is another one.

    Raises
    ------
    ValueError
        If a copy is needed, with ``copy=False``.
    """
    kind, number = x.__dlpack_device__()
    if kind != CUDA:
        if copy is False:
            raise ValueError(f"Unable to avoid a copy of the array: {device} has memory of its own.")
        return placed(device, np.from_dlpack(x))
    there = device_of(f"cuda:{number}")
    shared = there.cupy.from_dlpack(x)
    if copy or not shared.flags.c_contiguous:
        if copy is False:
            raise ValueError("Unable to avoid a copy of the array: its elements are not in C order.")
        shared = shared.copy(order="C")
    store = Store(shared.shape, np.dtype(shared.dtype), None, shared.size)
    held = DeviceBuffer(there, there.buffer_of(shared), True)
    settle_new(store, held)
    if not copy:
        held.expose(store)
    return large(array_class(there), store, store.shape, None).to_device(device)


def _reduced(x: DeviceArray, protocol: Any = None) -> Any:
    """Return what pickle needs for an array on a device: `placed`, the device's name, and the elements."""
    return placed, (name_of(x._device), export(x))


setattr(DeviceArray, "__reduce_ex__", _reduced)  # noqa: B010  (here, since `placed` makes such arrays)
