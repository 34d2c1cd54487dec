"""Guards of wrapped arrays, on the host and on devices; imported where there are some."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from dcarray.api.array import ndarray
from dcarray.core.handle import Handle
from dcarray.core.store import compilable, writeable
from dcarray.core.strides import strides_of

from .entry_values import DeviceGuard

__all__ = ["is_handle", "ndarray", "on_device", "wrapped"]


def is_handle(value: Any) -> bool:
    """Whether a value is an array on a device."""
    return issubclass(type(value), Handle) and value._device is not None


def on_device(x: Handle) -> Hashable | None:
    """Return the guard of an array on a device; None where recordings choose the device."""
    a = x._small
    if not x._device.target:
        return None
    if a is not None:
        usable = compilable(a) and writeable(a) and a.flags.c_contiguous
        return DeviceGuard(x._device, a.dtype, a.shape) if usable else None
    if x._readonly:
        return None
    store = x._store
    whole = store is store.family and x._index is None and x._shape == store.shape and store.strides is None
    return DeviceGuard(x._device, store.dtype, x._shape, not whole) if store.char else None


def wrapped(x: Handle) -> Hashable | None:
    """Return the guard of a wrapped array; what is pending on it stays pending."""
    a = x._small
    if a is None:
        store = x._store
        if not store.char:
            return None
        if x._ndarray is None and store.mem is None:
            strides = tuple([store.dtype.itemsize * s for s in strides_of(x)])
            return store.dtype, x._shape, strides, not x._readonly, False
        a = x._plain_view()
    elif not compilable(a):
        return None
    return a.dtype, a.shape, a.strides, writeable(a), False
