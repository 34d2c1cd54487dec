"""Distributed `numpy.cumsum`, `cumprod`, `ufunc.accumulate` and `ufunc.reduceat`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.comm.algorithms.along_axis import apply_along_axis
from dcarray.comm.algorithms.distributed_scans import reduceat, scan
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import without_cyclic
from dcarray.core.config import current
from dcarray.distributed.function_dispatch import (
    DISTRIBUTED,
    dist_operand,
    order_dependent,
    require,
    required_axis,
)
from dcarray.distributed.layout_choice import default_layout
from dcarray.distributed.spmd_executor import MOST_SERIAL

_NUMBERS = "?bBhHiIlLqQefdgFD"
_RECORDED = "?bBhHiIlLqQfd"  # dtypes whose cumulative sums have kernels
_ASSOCIATIVE = frozenset(
    [
        np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.fmin, np.logical_and, np.logical_or,
        np.bitwise_and, np.bitwise_or, np.bitwise_xor,
    ]
)  # fmt: skip


def _in_blocks(x: DistArray) -> DistArray:
    """Return an array distributed; one that every rank has as a whole gets the default layout."""
    if any(map(x.layout.is_cut, range(x.ndim))):
        return x
    return x.redistribute(default_layout(x.shape, current(), x.comm))


def _cumulative(ufunc: np.ufunc) -> Callable[..., Any]:
    def implementation(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        x = dist_operand(a)
        at = required_axis(axis, x.ndim)
        require(out is None)
        x = _in_blocks(x)
        if x.layout.is_cut(at):
            if x.size > MOST_SERIAL or not order_dependent(ufunc, dtype or x.dtype):
                return scan(x, ufunc, at, dtype)
            whole = ufunc.accumulate(x.gather(), at, dtype)
            return DistArray.from_whole(whole, without_cyclic(x.layout), x.comm)
        require(x.dtype.char not in _RECORDED)  # the recorder scans uncut axes
        return apply_along_axis(x, at, lambda lines: ufunc.accumulate(lines, at, dtype))

    return implementation


def _accumulate(ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    x = dist_operand(array)
    require(out is None and x.dtype.char in _NUMBERS)
    at = required_axis(axis, x.ndim)
    rounds = order_dependent(ufunc, dtype or x.dtype)
    exact = ufunc in _ASSOCIATIVE and not rounds  # NumPy's bits are required here, unlike in `cumsum`
    x = _in_blocks(x) if exact else x
    cut = x.layout.is_cut(at)
    if exact or (rounds and not cut):
        require(cut)  # the recorder scans uncut axes
        return scan(x, ufunc, at, dtype)
    require(x.ndim > 1 or not cut)
    return apply_along_axis(x, at, lambda lines: ufunc.accumulate(lines, at, dtype))


def _reduceat(
    ufunc: np.ufunc, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None
) -> Any:
    x, index = dist_operand(array), dist_operand(indices, (list, tuple))
    require(index.ndim == 1 and index.dtype.kind in "iu" and index.size)
    require(out is None and ufunc.nin == 2 and ufunc.nout == 1 and x.dtype.char in _NUMBERS)
    at = required_axis(axis, x.ndim)
    starts = index.gather().astype(np.intp)
    require(starts.min() >= 0 and starts.max() < x.shape[at])
    if x.ndim > 1 or not x.layout.is_cut(0):
        return apply_along_axis(x, at, lambda lines: ufunc.reduceat(lines, starts, at, dtype))
    require((starts[1:] > starts[:-1]).all())
    return reduceat(x, ufunc, starts, dtype)


DISTRIBUTED.update(
    {
        np.cumsum: _cumulative(np.add),
        np.cumprod: _cumulative(np.multiply),
        np.ufunc.accumulate: _accumulate,
        np.ufunc.reduceat: _reduceat,
    }
)
