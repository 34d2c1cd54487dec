"""Indexing of handles: basic keys compose windows, all other keys are indexed by NumPy in memory."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.core import config, shard, strided_views, window
from dcarray.core.backend import NOT_DISTRIBUTED, try_call
from dcarray.core.device_backend import device_backend
from dcarray.core.devices import common_device
from dcarray.core.handle import Handle, NDArray, derive, large, part, wrap_new
from dcarray.core.processes import communicator
from dcarray.core.store import compilable, memory
from dcarray.recording import masked_assignment, operands, recorder
from dcarray.tiering import policy

_INT = frozenset({int})


def plain_key(key: Any) -> Any:
    """Return a key in which plain arrays replace wrapped ones, and Python's integers those of NumPy."""
    if type(key) is tuple:
        return tuple(plain_key(k) for k in key)
    if isinstance(key, Handle):
        key = key._evaluated()
    if isinstance(key, np.ndarray) and key.ndim == 0 and key.dtype.kind in "iu":
        return int(key)
    if isinstance(key, np.integer):
        return int(key)
    if isinstance(key, slice):
        return slice(plain_key(key.start), plain_key(key.stop), plain_key(key.step))
    if not isinstance(key, (bool, int, np.generic, np.ndarray)) and hasattr(key, "__index__"):
        return operator.index(key)
    return key


def _refuse_other_devices(x: Handle, key: Any) -> None:
    """Raise the error for a key with arrays on another device."""
    if isinstance(key, (Handle, tuple)) and not window.is_basic(key):
        common_device(None, x, key)


def evaluated_key(x: Handle, key: Any) -> Any:
    """Return a key for ``x`` in which plain arrays, evaluated, replace wrapped ones."""
    _refuse_other_devices(x, key)
    if type(key) is tuple:
        return tuple([operands.plain_of(k) for k in key])
    return operands.plain_of(key)


def get(x: Handle, key: Any) -> Any:
    """Return ``x[key]`` for a large handle."""
    _refuse_other_devices(x, key)
    slices = (key,) if type(key) is slice else key
    if type(slices) is tuple and 0 < len(slices) <= len(x._shape) and type(slices[-1]) is slice:
        try:
            place = window.slice_window(x._shape, x._index, slices)
        except TypeError:  # NumPy checks the other indices first
            np.broadcast_to(np.int8(0), x._shape)[key]
            raise
        if place is not None and (
            (x._ndarray is None and x._store.mem is None)
            or math.prod(place[0]) >= config.current().eager_below
        ):
            return _view(x, *place)
    if not window.is_basic(key):
        if isinstance(key, Handle) and masked_assignment.is_mask(x, key) and communicator() is None:
            result = on_device(x, key)
            return gather(x, x._evaluated(), key._evaluated()) if result is None else result
        if communicator() is not None:
            result = _call_on_blocks(operator.getitem, x, key)
            if result is not NotImplemented:
                return result
        plain = plain_key(key)
        if not window.is_basic(plain):
            return _take(x, plain)
        result = get(x, plain)
        # an array without axes counts as an integer, but gives a copy
        return result.copy() if isinstance(result, Handle) and _has_array(key) else result
    if x._ndarray is not None or x._store.mem is not None:
        view = x._plain_view()[key]
        if type(view) is np.ndarray:
            return part(x, key, view)
        rec = x._store.family.dirty
        if rec is None or rec.done:
            return view
    shape, index = window.getitem(x._shape, x._window(), key)
    if not shape and all(k is not Ellipsis for k in (key if type(key) is tuple else (key,))):
        return element(x, index)
    return _view(x, shape, index)


def _call_on_blocks(function: Callable[..., Any], *args: Any) -> Any:
    """Index a distributed array without gathering it; NotImplemented if it is not distributed, or if
    this key needs all of it."""
    result = try_call(function, args, {})
    return NotImplemented if result is NOT_DISTRIBUTED else result


def _is_element(x: Handle, key: Any) -> bool:
    """Whether the key consists of Python integers that select one element."""
    if type(key) is tuple:
        return len(key) == len(x._shape) and _INT.issuperset(map(type, key))
    return type(key) is int and len(x._shape) == 1


def _view(x: Handle, shape: tuple[int, ...], index: window.Index) -> Any:
    y = large(type(x), x._store, shape, index)
    y._readonly = x._readonly
    return y


def element(x: Handle, index: window.Index) -> Any:
    """Return the NumPy scalar at a window of one element."""
    store = x._store
    head = store._head or store
    rec = head.dirty
    place = tuple([offset for offset, _, _ in index])
    if rec is not None:
        rec.run(head)
    if head.remote is not None and head.remote.device is not None:
        if store.origin is None:
            one = head.remote.part(head, store, (), index)
            if one is not None:
                return one[()]
        head.remote.materialise(head)
    elif head.remote is not None:
        if store is head:
            return shard.element(head, place)
        if store.origin is not None:
            return strided_views.element(store, place)
        head.remote.materialise(head)
    return memory(store)[place]


def _has_array(key: Any) -> bool:
    return any(isinstance(k, (Handle, np.ndarray)) for k in (key if type(key) is tuple else (key,)))


def _take(x: Handle, key: Any) -> Any:
    """Return elements or fields by NumPy's advanced indexing."""
    a = x._evaluated()
    if masked_assignment.is_mask(x, key):
        return gather(x, a, key)
    result = a[key]
    fresh = type(result) is np.ndarray and result.base is None and result.flags.c_contiguous
    operands.note_fallback("getitem", (x,))
    if fresh and x._store.char:
        return wrap_new(type(x), result, config.current().eager_below)
    if isinstance(result, np.ndarray):
        return derive(x, result, config.current().eager_below)
    return result


def on_device(x: Handle, mask: Handle) -> Any:
    """Return the elements that a mask selects, gathered on a device; None if the host has to gather them."""
    if x._small is not None or mask._small is not None:
        return None
    head = x._store.family
    if head.remote is None and getattr(head.dirty, "device", None) is None:
        return None
    return device_backend().selected(x, mask)


def compress(a: NDArray, mask: NDArray) -> NDArray:
    """Return ``a[mask]`` by a mask of the first axes, as a new array."""
    plain = a.shape[: mask.ndim] == mask.shape and a.flags.c_contiguous and compilable(a)
    if not plain or policy.eager(a.size, policy.GATHER):
        return a[mask]
    rows = a.reshape(mask.size, *a.shape[mask.ndim :])
    return rows.take(mask.reshape(-1).nonzero()[0], 0)  # without branches: several times as fast


def gather(x: Handle, a: NDArray, mask: NDArray) -> Any:
    """Return the elements of ``a``, a plain view of ``x``, that a mask selects."""
    result, below = compress(a, mask), config.current().eager_below
    fresh = x._store.char and result.flags.c_contiguous
    return wrap_new(type(x), result, below) if fresh else derive(x, result, below)


def put(x: Handle, key: Any, value: Any) -> None:
    """Execute ``x[key] = value``: record it, or run it in NumPy."""
    if isinstance(value, Handle) and value._device is not x._device:
        common_device(None, x, value)
        value = value._evaluated()
    _refuse_other_devices(x, key)
    if x._small is not None:
        x._small[plain_key(key)] = operands.plain_of(value)
        return
    if not x._store.char:  # an array of objects stores wrapped arrays as they are
        if not window.is_basic(key):
            operands.note_fallback("setitem", (x,))
        x._writable()[plain_key(key)] = value if x.dtype.kind == "O" else operands.plain_of(value)
        return
    if x._readonly:  # NumPy raises the error
        x._evaluated()[evaluated_key(x, key)] = operands.plain_of(value)
    if not window.is_basic(key):
        if masked_assignment.assign(x, key, value):
            return
        if (
            communicator() is not None
            and _call_on_blocks(operator.setitem, x, key, value) is not NotImplemented
        ):
            return
        key = plain_key(key)
        if not window.is_basic(key):
            operands.note_fallback("setitem", (x,))
            value = operands.plain_of(value)
            x._writable()[key] = value
            return
    target: Any = None
    if not _is_element(x, key):
        target = get(x, key)
    elif not x._idle() and operands.shape_of(value) == () and communicator() is not None:  # for its owner
        target = large(type(x), x._store, *window.getitem(x._shape, x._window(), key))
    if not isinstance(target, Handle):  # one element
        value = operands.plain_of(value)
        x._writable()[key] = value
        return
    plain = target._eager_view()
    if plain is not None:
        source = value
        if isinstance(value, Handle):
            source = value._eager_view() if value._small is None else value._small
        if source is not None:
            plain[...] = source
            return
    if isinstance(value, Handle) and 0 in target.shape:  # too few to gather for
        np.empty(target.shape, target.dtype)[...] = np.broadcast_to(np.zeros((), value.dtype), value.shape)
        return
    recorder.assign(target, value)
