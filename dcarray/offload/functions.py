"""NumPy's functions that count, search and sort, computed by kernels of a device."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .function_table import does, extremes, host, numbers, require, there
from .kernel_calls import Kernels, is_large, row

__all__ = ["in_rows"]


# ---- counting ------------------------------------------------------------------------------------------
@does(np.bincount)
def _bincount(k: Kernels, x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    x = there(k, x, "iu", 1)
    low, high = extremes(x)
    require(low >= 0 and x.dtype != np.uint64)
    if weights is not None:
        weights = numbers(k, weights, "biuf", 1)
        require(weights.shape == x.shape)
    return k.counted(x, max(int(high) + 1, operator.index(minlength)), None, weights)


@does(np.histogram)
def _histogram(
    k: Kernels, a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    a = there(k, a, "iuf")
    if weights is not None:
        weights = numbers(k, weights, "iuf")
        require(weights.shape == a.shape)
        if weights.dtype.kind == "f" and not _is_uniform(bins):
            require(np.isfinite(weights).all())  # NumPy subtracts running sums
    require(not isinstance(bins, str))
    if not _is_uniform(bins):
        edges = np.histogram_bin_edges(np.zeros(1), host(bins))
        common = np.result_type(edges.dtype, a.dtype)
    else:
        known = np.array(extremes(a) if range is None else (0,), a.dtype)
        edges = np.histogram_bin_edges(known, bins, range)
        common = edges.dtype
    require(common.kind in "iuf" and common.char != "e")
    heights = k.counted(row(a), edges.size - 1, edges.astype(common), _flat(weights))
    if weights is not None:
        heights = heights.astype(weights.dtype)
    if density:
        heights = heights / np.diff(edges).astype(float) / heights.sum()
    return heights, k.small(edges)


def _is_uniform(bins: Any) -> bool:
    return np.ndim(bins) == 0


def _flat(x: Any) -> Any:
    return None if x is None else row(x)


# ---- searching -----------------------------------------------------------------------------------------
@does(np.searchsorted)
def _searchsorted(k: Kernels, a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    a, v = numbers(k, a, "biuf", 1), numbers(k, v, "biuf")
    require(sorter is None and side in ("left", "right") and (is_large(a) or is_large(v)))
    places = k.searched(a, v, side == "right")
    return places if v.ndim else host(places)[()]


@does(np.digitize)
def _digitize(k: Kernels, x: Any, bins: Any, right: bool = False) -> Any:
    x, bins = there(k, x), numbers(k, bins, "biuf", 1)
    table = host(bins)
    if (table[1:] >= table[:-1]).all():
        return k.searched(bins, x, not right)
    require((table[1:] <= table[:-1]).all())
    return table.size - k.searched(table[::-1], x, bool(right))


@does(np.interp)
def _interp(
    k: Kernels, x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    x, xp, fp = there(k, x, "iuf"), numbers(k, xp, "iuf", 1), numbers(k, fp, "iuf", 1)
    require(period is None and xp.shape == fp.shape and xp.size > 1)
    x, xp, fp = (one.astype(np.float64) for one in (x, xp, fp))
    ends = np.array([0, xp.size - 1])
    (first, last), (begin, end) = (host(k.taken(table, ends, 0)) for table in (xp, fp))
    below = begin if left is None else np.float64(host(left))
    above = end if right is None else np.float64(host(right))
    j = np.clip(k.searched(xp, x, True) - 1, 0, xp.size - 2)
    x0, x1, y0, y1 = (k.taken(table, place, 0) for table in (xp, fp) for place in (j, j + 1))
    slope = (y1 - y0) / (x1 - x0)
    y = slope * (x - x0) + y0
    y = np.where(np.isnan(y), slope * (x - x1) + y1, y)
    y = np.where(np.isnan(y) & (y0 == y1), y0, y)
    y = np.where(x == x0, y0, y)
    y = np.where(x == last, end, y)
    y = np.where(x < first, below, np.where(x > last, above, y))
    return np.where(np.isnan(x), x, y)


@does(np.isin)
def _isin(
    k: Kernels, element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *,
    kind: Any = None,
) -> Any:  # fmt: skip
    x, table = there(k, element), numbers(k, test_elements, "biuf")
    require(kind in (None, "sort", "table") and (table.dtype.kind in "bui") == (x.dtype.kind in "bui"))
    table = row(table)
    table = k.sorted(table)[0] if is_large(table) else np.sort(host(table))
    at = np.minimum(k.searched(table, x, False), table.size - 1)
    nearest = k.taken(table, at, 0)
    return nearest != x if invert else nearest == x


# ---- sorting -------------------------------------------------------------------------------------------
@does(np.sort)
def _sort(
    k: Kernels, a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    require(order is None and kind in _KINDS)
    return in_rows(k, a, axis, lambda keys, places, length: keys)


@does(np.argsort)
def _argsort(
    k: Kernels, a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    require(order is None and kind in _KINDS)

    def where(keys: Any, places: Any, length: int) -> Any:
        if kind not in ("stable", "mergesort") and not stable:  # NumPy has equal ones in an order of its own
            require(not ((keys[..., 1:] == keys[..., :-1]) | (keys[..., 1:] != keys[..., 1:])).any())
        return places % length

    return in_rows(k, a, axis, where)


_KINDS = (None, "quicksort", "heapsort", "mergesort", "stable")


def in_rows(k: Kernels, a: Any, axis: Any, wanted: Callable[[Any, Any, int], Any]) -> Any:
    """Sort an array along an axis and return ``wanted(keys, places, length)``: of the sorted elements, the
    index in C order at which each of them was, and the length of the axis, which is the last one of both
    arrays."""
    x = there(k, a)
    if axis is None:
        x, axis = row(x), 0
    axis = range(x.ndim)[axis]
    x = np.moveaxis(x, axis, -1)
    shape, length = x.shape, x.shape[-1]
    keys, places = k.sorted(row(x))
    if len(shape) == 1:
        return wanted(keys, places, length)
    rows = k.sorted(places // length)[1]  # a second sort has the rows in order, and keeps the order in each
    keys, places = (k.taken(one, rows, 0).reshape(shape) for one in (keys, places))
    return np.moveaxis(wanted(keys, places, length), -1, axis).copy()


@does(np.lexsort)
def _lexsort(k: Kernels, keys: Any, axis: Any = -1) -> Any:
    first, *others = [there(k, key, ndim=1) for key in keys]
    require(all(key.shape == first.shape for key in others) and axis in (-1, 0))
    order = k.sorted(first)[1]
    for key in others:
        order = k.taken(order, k.sorted(k.taken(key, order, 0))[1], 0)
    return order


@does(np.unique)
def _unique(
    k: Kernels, ar: Any, return_index: bool = False, return_inverse: bool = False,
    return_counts: bool = False, axis: Any = None, *, equal_nan: bool = True, sorted: bool = True,
) -> Any:  # fmt: skip
    x = there(k, ar)
    require(axis is None)
    keys, places = k.sorted(row(x))
    new = keys[1:] != keys[:-1]
    if equal_nan:
        new &= (keys[1:] == keys[1:]) | (keys[:-1] == keys[:-1])
    first = k.fresh((x.size,), bool)
    first[:1], first[1:] = True, new
    begins = k.positions(first)
    results = [k.taken(keys, begins, 0)]
    if return_index:
        results.append(k.taken(places, begins, 0))
    if return_inverse:
        inverse = k.fresh((x.size,), np.int64)
        k.put(inverse, places, np.cumsum(first) - 1, 0)
        results.append(inverse.reshape(x.shape))
    if return_counts:
        ends = k.fresh((begins.size + 1,), np.int64)
        ends[:-1], ends[-1:] = begins, x.size
        results.append(np.diff(ends))
    return tuple(results) if len(results) > 1 else results[0]


@does(np.argmax)
def _argmax(k: Kernels, a: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
    return _first_extreme(k, a, axis, out, keepdims, np.max)


@does(np.argmin)
def _argmin(k: Kernels, a: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
    return _first_extreme(k, a, axis, out, keepdims, np.min)


def _first_extreme(k: Kernels, a: Any, axis: Any, out: Any, keepdims: bool, extreme: Any) -> Any:
    """Compute `numpy.argmax` or `numpy.argmin`, for ``extreme`` `numpy.max` or `numpy.min`: the number of
    elements before the first one that is the extreme or NaN."""
    x = there(k, a)
    require(out is None and type(keepdims) is bool and (axis is None or type(axis) is int))
    kept = (1,) * x.ndim if axis is None else None
    if axis is None:
        x, axis = row(x), 0
    chosen = (x == extreme(x, axis=axis, keepdims=True)) | (x != x)
    before = np.cumsum(chosen, axis=axis) == 0
    places = np.sum(before, axis=axis, keepdims=keepdims and kept is None)
    if keepdims and kept is not None:
        return places.reshape(kept)
    return places if places.ndim else host(places)[()]
