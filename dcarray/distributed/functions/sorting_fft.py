"""Distributed sorts, partitions, Fourier transforms, `cumsum` and `cumprod`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dcarray.comm.algorithms import fourier, scans, sorting
from dcarray.comm.algorithms.unique import all_differ
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import without_cyclic
from dcarray.core.backend import NOT_DISTRIBUTED
from dcarray.core.config import current
from dcarray.distributed.function_dispatch import DISTRIBUTED, dist_array_of, order_dependent, valid_axis
from dcarray.distributed.spmd_executor import FEW, default_layout

_SORTED = "?bBhHiIlLqQefdgFD"
_STABLE = ("stable", "mergesort")
_RECORDED = "?bBhHiIlLqQfd"  # dtypes whose cumulative sums have kernels


def _cut(x: DistArray, axis: int) -> bool:
    return x.layout.parts[axis].parts > 1


# ---- sorts -------------------------------------------------------------------------------------------
def _sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    x = dist_array_of(a)
    if x is not None and x.ndim > 1 and axis is None:
        x, axis = x.ravelled(), 0
    at = None if x is None else valid_axis(axis, x.ndim)
    if x is None or at is None or order is not None or x.dtype.char not in _SORTED:
        return NOT_DISTRIBUTED
    if x.ndim == 1 and _cut(x, 0):
        np.sort(np.empty(0, x.dtype), kind=kind, stable=stable)  # NumPy's error for a bad kind
        return sorting.sorted_values(x)
    return fourier.apply_along_axis(x, at, lambda lines: np.sort(lines, axis=at, kind=kind, stable=stable))


def _argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    x = dist_array_of(a)
    if x is not None and x.ndim > 1 and axis is None:
        x, axis = x.ravelled(), 0
    at = None if x is None else valid_axis(axis, x.ndim)
    if x is None or at is None or order is not None or x.dtype.char not in _SORTED:
        return NOT_DISTRIBUTED
    if x.ndim == 1 and _cut(x, 0):
        np.argsort(np.empty(0, x.dtype), kind=kind, stable=stable)  # NumPy's error for a bad kind
        values, places = sorting.sort_1d(x)
        # without stability the order of equal elements is undefined
        return places if kind in _STABLE or stable or all_differ(values) else NOT_DISTRIBUTED
    return fourier.apply_along_axis(x, at, lambda lines: np.argsort(lines, axis=at, kind=kind, stable=stable))


def _partition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    x, at, kth = _to_part(a, kth, axis, order)
    if x is None:
        return NOT_DISTRIBUTED
    if x.ndim == 1 and _cut(x, 0):
        return sorting.sorted_values(x)
    return fourier.apply_along_axis(x, at, lambda lines: np.partition(lines, kth, axis=at, kind=kind))


def _argpartition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    x, at, kth = _to_part(a, kth, axis, order)
    if x is None:
        return NOT_DISTRIBUTED
    if x.ndim == 1 and _cut(x, 0):
        return sorting.sort_1d(x)[1]
    return fourier.apply_along_axis(x, at, lambda lines: np.argpartition(lines, kth, axis=at, kind=kind))


def _to_part(a: Any, kth: Any, axis: Any, order: Any) -> tuple[Any, int, Any]:
    """The array, axis and places of a partition; None for arguments that NumPy does not accept."""
    x, given = (
        dist_array_of(a),
        dist_array_of(np.asarray(kth) if isinstance(kth, (int, list, tuple)) else kth),
    )
    if x is not None and axis is None:
        x, axis = x.ravelled(), 0
    at = None if x is None else valid_axis(axis, x.ndim)
    places = None if given is None else given.gathered()
    if x is None or at is None or order is not None or x.dtype.char not in _SORTED:
        return None, 0, None
    if places is None or places.dtype.kind not in "iu" or places.ndim > 1:
        return None, 0, None
    n = x.shape[at]
    inside = ((places >= -n) & (places < n)).all()
    return (x, at, places) if inside else (None, 0, None)


# ---- Fourier transforms ------------------------------------------------------------------------------
def _lines(a: Any, steps: Sequence[tuple[Any, Callable[..., Any], dict[str, Any]]]) -> Any:
    """Transforms along axes in sequence; each step has an axis, a function and its keyword arguments."""
    x = dist_array_of(a)
    if x is None or not x.ndim or (x.ndim == 1 and _cut(x, 0)):
        return NOT_DISTRIBUTED
    made = []
    for axis, function, options in steps:
        at = valid_axis(axis, x.ndim)
        if at is None:
            return NOT_DISTRIBUTED
        made.append((at, lambda v, f=function, at=at, o=options: f(v, axis=at, **o)))
    return fourier.apply_along_axes(x, made)


def _transform(function: Callable[..., Any]) -> Callable[..., Any]:
    def implementation(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
        if out is not None:
            return NOT_DISTRIBUTED
        found = _lines(a, [(axis, function, {"n": n, "norm": norm})])
        return _line(a, n, axis, norm) if found is NOT_DISTRIBUTED else found

    def _line(a: Any, n: Any, axis: Any, norm: Any) -> Any:
        x, kind = dist_array_of(a), function.__name__
        if x is None or x.ndim != 1 or axis not in (0, -1) or x.dtype.char not in "?bBhHiIlLqQfdFD":
            return NOT_DISTRIBUTED
        if kind not in ("fft", "ifft", "rfft", "irfft") or not (n is None or type(n) is int):
            return NOT_DISTRIBUTED
        found = fourier.transform_line(x, kind, n, norm)
        return NOT_DISTRIBUTED if found is None else found

    return implementation


def _transforms(
    default: tuple[int, ...] | None, first: Any, others: Callable[..., Any], last: Any = None
) -> Callable[..., Any]:
    """The implementation of a transform along several axes in NumPy's order: ``first`` along the last axis,
    then ``others`` backwards along the rest; or ``others`` forwards, then ``last`` along the last axis."""

    def implementation(a: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None) -> Any:
        along = list(range(np.ndim(a))) if axes is None and s is None else axes
        if out is not None or not isinstance(along, (list, tuple)) or not along:
            return NOT_DISTRIBUTED
        lengths = [None] * len(along) if s is None else s
        if not isinstance(lengths, (list, tuple)) or len(lengths) != len(along):
            return NOT_DISTRIBUTED
        if any(n is not None and (type(n) is not int or n < 1) for n in lengths):
            return NOT_DISTRIBUTED
        *rest, end = [(axis, {"n": n, "norm": norm}) for axis, n in zip(along, lengths, strict=True)]
        if last is not None:
            steps = [(axis, others, options) for axis, options in rest] + [(end[0], last, end[1])]
        else:
            steps = [(end[0], first, end[1])]
            steps += [(axis, others, options) for axis, options in reversed(rest)]
        return _lines(a, steps)

    return implementation


# ---- cumulative sums ---------------------------------------------------------------------------------
def _cumulative(ufunc: np.ufunc) -> Callable[..., Any]:
    def implementation(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        x = dist_array_of(a)
        at = None if x is None else valid_axis(axis, x.ndim)
        if x is None or at is None or out is not None:
            return NOT_DISTRIBUTED
        if not any(_cut(x, k) for k in range(x.ndim)):  # every rank has it whole
            x = x.redistributed(default_layout(x.shape, current(), x.comm))
        if _cut(x, at):
            if math.prod(x.shape) > FEW or not order_dependent(ufunc, dtype or x.dtype):
                return scans.scan(x, ufunc, at, dtype)
            return DistArray.from_whole(
                ufunc.accumulate(x.gathered(), at, dtype), without_cyclic(x.layout), x.comm
            )
        if x.dtype.char in _RECORDED:  # the recorder scans uncut axes
            return NOT_DISTRIBUTED
        return fourier.apply_along_axis(x, at, lambda lines: ufunc.accumulate(lines, at, dtype))

    return implementation


DISTRIBUTED.update(
    {
        np.sort: _sort,
        np.argsort: _argsort,
        np.partition: _partition,
        np.argpartition: _argpartition,
        np.fft.fft2: _transforms((-2, -1), np.fft.fft, np.fft.fft),
        np.fft.fftn: _transforms(None, np.fft.fft, np.fft.fft),
        np.fft.ifft2: _transforms((-2, -1), np.fft.ifft, np.fft.ifft),
        np.fft.ifftn: _transforms(None, np.fft.ifft, np.fft.ifft),
        np.fft.rfft2: _transforms((-2, -1), np.fft.rfft, np.fft.fft),
        np.fft.rfftn: _transforms(None, np.fft.rfft, np.fft.fft),
        np.fft.irfft2: _transforms((-2, -1), None, np.fft.ifft, np.fft.irfft),
        np.fft.irfftn: _transforms(None, None, np.fft.ifft, np.fft.irfft),
        np.cumsum: _cumulative(np.add),
        np.cumprod: _cumulative(np.multiply),
    }
)
for _function in (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.ihfft):
    DISTRIBUTED[_function] = _transform(_function)
