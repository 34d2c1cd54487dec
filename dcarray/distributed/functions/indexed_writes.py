"""Distributed writes by integer arrays and masks: ``x[key] = y``, `numpy.put`, `copyto`, `ufunc.at`, ...

Elements are sent to the ranks that own their places.
"""

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
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.transport.sparse_alltoall import allgather
from dcarray.distributed.function_dispatch import DISTRIBUTED_WRITES, dist_operand, require

from .index_keys import Key, parse_key, take_along_axis_key

Write = Callable[[DistArray], DistArray]


def _values(value: Any, dtype: np.dtype[Any]) -> DistArray:
    """Return the values to be written."""
    if type(value) not in (ndarray, np.ndarray):
        require(isinstance(value, (bool, int, float, complex, np.generic, list, tuple)))
        # other values than arrays are converted to the dtype of the elements, which may raise NumPy's errors
        value = np.asarray(value, None if isinstance(value, np.generic) else dtype)
    require(value.dtype.kind in "biufc")
    return dist_operand(value)


def _setitem(x: Any, key: Any, value: Any) -> Write:
    parsed, values = parse_key(x.shape, key), _values(value, x.dtype)
    require(parsed.mask is None or parsed.mask.ndim < len(x.shape) or values.ndim <= 1)
    return _assignment(parsed, values)


def _assignment(key: Key, values: DistArray) -> Write:
    def write(x: DistArray) -> DistArray:
        if key.mask is not None:
            return mask_selection.assign(x, key.mask, _drop_leading_axes(values, x.ndim - key.mask.ndim + 1))
        if key.rows is not None:
            index, axis = key.rows
            shape = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
            check_values(values.shape, shape)
            return take.put(x, index, axis, _drop_leading_axes(values, len(shape)))
        assert key.items is not None
        where = resolve_key(x.shape, key.items, x.comm)
        check_values(values.shape, where.layout.shape)
        own = broadcast_local(_drop_leading_axes(values, where.layout.ndim), where.layout)
        return write_elements(x, where.positions, own.astype(x.dtype, copy=False))

    return write


def _drop_leading_axes(values: DistArray, ndim: int) -> DistArray:
    """Return values without the leading axes of length 1 that the target does not have."""
    more = max(0, values.ndim - ndim)
    return values.reshape(values.shape[more:]) if more else values


def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any = -1) -> Write:
    items = take_along_axis_key(arr.shape, indices, axis)
    return _assignment(Key(items=items), _values(values, arr.dtype))


def _ufunc_at(ufunc: np.ufunc, a: Any, key: Any, values: Any = None) -> Write:
    require(values is not None and ufunc.nin == 2)
    parsed, given = parse_key(a.shape, key), _values(values, a.dtype)
    dtypes = ufunc.resolve_dtypes((a.dtype, given.dtype, None))
    require(dtypes[0] == dtypes[2] == a.dtype)

    def write(x: DistArray) -> DistArray:
        items: list[Any] = parsed.items or []
        if parsed.rows is not None:
            items = [slice(None)] * x.ndim
            items[parsed.rows[1]] = parsed.rows[0]
        elif parsed.mask is not None:
            every = [slice(None)] * (x.ndim - parsed.mask.ndim)
            items = [*mask_selection.nonzero(parsed.mask), *every]
        where = resolve_key(x.shape, items, x.comm)
        check_values(given.shape, where.layout.shape)
        own = broadcast_local(_drop_leading_axes(given, where.layout.ndim), where.layout)
        return write_elements(x, where.positions, own.astype(dtypes[1], copy=False), ufunc.at)

    return write


# ---- values that repeat ------------------------------------------------------------------------------
def _repeated_values(value: Any, dtype: np.dtype[Any]) -> DistArray:
    """Return values that are repeated as often as needed; they are not empty, and their dtype fits."""
    values = _values(value, dtype)
    require(values.size and np.can_cast(values.dtype, dtype, "safe"))
    return values


def _cycle(values: DistArray, numbers: Any, dtype: np.dtype[Any]) -> Any:
    """Return the elements with the positions ``numbers`` in the endless repetition of values."""
    return read_elements(values, numbers % values.size).astype(dtype, copy=False)


def _put(a: Any, ind: Any, v: Any, mode: Any = "raise") -> Write:
    place, size = dist_operand(ind, (int, list, tuple, np.integer)), a.size
    values = _repeated_values(v, a.dtype)
    require(place.dtype.kind in "iu" and mode in ("raise", "wrap", "clip") and size)

    def write(x: DistArray) -> DistArray:
        flat = place.ravel() if place.ndim else place.reshape((1,))
        if mode == "wrap":
            flat = flat.map(lambda at: at.astype(np.int64, copy=False) % size)
        elif mode == "clip":
            flat = flat.map(lambda at: np.clip(at.astype(np.int64, copy=False), 0, size - 1))
        where = resolve_key((size,), [flat], x.comm)
        begin = where.layout.parts[0].to_global(x.comm.rank, 0)
        numbers = np.arange(begin, begin + where.positions.size)
        return write_elements(x, where.positions, _cycle(values, numbers, x.dtype))

    return write


def _by_mask(cycle_by_place: bool) -> Callable[..., Write]:
    """Return the implementation of `numpy.putmask` or `numpy.place`.

    Values repeat over all places in the former, over those that the mask selects in the latter.
    """

    def implementation(a: Any, mask: Any, vals: Any) -> Write:
        where, values = dist_operand(mask), _repeated_values(vals, a.dtype)
        require(where.ndim and where.dtype == np.bool_ and where.size == a.size)

        def write(x: DistArray) -> DistArray:
            places = numbers = mask_positions(where)
            if not cycle_by_place:
                counts = allgather(x.comm, np.int64(places.size))
                numbers = np.arange(places.size) + counts[: x.comm.rank].sum()
            return write_elements(x, places, _cycle(values, numbers, x.dtype))

        return write

    return implementation


def _fill_diagonal(a: Any, val: Any, wrap: Any = False) -> Write:
    values = _values(val, a.dtype)
    require(values.size and a.ndim > 1 and (a.ndim == 2 or len(set(a.shape)) == 1))
    step = 1 + sum(int(np.prod(a.shape[k:])) for k in range(1, a.ndim))
    end = a.size if wrap or a.ndim > 2 else min(a.size, a.shape[1] ** 2)
    places = np.arange(0, end, step)

    def write(x: DistArray) -> DistArray:
        begin, stop = (places.size * (x.comm.rank + k) // x.comm.size for k in (0, 1))
        return write_elements(x, places[begin:stop], _cycle(values, np.arange(begin, stop), x.dtype))

    return write


def _copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> Write:
    values, mask = _values(src, dst.dtype), dist_operand(where)
    require(mask.dtype == np.bool_ and max(values.ndim, mask.ndim) <= dst.ndim)
    require(np.can_cast(values.dtype, dst.dtype, casting))
    # although the blocks of some ranks may fit
    require(np.broadcast_shapes(dst.shape, mask.shape, values.shape) == dst.shape)

    def write(x: DistArray) -> DistArray:
        layout = x.layout.without_halo()
        own, selected = broadcast_local(values, layout), broadcast_local(mask, layout)
        np.copyto(x.local, own, casting=casting, where=selected)
        return x

    return write


DISTRIBUTED_WRITES.update(
    {
        operator.setitem: _setitem,
        np.put: _put,
        np.place: _by_mask(False),
        np.putmask: _by_mask(True),
        np.copyto: _copyto,
        np.fill_diagonal: _fill_diagonal,
        np.put_along_axis: _put_along_axis,
        np.ufunc.at: _ufunc_at,
    }
)
