"""Reductions along some axes, argmax and argmin, scans and sorts, in parts along an axis that is kept.

The op-by-op interpreter runs large ones in parts on several threads while they have no plan.  The results
have NumPy's bits: each element is made by the same additions in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import numpy as np

from dcarray.core import config, parts
from dcarray.core.native import BUILT
from dcarray.core.ufunc_loops import SUMS_BEGIN_WITH

if BUILT:
    from dcarray._native.extension import accumulate as accumulate_lines

__all__ = ["accumulate", "reduce", "search", "sort"]

NDArray = np.ndarray[Any, Any]

_BYTE = 3e-11  # seconds for a byte of neighbours, which NumPy goes through as fast as memory is
_LINE = 1.5e-8  # for each run of neighbours
_SCANNED = 1 << 14  # elements from which on a scan is worth more than one thread
_SHORT = 32  # elements of a line
_SEQUENTIAL = {"add": 7, "multiply": _SHORT, "maximum": _SHORT, "minimum": _SHORT}
"""The most elements of a line of floats that NumPy reduces from the first to the last; of more it makes
several sums."""
_TOGETHER = 1 << 13  # lines
_HALVED = 1e-9  # for an element in each halving of a line that is sorted
_SEARCHED = 8e-10  # for an element that has to be copied, so that NumPy finds neighbours where it searches
_RUN = 1 << 15  # bytes of neighbours for each part of a reduction, which reads slower in shorter runs
_SHORT_RUN = 1 << 8  # and where NumPy goes along lines of elements that are far apart
_LEAST = 2  # of the kept axis for each part: NumPy orders axes of one element as it likes


def reduce(
    ufunc: Any, value: NDArray, axes: tuple[int, ...], dtype: np.dtype[Any], out: NDArray, keepdims: bool
) -> None:
    """Do ``ufunc.reduce(value, axes, dtype, out, keepdims)``."""
    pieces: list[tuple[Any, Any]] = []
    if _is_short(ufunc, value, axes, dtype, out) and _reduce_short(ufunc, value, axes[0], out, keepdims):
        return
    if len(axes) < value.ndim and _keeps_its_order(value, dtype):
        pieces = _pieces(value, out, axes, keepdims, _seconds(value), _RUN)
    jobs = [partial(ufunc.reduce, value[key], axes, dtype, out[to], keepdims) for key, to in pieces]
    if not jobs or not parts.run(jobs):
        ufunc.reduce(value, axes, dtype, out, keepdims)


def _is_short(ufunc: Any, value: NDArray, axes: tuple[int, ...], dtype: np.dtype[Any], out: NDArray) -> bool:
    """Whether a reduction goes along short lines of neighbours, and one operation after the other in each."""
    if len(axes) != 1 or value.ndim < 2 or value.size < _SCANNED or not value.dtype == dtype == out.dtype:
        return False
    most = _SEQUENTIAL.get(ufunc.__name__, 0) if dtype.kind in "iu" or dtype.char in "fd" else 0
    if most and dtype.kind in "iu":
        most = _SHORT
    near = _nearest(value) == axes[0] and 1 < value.shape[axes[0]] <= most
    return near and not np.may_share_memory(value, out)


def _reduce_short(ufunc: Any, value: NDArray, axis: int, out: NDArray, keepdims: bool) -> bool:
    """Reduce short lines of neighbours by doing each operation for all lines at once.  Return False if an
    exception is raised, which NumPy then has to report.

    NumPy needs as much time to begin a line as for some ten elements.
    """
    lines = np.moveaxis(value, axis, -1)
    result = out.reshape(lines.shape[:-1]) if keepdims else out
    each = max(1, _TOGETHER * lines.shape[0] // max(1, result.size))

    def job(part: slice) -> None:
        for begin in range(part.start, part.stop, each):
            some = slice(begin, min(begin + each, part.stop))
            x, made = lines[some], result[some]
            ufunc(x[..., 0], x[..., 1], out=made)
            for k in range(2, x.shape[-1]):
                ufunc(made, x[..., k], out=made)
            if ufunc is np.add and made.dtype.kind == "f":
                made += SUMS_BEGIN_WITH

    number = parts.number_of_parts(_seconds(value), lines.shape[0])
    return parts.run([partial(job, part) for part in parts.cut(lines.shape[0], number)])


def search(function: Callable[..., Any], value: NDArray, axis: int, out: NDArray, keepdims: bool) -> None:
    """Do ``function(value, axis, out, keepdims=keepdims)`` of `numpy.argmax` or `numpy.argmin`."""
    near = abs(value.strides[axis]) == value.itemsize
    seconds = _seconds(value) if near else _SEARCHED * value.size
    pieces = _pieces(value, out, (axis,), keepdims, seconds, _SHORT_RUN)
    jobs = [partial(function, value[key], axis, out[to], keepdims=keepdims) for key, to in pieces]
    if not jobs or not parts.run(jobs):
        function(value, axis, out, keepdims=keepdims)


def accumulate(ufunc: Any, value: NDArray, axis: int, dtype: np.dtype[Any], out: NDArray) -> None:
    """Do ``ufunc.accumulate(value, axis, dtype, out)``.

    NumPy holds the interpreter's lock in this call, so that threads could not share it; the C module computes
    many lines together on several threads.
    """
    large = value.size >= _SCANNED and value.dtype == dtype and not np.may_share_memory(value, out)
    if not BUILT or not large or not accumulate_lines(ufunc, value, axis, out, config.current().threads):
        ufunc.accumulate(value, axis, dtype, out)  # which speaks of floating-point exceptions


def sort(value: NDArray, axis: int, kind: Any, stable: Any) -> bool:
    """Do ``value.sort(axis, kind, stable=stable)``; False if NumPy has to do it, perhaps again."""
    if not -value.ndim <= axis < value.ndim or not value.flags.forc or not value.flags.writeable:
        return False  # elsewhere elements may share memory
    lines = axis % value.ndim
    seconds = _HALVED * value.size * math.log2(value.shape[lines] + 1)
    pieces = _pieces(value, None, (lines,), True, seconds, _SHORT_RUN)
    jobs = [partial(value[key].sort, axis, kind, stable=stable) for key, _ in pieces]
    return bool(jobs) and parts.run(jobs)


def _keeps_its_order(value: NDArray, dtype: np.dtype[Any]) -> bool:
    """Whether NumPy reduces a part of an array in the order in which it reduces the whole.

    Elements that it converts go through a buffer, whose ends divide sums wherever they happen to be; without
    one the order depends on strides alone.  For integers and bools the order does not matter.
    """
    if dtype.kind in "biu" and value.dtype.kind in "biu":
        return True
    plain = value.dtype == dtype and value.dtype.isnative and value.flags.aligned
    return plain and all(step for step, n in zip(value.strides, value.shape, strict=True) if n > 1)


def _seconds(value: NDArray) -> float:
    """Return about how many seconds NumPy needs to read an array once."""
    run = value.shape[_nearest(value)]
    return float(_BYTE * value.nbytes + _LINE * (value.size / max(run, 1)))


def _nearest(value: NDArray) -> int:
    """Return the axis with the smallest stride, along which elements are neighbours in memory."""
    return min(range(value.ndim), key=lambda k: (value.shape[k] < 2, abs(value.strides[k])))


def _pieces(
    value: NDArray, out: NDArray | None, axes: Collection[int], keepdims: bool, seconds: float, run: int
) -> list[tuple[Any, Any]]:
    """Return the parts of an array along one kept axis, with those of the result; none if it is not divided.
    The axis is the one whose elements are farthest from each other.

    Parameters
    ----------
    value : ndarray
    out : ndarray or None
        The array of the result; None if the result overwrites ``value``.
    axes : collection of int
        The axes that are reduced.
    keepdims : bool
        Whether the result has the reduced axes with length 1.
    seconds : float
        The seconds that the work takes in one thread.
    run : int
        The least number of bytes of neighbouring elements in each part.
    """
    if seconds < 2 * parts.LEAST:
        return []
    kept = [k for k in range(value.ndim) if k not in axes]
    if not kept or (out is not None and np.may_share_memory(value, out)):
        return []
    at = max(kept, key=lambda k: (value.shape[k] > 1, abs(value.strides[k])))
    extent, step = value.shape[at], abs(value.strides[at])
    most = extent // _LEAST
    if any(abs(value.strides[k]) > step and value.shape[k] > 1 for k in axes):
        most = min(most, extent * step // run)  # each run of neighbours is cut
    number = parts.number_of_parts(seconds, most)
    if number < 2:
        return []
    place = at if keepdims else at - sum(k < at for k in axes)
    whole = slice(None)
    return [((whole,) * at + (lines,), (whole,) * place + (lines,)) for lines in parts.cut(extent, number)]
