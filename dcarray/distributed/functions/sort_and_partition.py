"""Distributed `numpy.sort`, `argsort`, `partition` and `argpartition`."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.comm.algorithms import sorting
from dcarray.comm.algorithms.along_axis import apply_along_axis
from dcarray.comm.algorithms.unique import all_differ
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.distributed.function_dispatch import DISTRIBUTED, dist_operand, require, required_axis

_SORTED = "?bBhHiIlLqQefdgFD"
_STABLE = ("stable", "mergesort")


def _operand(a: Any, axis: Any, order: Any) -> tuple[DistArray, int, bool]:
    """Return an array, an axis of it, and whether it is a vector that is cut."""
    x = dist_operand(a)
    require(order is None and x.dtype.char in _SORTED)
    if axis is None and x.ndim:
        x, axis = x.ravel(), 0
    return x, required_axis(axis, x.ndim), x.ndim == 1 and x.layout.is_cut(0)


def _sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    x, at, cut = _operand(a, axis, order)
    if cut:
        np.sort(np.empty(0, x.dtype), kind=kind, stable=stable)  # NumPy's error for a bad kind
        return sorting.sorted_values(x)
    return apply_along_axis(x, at, lambda lines: np.sort(lines, axis=at, kind=kind, stable=stable))


def _argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    x, at, cut = _operand(a, axis, order)
    if cut:
        np.argsort(np.empty(0, x.dtype), kind=kind, stable=stable)  # NumPy's error for a bad kind
        values, places = sorting.sort_1d(x)
        # without stability the order of equal elements is undefined
        require(kind in _STABLE or stable or all_differ(values))
        return places
    return apply_along_axis(x, at, lambda lines: np.argsort(lines, axis=at, kind=kind, stable=stable))


def _partition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    x, at, cut = _operand(a, axis, order)
    places = _places(kth, x.shape[at])
    if cut:
        return sorting.sorted_values(x)
    return apply_along_axis(x, at, lambda lines: np.partition(lines, places, axis=at, kind=kind))


def _argpartition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    x, at, cut = _operand(a, axis, order)
    places = _places(kth, x.shape[at])
    if cut:
        return sorting.sort_1d(x)[1]
    return apply_along_axis(x, at, lambda lines: np.argpartition(lines, places, axis=at, kind=kind))


def _places(kth: Any, length: int) -> Any:
    """Return the non-negative positions ``kth`` at which lines are partitioned; NumPy raises the error for
    invalid ones."""
    places = dist_operand(kth, (int, list, tuple)).gather()
    require(places.dtype.kind in "iu" and places.ndim < 2)
    require(((places >= -length) & (places < length)).all())
    return places


DISTRIBUTED.update(
    {np.sort: _sort, np.argsort: _argsort, np.partition: _partition, np.argpartition: _argpartition}
)
