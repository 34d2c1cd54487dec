"""NumPy functions that a library of the device's vendor computes: Fourier transforms, linear algebra.

Functions that the library does not have, and arguments that it refuses, are left to NumPy on the host.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from dcarray.core.handle import Handle
from dcarray.core.store import compiles
from dcarray.core.strides import c_strides

from .buffer import DeviceBuffer, array_in, resident

__all__ = ["placed_in_buffer", "try_library"]

_SCALARS = (bool, int, float, complex, str, type(None), np.generic)


def try_library(cls: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a NumPy function, computed by the vendor's library; NotImplemented if NumPy has to
    run the function on the host.

    Parameters
    ----------
    cls : type
        The class of the arrays among the arguments, which determines the device.
    func : callable
        NumPy's function.
    """
    device = cls._device
    name = f"{func.__module__}.{func.__name__}"
    function = device.library(name)
    if function is None:
        return NotImplemented
    try:
        given = [_argument(device, value) for value in args]
        named = {key: _argument(device, value) for key, value in kwargs.items()}
        return _result(cls, name, function(*given, **named))
    except Exception:  # NumPy gives its own answer to what the library does not take, or its own error
        return NotImplemented


class _Refused(Exception):
    """Raised for an argument or result that cannot be passed to or from a library."""


def _argument(device: Any, value: Any) -> Any:
    """Return an argument in the form that the library takes: an array becomes one of the library's."""
    if isinstance(value, Handle):
        if value._device is not device or value._small is not None or value.dtype.char == "e":
            raise _Refused
        placed = placed_in_buffer(device, value)
        if placed is None:
            raise _Refused
        held, strides, offset = placed
        buffer, start = held.buffer, offset * value.dtype.itemsize
        if start:
            buffer = buffer.part(start, buffer.size - start)
        return device.array(buffer, value.shape, strides, value.dtype)
    if isinstance(value, (tuple, list)) and all(isinstance(one, int) for one in value):
        return value  # axes and shapes
    if isinstance(value, _SCALARS):
        return value
    raise _Refused


def _result(cls: Any, name: str, result: Any) -> Any:
    """Return the library's result, with its arrays as arrays of the class ``cls``; 0-d ones as scalars."""
    if isinstance(result, tuple):
        return _named_tuple(name, len(result))(*(_result(cls, name, one) for one in result))
    dtype = np.dtype(result.dtype)
    if not compiles(dtype):
        raise _Refused
    if not result.flags.c_contiguous:
        result = result.copy(order="C")
    device = cls._device
    held = DeviceBuffer(device, device.buffer_of(result), True)
    if not result.shape:
        value = np.empty((), dtype)
        device.download(held.buffer, value)
        return value[()]
    return array_in(cls, held, tuple(result.shape), dtype)


@cache
def _named_tuple(name: str, length: int) -> Any:
    """Return the type of the named tuple that a function of `numpy.linalg` returns."""
    example = getattr(np.linalg, name.rpartition(".")[2])(np.eye(1))
    assert len(example) == length
    return type(example)


def placed_in_buffer(device: Any, x: Any) -> tuple[DeviceBuffer, tuple[int, ...], int] | None:
    """Run what is pending on a large array; return its buffer, and its strides and offset there in elements.
    Return None if its elements cannot lie in a buffer."""
    head = x._store.family
    if head.dirty is not None and head.dirty is not head.remote:
        head.dirty.run(head)
    held = resident(device, x._store)
    if held is None:
        return None
    strides, offset = [0] * len(x.shape), 0
    for (start, stride, axis), step in zip(x._window(), c_strides(x._store.shape), strict=True):
        offset += start * step
        if axis is not None:
            strides[axis] += stride * step
    return held, tuple(strides), offset
