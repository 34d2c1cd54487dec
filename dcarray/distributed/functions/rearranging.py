"""Distributed `numpy.repeat`, `tile`, `fftshift`, `delete`, `packbits` and `unpackbits`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.comm.algorithms import bit_packing, joining
from dcarray.comm.algorithms.fancy_indexing import resolve_key, write_elements
from dcarray.comm.algorithms.mask_selection import nonzero
from dcarray.comm.algorithms.take import take
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import row_layout
from dcarray.distributed.function_dispatch import DISTRIBUTED, dist_operand, require, required_axis


def _operand(value: Any, axis: Any) -> tuple[DistArray, int]:
    """Return an array and an axis of it; with None the elements in C order."""
    x = dist_operand(value)
    require(x.ndim)
    return (x.ravel(), 0) if axis is None else (x, required_axis(axis, x.ndim))


def _repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    require(isinstance(repeats, (int, np.integer)) and repeats >= 0)
    x, at = _operand(a, axis)
    return joining.repeat(x, int(repeats), at)


def _tile(A: Any, reps: Any) -> Any:
    x, times = dist_operand(A), (reps,) if type(reps) is int else reps
    require(x.ndim and isinstance(times, (tuple, list)) and all(type(n) is int and n >= 0 for n in times))
    return joining.tile(x, times)


def _fftshift(inverse: bool) -> Callable[..., Any]:
    """Return the implementation of `numpy.fft.fftshift` or its inverse."""

    def implementation(x: Any, axes: Any = None) -> Any:
        given = dist_operand(x)
        along = range(given.ndim) if axes is None else (axes,) if type(axes) is int else axes
        require(isinstance(along, (range, tuple, list)) and along)
        at = [required_axis(a, given.ndim) for a in along]
        half = [given.shape[a] // 2 for a in at]
        return joining.roll(given, [-n for n in half] if inverse else half, at)

    return implementation


def _delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    """`numpy.delete` at integers, as a selection by mask."""
    at = dist_operand(obj, (int, list, tuple, np.integer))
    require(at.dtype.kind in "iu" and at.ndim < 2)
    x, along = _operand(arr, axis)
    n = x.shape[along]
    if isinstance(obj, (int, np.integer)) and not -n <= obj < n:
        raise IndexError(f"index {obj} is out of bounds for axis {along} with size {n}")
    layout = row_layout((n,), x.comm.size)
    kept = DistArray(x.comm, layout, np.ones(layout.local_shape(x.comm.rank), np.bool_))
    places = resolve_key((n,), [at if at.ndim else at.reshape((1,))], x.comm).positions
    write_elements(kept, places, np.zeros(places.shape, np.bool_))
    return take(x, nonzero(kept)[0], along)


def _packbits(a: Any, axis: Any = None, bitorder: Any = "big") -> Any:
    require(bitorder in ("big", "little"))
    x, at = _operand(a, axis)
    require(x.dtype.kind in "biu")
    return bit_packing.packbits(x, at, bitorder)


def _unpackbits(a: Any, axis: Any = None, count: Any = None, bitorder: Any = "big") -> Any:
    require(bitorder in ("big", "little"))
    x, at = _operand(a, axis)
    require(x.dtype == np.uint8 and (count is None or (x.ndim > 1 and type(count) is int)))
    return bit_packing.unpackbits(x, at, count, bitorder)


DISTRIBUTED.update(
    {
        np.repeat: _repeat,
        np.tile: _tile,
        np.fft.fftshift: _fftshift(False),
        np.fft.ifftshift: _fftshift(True),
        np.delete: _delete,
        np.packbits: _packbits,
        np.unpackbits: _unpackbits,
    }
)
