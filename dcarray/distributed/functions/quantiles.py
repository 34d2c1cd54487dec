"""Distributed `numpy.median`, `quantile`, `percentile` and their ``nan`` forms."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.comm.algorithms.along_axis import apply_along_axis
from dcarray.comm.algorithms.fancy_indexing import read_elements
from dcarray.comm.algorithms.reductions import without_axes
from dcarray.comm.algorithms.sorting import sorted_values
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.transport.agreement import broadcast_object
from dcarray.comm.transport.call_location import caller
from dcarray.comm.transport.protocol import Communicator
from dcarray.comm.transport.sparse_alltoall import allgather
from dcarray.distributed.function_dispatch import DISTRIBUTED, dist_operand, require, required_axis

_SORTED = "?bBhHiIlLqQefdg"
_REAL = "?bBhHiIlLqQd"  # dtypes whose quantiles NumPy computes in float64
_BETWEEN = ("linear", "lower", "higher", "midpoint")  # methods that need only the two neighbours


def _median(skips_nan: bool) -> Callable[..., Any]:
    function: Any = np.nanmedian if skips_nan else np.median

    def implementation(
        a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False
    ) -> Any:
        x = dist_operand(a)
        require(out is None and x.dtype.char in _SORTED and keepdims in (False, np._NoValue))
        if axis is not None and x.ndim > 1:
            return _of_lines(x, axis, lambda lines, at: function(lines, axis=at, keepdims=True))
        require(x.size and axis in (None, 0, -1))
        values, n = _sorted_numbers(x, skips_nan)
        middle = read_elements(values, np.array([(n - 1) // 2, n // 2])) if n else _nan(x)
        return DistArray.replicated(function(middle), x.comm)

    return implementation


def _quantile(function: Any, scale: int, skips_nan: bool) -> Callable[..., Any]:
    def implementation(
        a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False,
        method: Any = "linear", keepdims: Any = False, *, weights: Any = None, interpolation: Any = None,
    ) -> Any:  # fmt: skip
        x = dist_operand(a)
        require(weights is None and interpolation is None and keepdims in (False, np._NoValue))
        require(out is None and x.dtype.char in _REAL and type(q) is not ndarray)
        if axis is not None and x.ndim > 1:
            if np.ndim(q) == 0:
                return _of_lines(
                    x, axis, lambda lines, at: function(lines, q, axis=at, method=method, keepdims=True)
                )
            require(np.ndim(q) == 1)
            return _several_of_lines(x, axis, lambda lines, at: function(lines, q, axis=at, method=method))
        require(x.size and axis in (None, 0, -1))
        shares = np.asarray(np.true_divide(q, scale), np.float64)
        require(method in _BETWEEN and x.dtype.kind != "b" and np.all((shares >= 0) & (shares <= 1)))
        values, n = _sorted_numbers(x, skips_nan)
        if not n:
            return DistArray.replicated(function(_nan(x), q), x.comm)
        places = (n - 1) * shares.reshape(-1)
        low = np.floor(places).astype(np.int64)
        pairs = read_elements(values, np.stack([low, np.minimum(low + 1, n - 1)], 1))
        quantiles = [
            np.quantile(pair, weight, method=method) for pair, weight in zip(pairs, places - low, strict=True)
        ]
        return DistArray.replicated(np.asarray(quantiles).reshape(shares.shape), x.comm)

    return implementation


# ---- all elements ------------------------------------------------------------------------------------
def _sorted_numbers(x: DistArray, skips_nan: bool) -> tuple[DistArray, int]:
    """Return the sorted elements, and the number of those that are not NaN (0 if there is a NaN and it may
    not be skipped)."""
    values, nans = sorted_values(x.ravel()), 0
    if x.dtype.kind == "f":
        nans = int(allgather(x.comm, np.count_nonzero(np.isnan(values.local))).sum())
    return values, 0 if nans and not skips_nan else x.size - nans


def _nan(x: DistArray) -> Any:
    return np.full(1, np.nan, x.dtype)


# ---- lines -------------------------------------------------------------------------------------------
def _of_lines(
    x: DistArray, axis: Any, function: Callable[[Any, int], Any], keeps_axis: bool = False
) -> DistArray:
    """Return the results of a function of each line along an axis, which is dropped unless it is kept."""
    at = required_axis(axis, x.ndim)
    require(x.shape[at])
    caught: list[tuple[str, type[Warning]]] = []
    results = apply_along_axis(x, at, lambda lines: _record_warnings(lambda: function(lines, at), caught))
    _warn_on_all(x.comm, caught)
    return without_axes(results, (at,), keeps_axis)


def _several_of_lines(x: DistArray, axis: Any, function: Callable[[Any, int], Any]) -> DistArray:
    """Return the results of a function with several numbers for each line, which become the first axis."""
    stack = _of_lines(x, axis, lambda lines, at: np.moveaxis(function(lines, at), 0, at), True)
    at = axis % x.ndim
    order = [at, *(a for a in range(x.ndim) if a != at)]
    layout = Layout([stack.shape[a] for a in order], stack.layout.grid, [stack.layout.axes[a] for a in order])
    return DistArray(x.comm, layout, stack.block.transpose(order))


def _record_warnings(call: Callable[[], Any], caught: list[tuple[str, type[Warning]]]) -> Any:
    """Return the result of a call, and record its warnings.

    It must not communicate: the filters of warnings are process-wide.
    """
    with warnings.catch_warnings(record=True) as now:
        warnings.simplefilter("always")
        result = call()
    caught.extend((str(one.message), one.category) for one in now)
    return result


def _warn_on_all(comm: Communicator, caught: list[tuple[str, type[Warning]]]) -> None:
    """Issue, on all ranks, the warnings that NumPy gave on one of them."""
    source = np.array(comm.rank if caught else -1)
    comm.allreduce(source, source, "max")
    if source >= 0:
        for text, category in dict.fromkeys(broadcast_object(comm, caught, int(source))):
            warnings.warn_explicit(text, category, *caller())


DISTRIBUTED.update(
    {
        np.median: _median(False),
        np.nanmedian: _median(True),
        np.quantile: _quantile(np.quantile, 1, False),
        np.nanquantile: _quantile(np.nanquantile, 1, True),
        np.percentile: _quantile(np.percentile, 100, False),
        np.nanpercentile: _quantile(np.nanpercentile, 100, True),
    }
)
