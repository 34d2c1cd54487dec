"""Distributed reads by integer arrays and masks: ``x[key]``, `numpy.take`, `nonzero`, `compress` and
others."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from dcarray.comm.algorithms import mask_selection
from dcarray.comm.algorithms import take as by_place
from dcarray.comm.algorithms.fancy_indexing import read_elements, resolve_key
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.layouts import Layout, Whole
from dcarray.core.backend import NOT_DISTRIBUTED
from dcarray.distributed.function_dispatch import DISTRIBUTED, dist_array_of, valid_axis

from .index_keys import along_axis, parsed


def _index(indices: Any) -> DistArray | None:
    """An integer array with at least one axis; None for anything else."""
    if type(indices) is list:
        indices = np.asarray(indices)
    index = dist_array_of(indices)
    return index if index is not None and index.ndim and index.dtype.kind in "iu" else None


def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
    x, index = dist_array_of(a), _index(indices)
    if x is None or index is None or out is not None or mode != "raise":
        return NOT_DISTRIBUTED
    at = 0 if axis is None and x.ndim == 1 else valid_axis(axis, x.ndim)
    return NOT_DISTRIBUTED if at is None else by_place.take(x, index, at)


def _getitem(x: Any, key: Any) -> Any:
    whole = dist_array_of(x)
    wanted = None if whole is None else parsed(whole.shape, key)
    if whole is None or wanted is None:
        return NOT_DISTRIBUTED
    if wanted.mask is not None:
        return mask_selection.select(whole, wanted.mask)
    if wanted.rows is not None:
        return by_place.take(whole, *wanted.rows)
    assert wanted.items is not None
    where = resolve_key(whole.shape, wanted.items, whole.comm)
    return DistArray(whole.comm, where.layout, read_elements(whole, where.positions))


def _nonzero(a: Any) -> Any:
    x = dist_array_of(a)
    return NOT_DISTRIBUTED if x is None or not x.ndim else mask_selection.nonzero(x)


def _where(condition: Any, *rest: Any) -> Any:
    return NOT_DISTRIBUTED if rest else _nonzero(condition)


def _flatnonzero(a: Any) -> Any:
    x = dist_array_of(a)
    return NOT_DISTRIBUTED if x is None or not x.ndim else mask_selection.nonzero(x.ravelled())[0]


def _argwhere(a: Any) -> Any:
    found = _nonzero(a)
    if found is NOT_DISTRIBUTED:
        return NOT_DISTRIBUTED
    first = found[0].layout
    layout = Layout((*first.shape, len(found)), first.grid, [*first.axes, Whole()])
    return DistArray(found[0].comm, layout, np.stack([at.local for at in found], axis=-1))


def _compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    mask, x = dist_array_of(np.asarray(condition) if type(condition) is list else condition), dist_array_of(a)
    if mask is None or x is None or mask.ndim != 1 or not x.ndim or out is not None:
        return NOT_DISTRIBUTED
    at = 0 if axis is None else valid_axis(axis, x.ndim)
    if at is None:
        return NOT_DISTRIBUTED
    return by_place.take(x if axis is not None else x.ravelled(), mask_selection.nonzero(mask)[0], at)


def _extract(condition: Any, arr: Any) -> Any:
    mask, x = dist_array_of(condition), dist_array_of(arr)
    if mask is None or x is None or not mask.ndim or not x.ndim:
        return NOT_DISTRIBUTED
    if mask.shape == x.shape and mask.dtype == np.bool_:
        return mask_selection.select(x, mask)
    return by_place.take(x.ravelled(), mask_selection.nonzero(mask.ravelled())[0], 0)


def _take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    x, index = dist_array_of(arr), dist_array_of(indices)
    at = None if x is None else valid_axis(axis, x.ndim)
    key = None if x is None or index is None or at is None else along_axis(x.shape, index, at)
    if x is None or key is None:
        return NOT_DISTRIBUTED
    where = resolve_key(x.shape, key, x.comm)
    return DistArray(x.comm, where.layout, read_elements(x, where.positions))


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
