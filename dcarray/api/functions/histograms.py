"""Histograms over bins of one width, counted on all cores."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from dcarray.api.array import ndarray, wrap
from dcarray.core import config
from dcarray.core.backend import is_distributed
from dcarray.execution.routines import Compiled
from dcarray.lowering.runtime.array_memory import address_of, require
from dcarray.recording import recorder
from dcarray.tiering import policy

from .common import plain
from .registry import Unserved, implements, launch_of

_MOST_BINS = 4096  # each block of elements has as many counters of its own
_SECONDS = 1e-8  # seconds that NumPy needs for an element
_COARSE = 2.0**-40  # width of a bin relative to the edges, below which rounding might matter
_LEAST_EDGE = 1e-280  # smaller edges count as this size
_WORK = 5  # cost of counting an element, in the scheduler's units


_COUNTS, _WEIGHTS = (Compiled("histogram", "histogram", weighted) for weighted in (False, True))


def _edges(a: Any, bins: int, limits: Any) -> Any:
    """Return the edges of the bins, by NumPy's own rules and with its errors."""
    if limits is None:
        low, high = (recorder.reduce(name, a, None, keepdims=True) for name in ("minimum", "maximum"))
        ends = np.concatenate([low._evaluated().reshape(-1), high._evaluated().reshape(-1)])
        return np.histogram_bin_edges(ends, bins)
    if len(limits) != 2 or not all(type(v) in (int, float) and abs(v) < 1 << 53 for v in limits):
        raise Unserved
    return np.histogram_bin_edges(np.zeros(0), bins, (float(limits[0]), float(limits[1])))


@implements(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Return the numbers of elements in intervals."""
    unsupported = type(a) is not ndarray or a.dtype != np.float64 or policy.eager(a.size, policy.PASS)
    if unsupported or is_distributed(a) or np.ndim(bins) or isinstance(bins, str):
        raise Unserved
    if range is not None and type(range) not in (tuple, list):
        raise Unserved
    number = operator.index(bins)
    if weights is not None:
        fits = type(weights) in (ndarray, np.ndarray) and weights.dtype == np.float64
        if not fits or weights.shape != a.shape:
            raise Unserved
    if not 0 < number <= _MOST_BINS:
        raise Unserved
    launch = launch_of((_COUNTS if weights is None else _WEIGHTS), _SECONDS * a.size)
    edges = _edges(a, number, range)
    values, heavy = (plain(v) for v in (a, weights))
    given = [v for v in (values, heavy) if v is not None]
    if not all(v.flags.c_contiguous and v.flags.aligned and v.dtype.isnative for v in given):
        raise Unserved
    with np.errstate(all="ignore"):
        if not _regular(edges):
            raise Unserved
    n = _counted(launch, values, heavy, edges)
    if density:
        n = n / np.array(np.diff(edges), float) / n.sum()
    return wrap(n), wrap(edges)


def _regular(edges: Any) -> bool:
    """Whether the compiled routine finds NumPy's bins for these edges: its first guess is at most one bin
    off."""
    first, last, bins = edges[0], edges[-1], len(edges) - 1
    step = (last - first) / bins
    apart = step > _COARSE * max(abs(first), abs(last), _LEAST_EDGE)
    return bool(apart and np.isfinite(step) and np.array_equal(np.arange(bins) * step + first, edges[:-1]))


def _counted(launch: Any, values: Any, weights: Any, edges: Any) -> Any:
    """Count the values per bin, or sum their weights, by the compiled histogram routine."""
    from dcarray.lowering.cpu.llvm.routines.histogram import BLOCK

    bins = len(edges) - 1
    blocks = -(-values.size // BLOCK)
    n = np.empty(bins, np.intp if weights is None else np.float64)
    require(8 * blocks * (bins + 1))
    rows = np.empty(blocks * (bins + 1), np.float64)
    arrays = [values, values if weights is None else weights, edges, rows, n]
    addresses = [address_of(x) for x in arrays]
    packed = launch.pack(blocks, _WORK * BLOCK, bins, blocks, *addresses, values.size, bins, blocks)
    launch(packed, config.current().threads)
    return n
