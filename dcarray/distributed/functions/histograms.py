"""Decompositions of `numpy.histogram`, `histogramdd` and `polydiv` into functions with distributed
implementations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dcarray.api.functions.common import is_array, operand
from dcarray.api.functions.registry import Unserved

from .decompositions import decomposition_of

MOST_TERMS = 256  # of a quotient, each of which takes a step of its own


@decomposition_of(np.histogram)
def _histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Any, Any]:
    """Histograms with bins by name, or with distributed edges."""
    x = operand(a)
    if weights is not None or x.dtype.kind not in "iuf" or not x.size:
        raise Unserved
    if isinstance(bins, str):
        edges = np.histogram_bin_edges(x, bins, range)
        return np.histogram(x, len(edges) - 1, range, density)
    if (
        not is_array(bins)
        or bins.ndim != 1
        or bins.dtype.kind not in "iuf"
        or bool((bins[1:] < bins[:-1]).any())
    ):
        raise Unserved
    values = np.sort(x.ravel())
    places = [np.searchsorted(values, bins[:-1]), np.searchsorted(values, bins[-1:], "right")]
    found = np.diff(np.concatenate(places))
    if density:
        return found / np.diff(bins).astype(float) / found.sum(), bins
    return found, bins


@decomposition_of(np.histogramdd)
def _histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    columns = _columns(sample)
    if not columns or not columns[0].size:
        raise Unserved
    if any(len(x) != len(columns[0]) for x in columns) or any(x.dtype.kind not in "biuf" for x in columns):
        raise Unserved
    # NumPy's edges depend on the extremes alone: of a sample that has no other elements.
    extremes = np.array([[x.min() for x in columns], [x.max() for x in columns]], columns[0].dtype)
    edges = np.histogramdd(extremes, bins, range)[1]
    shape = tuple(len(edge) - 1 for edge in edges)
    size = math.prod(shape)
    if size >= 1 << 31:
        raise Unserved
    place, inside = np.zeros(len(columns[0]), np.intp), np.ones(len(columns[0]), np.bool_)
    for x, edge in zip(columns, edges, strict=True):
        at = np.searchsorted(edge, x, "right") - np.where(x == edge[-1], 2, 1)
        inside = inside & (at >= 0) & (at < len(edge) - 1)
        place = place * (len(edge) - 1) + at
    counted = np.bincount(np.where(inside, place, size), weights, minlength=size + 1)
    found = counted.astype(np.float64, casting="safe")[:size].copy().reshape(shape)
    if density:
        total = found.sum()
        for axis, edge in enumerate(edges):
            found = found / np.diff(edge).reshape([-1 if axis == a else 1 for a in np.arange(len(edges))])
        found = found / total
    return found, edges


def _columns(sample: Any) -> list[Any]:
    """The coordinates of a sample, of one dtype."""
    if isinstance(sample, (list, tuple)):
        columns = [operand(x) for x in sample]
        dtype = np.result_type(*[np.empty(0, x.dtype) for x in columns])
        return [x.astype(dtype) for x in columns] if all(x.ndim == 1 for x in columns) else []
    whole = operand(sample)
    if whole.ndim != 2:
        return [whole] if whole.ndim == 1 else []
    return [whole[:, k].copy() for k in np.arange(whole.shape[1])]


@decomposition_of(np.polydiv)
def _polydiv(u: Any, v: Any) -> Any:
    if isinstance(u, np.poly1d) or isinstance(v, np.poly1d):
        raise Unserved
    a, b = (np.atleast_1d(operand(x)) + 0.0 for x in (u, v))
    m, n = len(a) - 1, len(b) - 1
    if a.ndim != 1 or b.ndim != 1 or m - n >= MOST_TERMS:
        raise Unserved
    dtype = np.result_type(np.empty(0, a.dtype), np.empty(0, b.dtype))
    scale, quotient, rest = 1.0 / b[0], np.zeros(max(m - n + 1, 1), dtype), a.astype(dtype)
    for k in np.arange(m - n + 1):
        quotient[k] = factor = scale * rest[k]
        rest[k : k + n + 1] -= factor * b
    near = np.isclose(rest, 0, rtol=1e-14)
    left = m if bool(near.all()) else int(np.argmin(near))
    return quotient, rest[left:]
