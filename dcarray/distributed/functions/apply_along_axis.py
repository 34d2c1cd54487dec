"""Distributed `numpy.apply_along_axis` of the user's functions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from dcarray.api.array import evaluate
from dcarray.api.functions.common import operand
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import with_whole_axes, without_cyclic
from dcarray.comm.layout.layouts import Layout, Whole
from dcarray.comm.transport.agreement import broadcast_object
from dcarray.core.config import options
from dcarray.core.handle import Handle
from dcarray.distributed.function_dispatch import dist_operand, require, run_distributed
from dcarray.distributed.pure_functions import is_pure

from .numpy_source import decomposition_of

if TYPE_CHECKING:
    from collections.abc import Callable


@decomposition_of(np.apply_along_axis)
def _apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function that is known to be pure for the lines of each rank's block.

    The results have the shape and dtype of the first one, as in NumPy.
    """
    x = operand(arr)
    at = normalize_axis_index(axis, x.ndim)
    require(x.ndim > 1 and x.size and is_pure(func1d, *args, **kwargs))
    evaluate()  # all ranks together run what is pending

    def call_locally(line: Any) -> Any:
        with options(distribute_above=sys.maxsize):
            result = func1d(line, *args, **kwargs)
            return np.asanyarray(result) if isinstance(result, Handle) else result

    return run_distributed(lambda a: _apply(dist_operand(a), at, call_locally), (x,), {}, "apply_along_axis")


def _apply(x: DistArray, axis: int, function: Callable[[Any], Any]) -> DistArray:
    cut = x.layout.is_cut(axis)
    held = x.redistribute(with_whole_axes(x.layout, [axis]) if cut else without_cyclic(x.layout))
    lines = np.moveaxis(held.local, axis, -1).view()
    lines.flags.writeable = False  # a function that writes to them raises, and is left to NumPy
    first = held.layout.owner((0,) * x.ndim)
    like: Any = None
    if x.comm.rank == first:
        like = _like(function, lines[(0,) * (x.ndim - 1)])
    like = broadcast_object(x.comm, like, first)
    results = None
    if like is not None:
        results = _results(function, lines, *like)
    failed = np.array(results is None)
    x.comm.allreduce(failed, failed, "lor")
    require(not failed)  # NumPy raises the error, on all ranks
    assert results is not None
    more = results.ndim - lines.ndim + 1
    at = range(lines.ndim - 1, results.ndim)
    values = np.moveaxis(results, tuple(at), tuple(axis + k for k in range(more)))
    specs = list(held.layout.axes)
    specs[axis : axis + 1] = [Whole()] * more
    shape = list(x.shape)
    shape[axis : axis + 1] = like[0]
    return DistArray(x.comm, Layout(shape, held.layout.grid, specs), values)


def _like(function: Callable[[Any], Any], line: Any) -> Any:
    """Return the shape and dtype of a function's result for a line; None unless the result is an array or a
    number."""
    try:
        result = function(line)
    except Exception:
        return None
    if isinstance(result, np.ndarray) and type(result) is not np.ndarray:
        return None
    a = np.asarray(result)
    return None if a.dtype.hasobject else (a.shape, a.dtype)


def _results(function: Callable[[Any], Any], lines: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return the function's results for this rank's lines; None if a call raises an exception."""
    results: Any = np.empty((*lines.shape[:-1], *shape), dtype)
    try:
        for place in np.ndindex(lines.shape[:-1]):
            results[place] = function(lines[place])
    except Exception:
        return None
    return results
