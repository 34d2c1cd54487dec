"""Indexing of arrays on devices by arrays of integers, ``x[:, i, j]``, recorded like any other operation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.core.handle import Handle, as_class
from dcarray.core.store import memory
from dcarray.ir.ops import COUNTED, FROM_END, KEPT
from dcarray.recording.operands import commit, operand, shape_of
from dcarray.recording.recorder import result_of
from dcarray.recording.session import LOCK, recording, recording_for

from .buffer import DeviceBuffer

__all__ = ["kind_of_index", "limits", "record", "taken"]


def taken(x: Any, key: tuple[Any, ...]) -> Any:
    """Return ``x[key]`` of a large array on a device, for a key with arrays of integers.

    Returns
    -------
    ndarray or NotImplemented
        NotImplemented if the host has to compute it: the result is empty, the key has parts other than
        integers, slices and adjacent arrays of integers, or NumPy would raise an error.
    """
    chosen = [n for n, k in enumerate(key) if not isinstance(k, slice)]
    if not x._store.char or len(key) > len(x._shape) or not all(_is_index(key[n]) for n in chosen):
        return NotImplemented
    places = [key[n] for n in chosen if type(key[n]) is not int]
    if not places or chosen[-1] - chosen[0] >= len(chosen):
        return NotImplemented
    basic = tuple([k if type(k) in (int, slice) else slice(None) for k in key])
    if any(type(k) is int for k in basic) or any(k != slice(None) for k in basic):
        x = x[basic]
    if not isinstance(x, Handle) or x._small is not None:
        return NotImplemented
    first, count = chosen[0], len(places)
    try:
        spread = np.broadcast_shapes(*map(shape_of, places))
    except ValueError:
        return NotImplemented
    shape = (*x._shape[:first], *spread, *x._shape[first + count :])
    if not math.prod(shape):
        return NotImplemented
    kinds = [KEPT] * len(x._shape)
    for axis, place in enumerate(places, first):
        kind = kind_of_index(place, x._shape[axis])
        if kind is None:
            return NotImplemented
        kinds[axis] = kind
    return record(type(x), x, places, shape, kinds)


def kind_of_index(place: Any, extent: int) -> str | None:
    """Return how indices of an axis count (`dcarray.ir.ops`): `COUNTED` if none is negative, else `FROM_END`;
    None if one of them is out of bounds."""
    low, high = limits(place)
    if low < -extent or high >= extent:
        return None
    return COUNTED if low >= 0 else FROM_END


def record(cls: Any, x: Any, places: list[Any], shape: tuple[int, ...], kinds: Sequence[str]) -> Any:
    """Record indexing of ``x`` by the arrays of integers ``places``, all in bounds; return the result.

    ``shape`` is the result's; ``kinds`` says how each axis of the array is indexed (see `dcarray.ir.ops`).
    """
    with LOCK, recording_for(cls._device), recording() as rec:
        args = [operand(rec, one, None, one.dtype.char) for one in (x, *places)]
        result, slot, _ = result_of(cls, rec, shape, x.dtype.char)
        commit(rec, ("call", "take", (slot,), tuple(args), (("key", "".join(kinds)),)))
    return result


def _is_index(key: Any) -> bool:
    """Whether a part of a key is an int, or an array of integers, with axes, that int64 can hold."""
    if isinstance(key, Handle) or type(key) is np.ndarray:
        return bool(shape_of(key)) and key.dtype.kind in "iu" and key.dtype.char not in "LQ"
    return type(key) is int


def limits(place: Any) -> tuple[int, int]:
    """Return the least and the greatest element of an array of integers.

    If the array is the whole of a device buffer, they are kept with the buffer until it is written.
    """
    if not isinstance(place, Handle):
        return int(place.min()), int(place.max())
    if place._small is not None:
        return int(place._small.min()), int(place._small.max())
    head = place._store.family
    if head.dirty is not None and not head.dirty.done:
        head.dirty.run(head)
    held = head.remote
    if not isinstance(held, DeviceBuffer):
        plain = place._evaluated()
        return int(plain.min()), int(plain.max())
    is_whole = place._index is None and place._store is head and not held.exposed
    if is_whole and held.limits is not None:
        return held.limits
    if held.ahead:
        with recording_for(held.device):
            there = as_class(ndarray, place)
            ends = int(there.min()), int(there.max())
    else:
        plain = memory(head) if is_whole else place._evaluated()
        ends = int(plain.min()), int(plain.max())
    if is_whole:
        held.limits = ends
    return ends
