"""Distributed writes by integer arrays and masks: ``x[key] = y``, `numpy.put`, `copyto`, `ufunc.at` and
others.

Elements are sent to the ranks that own their places."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.comm.algorithms import mask_selection, take
from dcarray.comm.algorithms.fancy_indexing import (
    broadcast_local,
    check_values,
    mask_positions,
    read_elements,
    resolve_key,
    write_elements,
)
from dcarray.comm.algorithms.mask_selection import nonzero
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.transport.sparse_alltoall import allgather
from dcarray.core.backend import NOT_DISTRIBUTED
from dcarray.distributed.function_dispatch import DISTRIBUTED_WRITES, dist_array_of

from .index_keys import Key, along_axis, parsed

_NUMBERS = "biufc"

Write = Callable[["DistArray"], "DistArray"]


def _values(value: Any, dtype: np.dtype[Any]) -> DistArray | None:
    """The values to be written; None for unsupported ones."""
    if type(value) not in (ndarray, np.ndarray):
        if not isinstance(value, (bool, int, float, complex, np.generic, list, tuple)):
            return None
        # other values than arrays are converted to the dtype of the elements, which may raise NumPy's errors
        value = np.asarray(value, None if isinstance(value, np.generic) else dtype)
    return dist_array_of(value) if value.dtype.kind in _NUMBERS else None


def _setitem(x: Any, key: Any, value: Any) -> Write | Any:
    found, given = parsed(x.shape, key), _values(value, x.dtype)
    if found is None or given is None:
        return NOT_DISTRIBUTED
    if found.mask is not None and found.mask.ndim == len(x.shape) and given.ndim > 1:
        return NOT_DISTRIBUTED
    return _at(found, given)


def _at(key: Key, values: DistArray) -> Write:
    def write(x: DistArray) -> DistArray:
        if key.mask is not None:
            return mask_selection.assign(x, key.mask, _fitting(values, x.ndim - key.mask.ndim + 1))
        if key.rows is not None:
            index, axis = key.rows
            shape = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
            check_values(values.shape, shape)
            return take.put(x, index, axis, _fitting(values, len(shape)))
        assert key.items is not None
        where = resolve_key(x.shape, key.items, x.comm)
        check_values(values.shape, where.layout.shape)
        given = broadcast_local(_fitting(values, where.layout.ndim), where.layout)
        return write_elements(x, where.positions, given.astype(x.dtype, copy=False))

    return write


def _fitting(values: DistArray, ndim: int) -> DistArray:
    """Values without the leading axes of length 1 that the target does not have."""
    more = max(0, values.ndim - ndim)
    return values.reshaped(values.shape[more:]) if more else values


# ---- functions ---------------------------------------------------------------------------------------
def _cycled(values: DistArray, at: Any, dtype: np.dtype[Any]) -> Any:
    """The values at some places of their endless repetition."""
    return read_elements(values, at % int(np.prod(values.shape))).astype(dtype, copy=False)


def _put(a: Any, ind: Any, v: Any, mode: Any = "raise") -> Write | Any:
    index = np.asarray(ind) if isinstance(ind, (int, list, tuple, np.integer)) else ind
    place, values = dist_array_of(index), _values(v, a.dtype)
    if (
        place is None
        or values is None
        or place.dtype.kind not in "iu"
        or mode not in ("raise", "wrap", "clip")
    ):
        return NOT_DISTRIBUTED
    size = a.size
    if not size or 0 in values.shape or not np.can_cast(values.dtype, a.dtype, "safe"):
        return NOT_DISTRIBUTED

    def write(x: DistArray) -> DistArray:
        flat = place.ravelled() if place.ndim else place.reshaped((1,))
        if mode != "raise":
            given = flat.local.astype(np.int64, copy=False)
            limited = given % size if mode == "wrap" else np.clip(given, 0, size - 1)
            flat = type(flat)(flat.comm, flat.layout.without_halo(), limited)
        where = resolve_key((size,), [flat], x.comm)
        begin = where.layout.parts[0].to_global(x.comm.rank, 0)
        numbers = np.arange(begin, begin + where.positions.size)
        return write_elements(x, where.positions, _cycled(values, numbers, x.dtype))

    return write


def _masked(cycle_by_place: bool) -> Callable[..., Write | Any]:
    """The implementation of `numpy.putmask`, whose values repeat over all places, or of `numpy.place`, whose
    repeat over those that the mask selects."""

    def implementation(a: Any, mask: Any, vals: Any) -> Write | Any:
        where, values = dist_array_of(mask), _values(vals, a.dtype)
        if where is None or values is None or not where.ndim or where.dtype != np.bool_:
            return NOT_DISTRIBUTED
        if (
            np.prod(where.shape) != a.size
            or 0 in values.shape
            or not np.can_cast(values.dtype, a.dtype, "safe")
        ):
            return NOT_DISTRIBUTED

        def write(x: DistArray) -> DistArray:
            places = mask_positions(where)
            numbers = places
            if not cycle_by_place:
                counts = allgather(x.comm, np.int64(places.size))
                numbers = np.arange(places.size) + counts[: x.comm.rank].sum()
            return write_elements(x, places, _cycled(values, numbers, x.dtype))

        return write

    return implementation


def _copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> Write | Any:
    values, mask = _values(src, dst.dtype), dist_array_of(where)
    if values is None or mask is None or mask.dtype != np.bool_:
        return NOT_DISTRIBUTED
    if max(values.ndim, mask.ndim) > dst.ndim or not np.can_cast(values.dtype, dst.dtype, casting):
        return NOT_DISTRIBUTED
    try:
        fits = np.broadcast_shapes(dst.shape, mask.shape, values.shape) == dst.shape
    except ValueError:
        fits = False
    if not fits:  # although the blocks of some ranks may fit
        return NOT_DISTRIBUTED

    def write(x: DistArray) -> DistArray:
        bare = x.layout.without_halo()
        np.copyto(x.local, broadcast_local(values, bare), casting=casting, where=broadcast_local(mask, bare))
        return x

    return write


def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any = -1) -> Write | Any:
    index, given = dist_array_of(indices), _values(values, arr.dtype)
    if index is None or given is None or type(axis) is not int or not -arr.ndim <= axis < arr.ndim:
        return NOT_DISTRIBUTED
    items = along_axis(arr.shape, index, axis % arr.ndim)
    return NOT_DISTRIBUTED if items is None else _at(Key(items=items), given)


def _fill_diagonal(a: Any, val: Any, wrap: Any = False) -> Write | Any:
    values = _values(val, a.dtype)
    if a.ndim < 2 or (a.ndim > 2 and len(set(a.shape)) > 1) or values is None or 0 in values.shape:
        return NOT_DISTRIBUTED
    step = 1 + sum(int(np.prod(a.shape[k:])) for k in range(1, a.ndim))
    end = a.size if wrap or a.ndim > 2 else min(a.size, a.shape[1] ** 2)
    places = np.arange(0, end, step)

    def write(x: DistArray) -> DistArray:
        begin, stop = (places.size * (x.comm.rank + k) // x.comm.size for k in (0, 1))
        return write_elements(x, places[begin:stop], _cycled(values, np.arange(begin, stop), x.dtype))

    return write


def _accumulated(ufunc: np.ufunc, a: Any, key: Any, values: Any = None) -> Write | Any:
    """``ufunc.at(a, key, values)``."""
    found, given = parsed(a.shape, key), _values(values, a.dtype) if values is not None else None
    if found is None or given is None or ufunc.nin != 2:
        return NOT_DISTRIBUTED
    kinds = ufunc.resolve_dtypes((a.dtype, given.dtype, None))
    if kinds[0] != a.dtype or kinds[2] != a.dtype:
        return NOT_DISTRIBUTED

    def write(x: DistArray) -> DistArray:
        items: list[Any] = found.items or []
        if found.rows is not None:
            items = [slice(None)] * x.ndim
            items[found.rows[1]] = found.rows[0]
        elif found.mask is not None:
            items = [*nonzero(found.mask), *[slice(None)] * (x.ndim - found.mask.ndim)]
        where = resolve_key(x.shape, items, x.comm)
        check_values(given.shape, where.layout.shape)
        every = broadcast_local(_fitting(given, where.layout.ndim), where.layout)
        return write_elements(x, where.positions, every.astype(kinds[1], copy=False), ufunc.at)

    return write


DISTRIBUTED_WRITES.update(
    {
        operator.setitem: _setitem,
        np.put: _put,
        np.place: _masked(False),
        np.putmask: _masked(True),
        np.copyto: _copyto,
        np.fill_diagonal: _fill_diagonal,
        np.put_along_axis: _put_along_axis,
        np.ufunc.at: _accumulated,
    }
)
