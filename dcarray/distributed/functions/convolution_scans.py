"""Distributed `numpy.convolve`, `correlate`, `ufunc.reduceat` and `ufunc.accumulate`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.comm.algorithms import fourier, scans
from dcarray.comm.algorithms.line_convolution import convolve, reduceat
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.core.backend import NOT_DISTRIBUTED
from dcarray.core.config import current
from dcarray.distributed.function_dispatch import DISTRIBUTED, dist_array_of, order_dependent
from dcarray.distributed.spmd_executor import default_layout

_NUMBERS = "?bBhHiIlLqQefdgFD"
_ASSOCIATIVE = frozenset(
    [
        np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.fmin, np.logical_and, np.logical_or,
        np.bitwise_and, np.bitwise_or, np.bitwise_xor,
    ]
)  # fmt: skip


def _line(value: Any) -> DistArray | None:
    x = dist_array_of(np.asarray(value) if isinstance(value, (list, tuple)) else value)
    return x if x is not None and x.ndim == 1 and x.shape[0] and x.dtype.char in _NUMBERS else None


def _convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    one, other = _line(a), _line(v)
    if one is None or other is None or mode not in ("full", "same", "valid"):
        return NOT_DISTRIBUTED
    if other.shape[0] > one.shape[0]:
        one, other = other, one
    return _slid(one, other, mode, np.convolve)


def _correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    one, other = _line(a), _line(v)
    if one is None or other is None or mode not in ("full", "same", "valid"):
        return NOT_DISTRIBUTED
    return NOT_DISTRIBUTED if other.shape[0] > one.shape[0] else _slid(one, other, mode, np.correlate)


def _slid(x: DistArray, v: DistArray, mode: str, function: Callable[..., Any]) -> DistArray:
    return convolve(x, v.gathered(), mode, function)


def _reduceat(
    ufunc: np.ufunc, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None
) -> Any:
    x = dist_array_of(array)
    given = dist_array_of(np.asarray(indices) if isinstance(indices, (list, tuple)) else indices)
    if x is None or given is None or given.ndim != 1 or given.dtype.kind not in "iu" or not given.shape[0]:
        return NOT_DISTRIBUTED
    if out is not None or ufunc.nin != 2 or ufunc.nout != 1 or x.dtype.char not in _NUMBERS:
        return NOT_DISTRIBUTED
    if type(axis) is not int or not -x.ndim <= axis < x.ndim:
        return NOT_DISTRIBUTED
    axis %= x.ndim
    starts = given.gathered().astype(np.intp)
    if starts.min() < 0 or starts.max() >= x.shape[axis]:
        return NOT_DISTRIBUTED
    if x.ndim > 1 or x.layout.parts[0].parts == 1:
        return fourier.apply_along_axis(x, axis, lambda lines: ufunc.reduceat(lines, starts, axis, dtype))
    return reduceat(x, ufunc, starts, dtype) if (starts[1:] > starts[:-1]).all() else NOT_DISTRIBUTED


def _accumulate(ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    x = dist_array_of(array)
    if x is None or out is not None or x.dtype.char not in _NUMBERS:
        return NOT_DISTRIBUTED
    if type(axis) is not int or not -x.ndim <= axis < x.ndim:
        return NOT_DISTRIBUTED
    axis %= x.ndim
    rounded = order_dependent(ufunc, dtype or x.dtype)
    exact = ufunc in _ASSOCIATIVE and not rounded  # NumPy's bits are required here, unlike in `cumsum`
    if exact and not any(part.parts > 1 for part in x.layout.parts):  # every rank has it whole
        x = x.redistributed(default_layout(x.shape, current(), x.comm))
    cut = x.layout.parts[axis].parts > 1
    if exact or (rounded and not cut):
        return scans.scan(x, ufunc, axis, dtype) if cut else NOT_DISTRIBUTED  # the recorder scans uncut axes
    if x.ndim == 1 and cut:
        return NOT_DISTRIBUTED
    return fourier.apply_along_axis(x, axis, lambda lines: ufunc.accumulate(lines, axis, dtype))


DISTRIBUTED.update(
    {
        np.convolve: _convolve,
        np.correlate: _correlate,
        np.ufunc.reduceat: _reduceat,
        np.ufunc.accumulate: _accumulate,
    }
)
