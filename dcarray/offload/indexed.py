"""NumPy's indexing functions, and ``x[key]`` and its assignment, by kernels of a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.core.handle import Handle
from dcarray.ir.ops import ALONG

from .function_table import bounds, does, extremes, host, in_bounds, numbers, require, there, tried
from .kernel_calls import Kernels, is_large, row
from .taking import record, taken

__all__ = ["add_at", "item", "set_items"]


# ---- indexing ------------------------------------------------------------------------------------------
@does(np.nonzero)
def _nonzero(k: Kernels, a: Any) -> Any:
    require(is_large(a) and a.ndim > 0)
    at, indices = k.positions(a != 0), []
    for extent in reversed(a.shape[1:]):
        indices.append(at % extent)
        at = at // extent
    return (at, *reversed(indices))


@does(np.flatnonzero)
def _flatnonzero(k: Kernels, a: Any) -> Any:
    return _nonzero(k, row(a))[0]


@does(np.argwhere)
def _argwhere(k: Kernels, a: Any) -> Any:
    return np.stack(_nonzero(k, a), axis=1)


@does(np.where)
def _where(k: Kernels, condition: Any, /, *others: Any) -> Any:
    require(not others)
    return _nonzero(k, condition)


@does(np.extract)
def _extract(k: Kernels, condition: Any, arr: Any) -> Any:
    require(is_large(condition) and is_large(arr) and arr.size >= condition.size)
    return k.taken(row(arr), k.positions(condition != 0), 0)


@does(np.compress)
def _compress(k: Kernels, condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    require(out is None and axis is None and condition.ndim == 1)
    return _extract(k, condition, a)


@does(np.repeat)
def _repeat(k: Kernels, a: Any, repeats: Any, axis: Any = None) -> Any:
    a, counts = numbers(k, a, "biufc"), there(k, repeats, "iu", 1)
    require(axis is None and counts.size == a.size and extremes(counts)[0] >= 0)
    return k.taken(row(a), k.expanded(np.cumsum(counts, dtype=np.int64)), 0)


@does(np.take)
def _take(k: Kernels, a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    a, at = numbers(k, a, "biufc"), numbers(k, indices, "iu")
    require(is_large(a) or is_large(at))
    require(out is None and mode == "raise" and (axis is None or type(axis) is int))
    if axis is None:
        a, axis = row(a), 0
    axis = range(a.ndim)[axis]
    elements = k.taken(a, at if at.ndim else at.reshape(1), axis, bounds(at, a.shape[axis]))
    elements = elements.reshape(*a.shape[:axis], *at.shape, *a.shape[axis + 1 :])
    return elements if elements.ndim else host(elements)[()]


@does(np.take_along_axis)
def _take_along_axis(k: Kernels, arr: Any, indices: Any, axis: Any = -1) -> Any:
    a, at, axis = _along_axis(k, arr, indices, axis)
    kinds = [ALONG] * a.ndim
    kinds[axis] = bounds(at, a.shape[axis])
    return record(k.cls, a, [at], at.shape, kinds)


@does(np.put_along_axis)
def _put_along_axis(k: Kernels, arr: Any, indices: Any, values: Any, axis: Any) -> None:
    x, at, axis = _along_axis(k, arr, indices, axis)
    require(is_large(x) and x._index is None)
    bounds(at, x.shape[axis])
    whole: Any = 0
    for n, extent in enumerate(x.shape):
        own = np.arange(extent).reshape([-1 if m == n else 1 for m in range(x.ndim)])
        whole = whole * extent + (np.where(at < 0, at + extent, at) if n == axis else own)
    if np.ndim(values):
        values = row(np.broadcast_to(values, at.shape))
    _assign(k, row(x), whole.reshape(-1), values)


def _along_axis(k: Kernels, arr: Any, indices: Any, axis: Any) -> tuple[Any, Any, int]:
    """Return the arguments of ``take_along_axis``, checked: the array, the indices, and the axis."""
    require(type(axis) is int and arr.ndim == indices.ndim)
    require(is_large(arr) or is_large(indices))
    a, at, axis = numbers(k, arr, "biufc"), numbers(k, indices, "iu"), range(arr.ndim)[axis]
    require(a.shape[:axis] == at.shape[:axis] and a.shape[axis + 1 :] == at.shape[axis + 1 :])
    return a, at, axis


def _places(k: Kernels, shape: tuple[int, ...], key: Any) -> tuple[Any, int]:
    """Return the indices that a key selects along an axis, and the axis; -1 for the array in one row."""
    if type(key) is not tuple:
        key = (key,)
    arrays = [n for n, one in enumerate(key) if not (type(one) is slice and one == slice(None))]
    require(arrays and len(key) <= len(shape))
    at = key[arrays[0]]
    require(isinstance(at, (Handle, np.ndarray, list)) and np.ndim(at))
    if len(arrays) == 1 and _is_mask(at):
        require(is_large(at) and at.ndim == 1 and at.shape == shape[arrays[0] : arrays[0] + 1])
        return k.positions(at), arrays[0]
    if len(arrays) == 1:
        return in_bounds(k, at, shape[arrays[0]]), arrays[0]
    require(len(arrays) == len(shape))
    whole = 0
    differ = len({np.shape(one) for one in key}) > 1
    for extent, one in zip(shape, np.broadcast_arrays(*key) if differ else key, strict=True):
        one = in_bounds(k, one, extent)
        whole = whole * extent + np.where(one < 0, one + extent, one)
    return whole, -1


def _is_mask(key: Any) -> bool:
    return isinstance(key, (Handle, np.ndarray)) and key.dtype.kind == "b"


@does(np.put)
def _put(k: Kernels, a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    require(mode == "raise" and is_large(a) and a._index is None)
    _assign(k, row(a), ind, v)


def item(x: Any, key: Any) -> Any:
    """Return ``x[key]`` for a key with indices or masks; NotImplemented if NumPy has to compute it."""
    key = [np.asarray(k) if type(k) is list else k for k in (key if type(key) is tuple else (key,))]
    for n, mask in enumerate(key):
        if _is_mask(mask):
            if not is_large(mask) or mask.shape != x.shape[n : n + 1]:
                return NotImplemented
            key[n] = tried(Kernels.positions, type(x), mask)
    return taken(x, tuple(key))


def set_items(cls: Any, x: Any, key: Any, value: Any) -> bool:
    """Do ``x[key] = value`` by kernels if possible; return whether it was done."""
    return tried(_assign, cls, x, key, value) is None


def _assign(k: Kernels, x: Any, key: Any, value: Any) -> None:
    is_mask = _is_mask(key) and key.ndim == x.ndim
    if is_mask:
        require(is_large(key) and key.shape == x.shape)
        at, axis = k.positions(key), -1
    else:
        at, axis = _places(k, x.shape, key)
    require(axis >= 0 or x._index is None)  # else its elements in one row are a copy
    flat, axis = (row(x), 0) if axis < 0 else (x, axis)
    values = value if isinstance(value, Handle) else np.asarray(value)
    require(values.ndim == 0 or values.shape == (*flat.shape[:axis], *at.shape, *flat.shape[axis + 1 :]))
    require(np.can_cast(values.dtype, x.dtype, "same_kind") or x.dtype.kind + values.dtype.kind == "if")
    values = values.astype(x.dtype)
    if not is_mask and values.ndim:
        at, order = _last_of_several(k, row(at), flat.shape[axis])
        values = values.reshape(*flat.shape[:axis], -1, *flat.shape[axis + 1 :])
        values = k.taken(values, order, axis)
    k.put(flat, at, values, axis)


def _last_of_several(k: Kernels, at: Any, extent: int) -> tuple[Any, Any]:
    """Return the different indices, and where each occurs last: NumPy's assignment keeps the last value."""
    keys, places = k.sorted(k.on_device(np.where(at < 0, at + extent, at)))
    last = k.fresh(keys.shape, bool)
    last[:-1], last[-1:] = keys[1:] != keys[:-1], True
    chosen = k.positions(last)
    return k.taken(keys, chosen, 0), k.taken(places, chosen, 0)


def add_at(cls: Any, x: Any, at: Any, value: Any) -> bool:
    """Do ``np.add.at(x, at, value)`` by kernels, in NumPy's order, if possible; return whether it is done."""
    return tried(_add_at, cls, x, at, value) is None


def _add_at(k: Kernels, x: Any, at: Any, value: Any) -> None:
    places, values = in_bounds(k, at, x.shape[0]), numbers(k, value, "biuf")
    require(x.ndim == 1 and places.ndim == 1 and values.shape in ((), places.shape))
    require(np.can_cast(values.dtype, x.dtype, "same_kind") and x.dtype.kind in "iuf" and x.dtype.char != "e")
    places = np.where(places < 0, places + x.shape[0], places)
    weights = values if values.ndim else np.full(places.shape, values, x.dtype)
    x[...] = k.grouped(x, places, weights.astype(x.dtype))
