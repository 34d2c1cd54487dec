"""Distributed `numpy.repeat`, `tile`, `fftshift`, `delete`, `packbits` and `unpackbits`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.comm.algorithms import bit_packing, joining, take
from dcarray.comm.algorithms.fancy_indexing import resolve_key, write_elements
from dcarray.comm.algorithms.mask_selection import nonzero
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import row_layout
from dcarray.core.backend import NOT_DISTRIBUTED
from dcarray.distributed.function_dispatch import DISTRIBUTED, dist_array_of


def _repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    x = dist_array_of(a)
    if x is None or not x.ndim or not isinstance(repeats, (int, np.integer)) or repeats < 0:
        return NOT_DISTRIBUTED
    repeats = int(repeats)
    if axis is None:
        return joining.repeat(x.ravelled(), repeats, 0)
    return joining.repeat(x, repeats, axis) if _within(axis, x.ndim) else NOT_DISTRIBUTED


def _tile(A: Any, reps: Any) -> Any:
    x = dist_array_of(A)
    times = (reps,) if type(reps) is int else reps
    if x is None or not x.ndim or not isinstance(times, (tuple, list)):
        return NOT_DISTRIBUTED
    if any(type(n) is not int or n < 0 for n in times):
        return NOT_DISTRIBUTED
    return joining.tile(x, times)


def _shifted(inverse: bool) -> Callable[..., Any]:
    """The implementation of `numpy.fft.fftshift` or its inverse."""

    def implementation(x: Any, axes: Any = None) -> Any:
        given = dist_array_of(x)
        if given is None or not given.ndim:
            return NOT_DISTRIBUTED
        along = range(given.ndim) if axes is None else (axes,) if type(axes) is int else axes
        if not isinstance(along, (range, tuple, list)) or not all(_within(a, given.ndim) for a in along):
            return NOT_DISTRIBUTED
        half = [given.shape[a] // 2 for a in along]
        return (
            joining.roll(given, [-n for n in half] if inverse else half, list(along))
            if half
            else NOT_DISTRIBUTED
        )

    return implementation


def _delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    """`numpy.delete` at integers, as a selection by mask."""
    x, at = (
        dist_array_of(arr),
        dist_array_of(np.asarray(obj) if isinstance(obj, (int, list, tuple, np.integer)) else obj),
    )
    if x is None or at is None or not x.ndim or at.dtype.kind not in "iu" or at.ndim > 1:
        return NOT_DISTRIBUTED
    if axis is None:
        x, axis = x.ravelled(), 0
    if not _within(axis, x.ndim):
        return NOT_DISTRIBUTED
    n = x.shape[axis]
    if isinstance(obj, (int, np.integer)) and not -n <= obj < n:
        raise IndexError(f"index {obj} is out of bounds for axis {axis % x.ndim} with size {n}")
    layout = row_layout((n,), x.comm.size)
    kept = DistArray(x.comm, layout, np.ones(layout.local_shape(x.comm.rank), np.bool_))
    places = resolve_key((n,), [at if at.ndim else at.reshaped((1,))], x.comm).positions
    write_elements(kept, places, np.zeros(places.shape, np.bool_))
    return take.take(x, nonzero(kept)[0], axis % x.ndim)


def _packbits(a: Any, axis: Any = None, bitorder: Any = "big") -> Any:
    x = dist_array_of(a)
    if x is None or not x.ndim or x.dtype.kind not in "biu" or not _line(axis, x.ndim, bitorder):
        return NOT_DISTRIBUTED
    return (
        bit_packing.packbits(x.ravelled(), 0, bitorder)
        if axis is None
        else bit_packing.packbits(x, axis % x.ndim, bitorder)
    )


def _unpackbits(a: Any, axis: Any = None, count: Any = None, bitorder: Any = "big") -> Any:
    x = dist_array_of(a)
    if x is None or not x.ndim or x.dtype != np.uint8 or not _line(axis, x.ndim, bitorder):
        return NOT_DISTRIBUTED
    if axis is None:
        x, axis = x.ravelled(), 0
    if count is not None and (x.ndim == 1 or type(count) is not int):
        return NOT_DISTRIBUTED
    return bit_packing.unpackbits(x, axis % x.ndim, count, bitorder)


def _line(axis: Any, ndim: int, bitorder: Any) -> bool:
    return bitorder in ("big", "little") and (axis is None or _within(axis, ndim))


def _within(axis: Any, ndim: int) -> bool:
    return isinstance(axis, (int, np.integer)) and -ndim <= operator.index(axis) < ndim


DISTRIBUTED.update(
    {
        np.repeat: _repeat,
        np.tile: _tile,
        np.fft.fftshift: _shifted(False),
        np.fft.ifftshift: _shifted(True),
        np.delete: _delete,
        np.packbits: _packbits,
        np.unpackbits: _unpackbits,
    }
)
