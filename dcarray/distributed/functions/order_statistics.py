"""Distributed sets, searches, medians, quantiles, `bincount` and `histogram`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.comm.algorithms import fourier
from dcarray.comm.algorithms.fancy_indexing import read_elements
from dcarray.comm.algorithms.reductions import normalised_axes, reduction, without_axes
from dcarray.comm.algorithms.unique import (
    map_local,
    searchsorted,
    sorted_with_count,
    sum_over_ranks,
    unique,
    unique_values,
)
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.transport.agreement import broadcast_object
from dcarray.comm.transport.call_location import caller
from dcarray.comm.transport.protocol import Communicator
from dcarray.comm.transport.sparse_alltoall import allgather
from dcarray.core.backend import NOT_DISTRIBUTED
from dcarray.distributed.function_dispatch import DISTRIBUTED, dist_array_of, is_distributed, valid_axis

_SORTED = "?bBhHiIlLqQefdg"
_COMPLEX = "FD"
_REAL = "?bBhHiIlLqQd"  # dtypes whose quantiles NumPy computes in float64


# ---- sets --------------------------------------------------------------------------------------------
def _unique(
    ar: Any, return_index: Any = False, return_inverse: Any = False, return_counts: Any = False,
    axis: Any = None, *, equal_nan: Any = True, sorted: Any = True,
) -> Any:  # fmt: skip
    x = dist_array_of(ar)
    if x is None or not x.ndim or not _compares(x) or (axis is not None and x.ndim > 1):
        return NOT_DISTRIBUTED
    if axis is not None and axis not in (0, -1):
        return NOT_DISTRIBUTED
    if not (return_index or return_inverse or return_counts):
        return unique_values(x, bool(equal_nan))
    found = unique(x, bool(equal_nan))
    wanted = (True, return_index, return_inverse, return_counts)
    return tuple(one for one, asked in zip(found, wanted, strict=True) if asked)


def _compares(x: DistArray) -> bool:
    """Whether sorting brings equal elements together.  Not with complex NaNs: `numpy.unique` takes all of
    them for equal, and gives any one."""
    if x.dtype.char in _COMPLEX:
        return not allgather(x.comm, np.bool_(np.isnan(x.local).any())).any()
    return x.dtype.char in _SORTED


def _searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    if not isinstance(v, (ndarray, np.ndarray)):
        v = np.asarray(v)
    line, values = dist_array_of(a), dist_array_of(v)
    if (
        line is None
        or values is None
        or line.ndim != 1
        or sorter is not None
        or side not in ("left", "right")
    ):
        return NOT_DISTRIBUTED
    if any(x.dtype.char not in _SORTED + _COMPLEX for x in (line, values)):
        return NOT_DISTRIBUTED
    return searchsorted(line, values, side)


def _isin(
    element: Any, test_elements: Any, assume_unique: Any = False, invert: Any = False, *, kind: Any = None
) -> Any:
    x = dist_array_of(element)
    if x is None or not is_distributed(test_elements):
        return _of_each(np.isin, 0)(
            element, test_elements, assume_unique=assume_unique, invert=invert, kind=kind
        )
    some = dist_array_of(test_elements)
    if some is None or some.dtype != x.dtype or not math.prod(some.shape) or not _compares(some):
        return NOT_DISTRIBUTED
    kinds = unique_values(some)
    places = searchsorted(kinds, x, "left")
    like = read_elements(kinds, np.minimum(places.local, kinds.shape[0] - 1))
    there = DistArray(x.comm, places.layout, like == x.local)
    return map_local(there, np.logical_not) if invert else there


def _of_each(function: Callable[..., Any], which: int) -> Callable[..., Any]:
    """The implementation of a function that is elementwise in argument ``which``, with the others
    replicated."""

    def implementation(*args: Any, **kwargs: Any) -> Any:
        x = dist_array_of(args[which]) if len(args) > which else None
        rest = [a for k, a in enumerate(args) if k != which]
        if x is None or any(map(is_distributed, (*rest, *kwargs.values()))):
            return NOT_DISTRIBUTED
        plain = [np.asarray(a) if type(a) is ndarray else a for a in rest]
        named = {k: np.asarray(a) if type(a) is ndarray else a for k, a in kwargs.items()}
        return map_local(x, lambda own: function(*plain[:which], own, *plain[which:], **named))

    return implementation


def _round(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    """Of complex numbers, and of what no kernel rounds."""
    x = dist_array_of(a)
    if x is None or out is not None or x.dtype.kind not in "biufc":
        return NOT_DISTRIBUTED
    return map_local(x, lambda own: np.round(own, decimals))


# ---- medians and quantiles ---------------------------------------------------------------------------
def _median(skips: bool) -> Callable[..., Any]:
    function: Any = np.nanmedian if skips else np.median

    def implementation(
        a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False
    ) -> Any:
        x = dist_array_of(a)
        if (
            x is None
            or out is not None
            or x.dtype.char not in _SORTED
            or keepdims not in (False, np._NoValue)
        ):
            return NOT_DISTRIBUTED
        if axis is not None and x.ndim > 1:
            return _by_lines(x, axis, lambda lines, at: function(lines, axis=at, keepdims=True))
        if not math.prod(x.shape) or axis not in (None, 0, -1):
            return NOT_DISTRIBUTED
        values, n = _in_order(x, skips)
        return _scalar(x, function(_at(values, [(n - 1) // 2, n // 2] if n else [])))

    return implementation


def _by_lines(x: DistArray, axis: Any, function: Callable[[Any, int], Any], one: bool = True) -> Any:
    """A function of each line along an axis; the axis is dropped if the result is ``one`` number per line."""
    at = valid_axis(axis, x.ndim)
    if at is None or not x.shape[at]:
        return NOT_DISTRIBUTED
    caught: list[tuple[str, type[Warning]]] = []
    found = fourier.apply_along_axis(x, at, lambda lines: _heard(lambda: function(lines, at), caught))
    _warn_alike(x.comm, caught)
    return without_axes(found, normalised_axes(at, x.ndim), not one)


def _lines_first(x: DistArray, axis: Any, function: Callable[[Any, int], Any]) -> Any:
    """A function with several numbers per line, which become the first axis."""
    found = _by_lines(x, axis, lambda lines, at: np.moveaxis(function(lines, at), 0, at), False)
    if found is NOT_DISTRIBUTED:
        return found
    at = axis % x.ndim
    order = [at, *(a for a in range(x.ndim) if a != at)]
    layout = Layout([found.shape[a] for a in order], found.layout.grid, [found.layout.axes[a] for a in order])
    return DistArray(x.comm, layout, found.block.transpose(order))


def _heard(call: Callable[[], Any], caught: list[tuple[str, type[Warning]]]) -> Any:
    """The result of a call without communication, with its warnings recorded (their filters are
    process-wide)."""
    with warnings.catch_warnings(record=True) as now:
        warnings.simplefilter("always")
        result = call()
    caught.extend((str(one.message), one.category) for one in now)
    return result


def _warn_alike(comm: Communicator, caught: list[tuple[str, type[Warning]]]) -> None:
    """Issue on all ranks the warnings that NumPy has issued on one."""
    loudest = np.array(comm.rank + 1 if caught else 0)
    comm.allreduce(loudest, loudest, "max")
    if loudest:
        for text, category in dict.fromkeys(broadcast_object(comm, caught, int(loudest) - 1)):
            warnings.warn_explicit(text, category, *caller())


def _in_order(x: DistArray, skips: bool) -> tuple[DistArray, int]:
    """The sorted elements, and how many are not NaN; 0 if there is a NaN that may not be skipped."""
    values, n = sorted_with_count(x, True)
    return values, n if skips or n == math.prod(x.shape) else 0


def _at(values: DistArray, places: list[int]) -> Any:
    """Elements at global places, on every rank; a NaN for no places."""
    if not places:
        return np.full(1, np.nan, values.dtype)
    return read_elements(values, np.array(places, np.int64))


def _scalar(x: DistArray, value: Any) -> DistArray:
    return DistArray.replicated(np.asarray(value), x.comm)


def _quantile(per: int, skips: bool) -> Callable[..., Any]:
    names = {(1, False): np.quantile, (1, True): np.nanquantile, (100, False): np.percentile}
    function: Any = names.get((per, skips), np.nanpercentile)

    def implementation(
        a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False,
        method: Any = "linear", keepdims: Any = False, *, weights: Any = None, interpolation: Any = None,
    ) -> Any:  # fmt: skip
        x = dist_array_of(a)
        odd = weights is not None or interpolation is not None or keepdims not in (False, np._NoValue)
        if x is None or out is not None or odd or x.dtype.char not in _REAL or type(q) is ndarray:
            return NOT_DISTRIBUTED
        if axis is not None and x.ndim > 1 and np.ndim(q) == 0:
            return _by_lines(
                x, axis, lambda lines, at: function(lines, q, axis=at, method=method, keepdims=True)
            )
        if axis is not None and x.ndim > 1 and np.ndim(q) == 1 and not isinstance(q, str):
            return _lines_first(x, axis, lambda lines, at: function(lines, q, axis=at, method=method))
        if not math.prod(x.shape) or axis not in (None, 0, -1) or (axis is not None and x.ndim > 1):
            return NOT_DISTRIBUTED
        parts = np.asarray(np.true_divide(q, per), np.float64)
        if method not in _BETWEEN or x.dtype.kind == "b" or not np.all((parts >= 0) & (parts <= 1)):
            return NOT_DISTRIBUTED
        values, n = _in_order(x, skips)
        if not n:
            return _scalar(x, function(np.full(1, np.nan), q))
        exact = (n - 1) * parts.reshape(-1)
        low = np.floor(exact).astype(np.int64)
        pairs = _at(values, [*low, *np.minimum(low + 1, n - 1)]).reshape(2, -1)
        found = [
            np.quantile(pair, share, method=method) for pair, share in zip(pairs.T, exact - low, strict=True)
        ]
        return _scalar(x, np.asarray(found).reshape(parts.shape))

    return implementation


_BETWEEN = ("linear", "lower", "higher", "midpoint")  # methods that need only the two neighbours


# ---- counts ------------------------------------------------------------------------------------------
def _bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    given, heavy = dist_array_of(x), None if weights is None else dist_array_of(weights)
    if (
        given is None
        or given.ndim != 1
        or given.dtype.kind not in "iu"
        or not np.can_cast(given.dtype, np.intp)
    ):
        return NOT_DISTRIBUTED
    if (weights is not None and (heavy is None or heavy.shape != given.shape)) or type(minlength) is not int:
        return NOT_DISTRIBUTED
    if not given.shape[0] or minlength < 0 or (heavy is not None and heavy.dtype.kind not in "biuf"):
        return NOT_DISTRIBUTED
    if reduction(given, np.minimum).block < 0:
        return NOT_DISTRIBUTED
    length = max(int(reduction(given, np.maximum).block) + 1, minlength)
    mine = given.local if _counts(given) else given.local[:0]
    if heavy is None:
        return sum_over_ranks(given, np.bincount(mine, None, length))
    there = heavy.redistributed(given.layout.without_halo()).local
    counts = np.bincount(mine, there if _counts(given) else there[:0], length)
    return sum_over_ranks(
        given, counts.astype(np.float64, copy=False)
    )  # NumPy forgets the weights of nothing


def _counts(x: DistArray) -> bool:
    """Whether this rank counts its elements: of ranks with copies of a block, one does."""
    coords = x.layout.grid.coords(x.comm.rank)
    return not any(coords[axis] for axis in x.layout.copy_axes)


def _histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    x, heavy = dist_array_of(a), None if weights is None else dist_array_of(weights)
    if x is None or x.dtype.kind not in "iuf" or isinstance(bins, str) or type(bins) is ndarray:
        return NOT_DISTRIBUTED
    if weights is not None and (heavy is None or heavy.shape != x.shape or heavy.dtype.kind not in "iufc"):
        return NOT_DISTRIBUTED
    if not math.prod(x.shape) or (np.ndim(bins) == 0 and type(bins) is not int):
        return NOT_DISTRIBUTED
    if range is None and np.ndim(bins) == 0:
        range = reduction(x, np.minimum).block[()], reduction(x, np.maximum).block[()]
    own = x.local.reshape(-1) if _counts(x) else x.local.reshape(-1)[:0]
    mine = (
        None if heavy is None else heavy.redistributed(x.layout.without_halo()).local.reshape(-1)[: own.size]
    )
    counts, edges = np.histogram(own, bins, range, weights=mine)
    total = sum_over_ranks(x, counts)
    if density:
        whole = total.gathered()
        total = _scalar(x, whole / np.array(np.diff(edges), float) / whole.sum())
    return total, _scalar(x, edges)


DISTRIBUTED.update(
    {
        np.unique: _unique,
        np.searchsorted: _searchsorted,
        np.around: _round,
        np.round: _round,
        np.digitize: _of_each(np.digitize, 0),
        np.isin: _isin,
        np.interp: _of_each(np.interp, 0),
        np.median: _median(False),
        np.nanmedian: _median(True),
        np.quantile: _quantile(1, False),
        np.nanquantile: _quantile(1, True),
        np.percentile: _quantile(100, False),
        np.nanpercentile: _quantile(100, True),
        np.bincount: _bincount,
        np.histogram: _histogram,
    }
)
