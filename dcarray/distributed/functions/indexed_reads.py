"""Distributed reads by integer arrays and masks: ``x[key]``, `numpy.take`, `nonzero`, `compress`, ..."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from dcarray.comm.algorithms.fancy_indexing import read_elements, resolve_key
from dcarray.comm.algorithms.mask_selection import nonzero, select
from dcarray.comm.algorithms.take import take
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.layouts import Layout, Whole
from dcarray.distributed.function_dispatch import DISTRIBUTED, dist_operand, require, required_axis

from .index_keys import Item, parse_key, take_along_axis_key


def _with_axes(value: Any, convert: type | tuple[type, ...] = ()) -> DistArray:
    """Return the distributed form of an array; one without axes is declined."""
    x = dist_operand(value, convert)
    require(x.ndim)
    return x


def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
    x, index = dist_operand(a), _with_axes(indices, list)
    require(index.dtype.kind in "iu" and out is None and mode == "raise")
    return take(x, index, 0 if axis is None and x.ndim == 1 else required_axis(axis, x.ndim))


def _getitem(a: Any, key: Any) -> Any:
    x = dist_operand(a)
    parsed = parse_key(x.shape, key)
    if parsed.mask is not None:
        return select(x, parsed.mask)
    if parsed.rows is not None:
        return take(x, *parsed.rows)
    assert parsed.items is not None
    return _read(x, parsed.items)


def _read(x: DistArray, items: list[Item]) -> DistArray:
    where = resolve_key(x.shape, items, x.comm)
    return DistArray(x.comm, where.layout, read_elements(x, where.positions))


def _take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    x = dist_operand(arr)
    return _read(x, take_along_axis_key(x.shape, indices, axis))


def _nonzero(a: Any) -> Any:
    return nonzero(_with_axes(a))


def _where(condition: Any, *values: Any) -> Any:
    require(not values)
    return _nonzero(condition)


def _flatnonzero(a: Any) -> Any:
    return nonzero(_with_axes(a).ravel())[0]


def _argwhere(a: Any) -> Any:
    indices = _nonzero(a)
    first = indices[0].layout
    layout = Layout((*first.shape, len(indices)), first.grid, [*first.axes, Whole()])
    return DistArray(indices[0].comm, layout, np.stack([at.local for at in indices], axis=-1))


def _compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    mask, x = dist_operand(condition, list), _with_axes(a)
    require(mask.ndim == 1 and out is None)
    at = 0 if axis is None else required_axis(axis, x.ndim)
    return take(x if axis is not None else x.ravel(), nonzero(mask)[0], at)


def _extract(condition: Any, arr: Any) -> Any:
    mask, x = _with_axes(condition), _with_axes(arr)
    if mask.shape == x.shape and mask.dtype == np.bool_:
        return select(x, mask)
    return take(x.ravel(), nonzero(mask.ravel())[0], 0)


DISTRIBUTED.update(
    {
        np.take: _take,
        np.take_along_axis: _take_along_axis,
        np.nonzero: _nonzero,
        np.where: _where,
        np.flatnonzero: _flatnonzero,
        np.argwhere: _argwhere,
        np.compress: _compress,
        np.extract: _extract,
        operator.getitem: _getitem,
    }
)
