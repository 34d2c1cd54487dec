"""Distributed `numpy.bincount`, `histogram`, `histogramdd` and `digitize`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.api.functions.common import is_array, operand
from dcarray.comm.algorithms.reductions import reduction, sum_over_ranks
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.distributed.function_dispatch import DISTRIBUTED, dist_operand, require

from .numpy_source import decomposition_of


def _own_elements(x: DistArray) -> Any:
    """Return the elements that this rank counts; of ranks with copies of a block, only one counts it."""
    elements = x.local.reshape(-1)
    return elements if x.layout.is_first_copy(x.comm.rank) else elements[:0]


def _own_weights(weights: Any, x: DistArray, kinds: str) -> Any:
    """Return the weights of the elements that this rank counts; None if there are no weights."""
    if weights is None:
        return None
    given = dist_operand(weights)
    require(given.shape == x.shape and given.dtype.kind in kinds)
    return _own_elements(given.redistribute(x.layout.without_halo()))


def _bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    given = dist_operand(x)
    require(given.ndim == 1 and given.dtype.kind in "iu" and np.can_cast(given.dtype, np.intp))
    require(given.size and type(minlength) is int and minlength >= 0)
    require(reduction(given, np.minimum).block >= 0)
    length = max(int(reduction(given, np.maximum).block) + 1, minlength)
    own_weights = _own_weights(weights, given, "biuf")
    counts = np.bincount(_own_elements(given), own_weights, length)
    if weights is not None:  # NumPy forgets the weights of nothing
        counts = counts.astype(np.float64, copy=False)
    return sum_over_ranks(given.comm, counts)


def _histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    x = dist_operand(a)
    require(x.size and x.dtype.kind in "iuf" and not isinstance(bins, (str, ndarray)))
    require(np.ndim(bins) or type(bins) is int)
    own_weights = _own_weights(weights, x, "iufc")
    if range is None and np.ndim(bins) == 0:
        range = reduction(x, np.minimum).block[()], reduction(x, np.maximum).block[()]
    counts, edges = np.histogram(_own_elements(x), bins, range, weights=own_weights)
    total = sum_over_ranks(x.comm, counts)
    if density:
        whole = total.gather()
        total = DistArray.replicated(whole / np.array(np.diff(edges), float) / whole.sum(), x.comm)
    return total, DistArray.replicated(edges, x.comm)


@decomposition_of(np.histogram)
def _histogram_of_edges(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Any, Any]:
    """Return histograms whose bins are named, or whose edges are distributed."""
    x = operand(a)
    require(weights is None and x.dtype.kind in "iuf" and x.size)
    if isinstance(bins, str):
        edges = np.histogram_bin_edges(x, bins, range)
        return np.histogram(x, len(edges) - 1, range, density)
    require(is_array(bins) and bins.ndim == 1 and bins.dtype.kind in "iuf")
    require(not bool((bins[1:] < bins[:-1]).any()))
    values = np.sort(x.ravel())
    places = [np.searchsorted(values, bins[:-1]), np.searchsorted(values, bins[-1:], "right")]
    heights = np.diff(np.concatenate(places))
    if density:
        return heights / np.diff(bins).astype(float) / heights.sum(), bins
    return heights, bins


@decomposition_of(np.histogramdd)
def _histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    columns = _columns(sample)
    require(columns and columns[0].size)
    require(all(len(x) == len(columns[0]) and x.dtype.kind in "biuf" for x in columns))
    # NumPy's edges depend on the extremes alone: of a sample that has no other elements.
    extremes = np.array([[x.min() for x in columns], [x.max() for x in columns]], columns[0].dtype)
    edges = np.histogramdd(extremes, bins, range)[1]
    shape = tuple(len(edge) - 1 for edge in edges)
    size = math.prod(shape)
    require(size < 1 << 31)
    place, inside = np.zeros(len(columns[0]), np.intp), np.ones(len(columns[0]), np.bool_)
    for x, edge in zip(columns, edges, strict=True):
        at = np.searchsorted(edge, x, "right") - np.where(x == edge[-1], 2, 1)
        inside = inside & (at >= 0) & (at < len(edge) - 1)
        place = place * (len(edge) - 1) + at
    counted = np.bincount(np.where(inside, place, size), weights, minlength=size + 1)
    heights = counted.astype(np.float64, casting="safe")[:size].copy().reshape(shape)
    if density:
        total = heights.sum()
        for axis, edge in enumerate(edges):
            heights = heights / np.diff(edge).reshape([-1 if axis == a else 1 for a in np.arange(len(edges))])
        heights = heights / total
    return heights, edges


def _columns(sample: Any) -> list[Any]:
    """Return the points of a histogramdd sample as one vector for each axis, all of one dtype; an empty list
    if the sample has another form."""
    if isinstance(sample, (list, tuple)):
        columns = [operand(x) for x in sample]
        dtype = np.result_type(*[np.empty(0, x.dtype) for x in columns])
        return [x.astype(dtype) for x in columns] if all(x.ndim == 1 for x in columns) else []
    whole = operand(sample)
    if whole.ndim != 2:
        return [whole] if whole.ndim == 1 else []
    return [whole[:, k].copy() for k in np.arange(whole.shape[1])]


@decomposition_of(np.digitize)
def _digitize(x: Any, bins: Any, right: Any = False) -> Any:
    require(x.dtype.kind in "iufb" and bins.ndim == 1)
    side: Any = "left" if right else "right"
    if bool((bins[1:] >= bins[:-1]).all()):
        return np.searchsorted(bins, x, side)
    require(bool((bins[1:] <= bins[:-1]).all()))
    return len(bins) - np.searchsorted(bins[::-1].copy(), x, side)


DISTRIBUTED[np.bincount] = _bincount
DISTRIBUTED[np.histogram] = _histogram
