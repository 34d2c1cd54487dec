"""Sums, extrema, means, variances, with and without NaNs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from dcarray.core.backend import is_distributed
from dcarray.core.strides import axes_of
from dcarray.recording.recorder import elementwise

from .common import NOTHING, add, is_array, is_wrapped, maximum, minimum, operand, reduce_array
from .registry import Unserved, implements, prefer_numpy


def _given(**kwargs: Any) -> dict[str, Any]:
    return {name: value for name, value in kwargs.items() if value is not NOTHING}


def _sum_or_product(ufunc: np.ufunc, nan_value: float | None) -> Callable[..., Any]:
    """Return an implementation of `numpy.sum` or `numpy.prod`, which may replace NaNs."""

    def reduction(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOTHING,
        initial: Any = NOTHING, where: Any = NOTHING,
    ) -> Any:  # fmt: skip
        x = a if nan_value is None else without_nan(a, nan_value)[0]
        return reduce_array(
            ufunc, x, axis, dtype, out, **_given(keepdims=keepdims, initial=initial, where=where)
        )

    return reduction


def _extremum(ufunc: np.ufunc, without_nan: bool) -> Callable[..., Any]:
    """Return an implementation of `numpy.max`, `min`, `nanmax` or `nanmin`."""

    def reduction(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOTHING, initial: Any = NOTHING,
        where: Any = NOTHING,
    ) -> Any:  # fmt: skip
        if without_nan and (not is_wrapped(a) or a.dtype.kind not in "biufc"):
            raise Unserved
        given = _given(keepdims=keepdims, initial=initial, where=where)
        result = reduce_array(ufunc, a, axis, None, out, **given)
        if without_nan and a.dtype.kind in "fc" and np.any(np.isnan(result)):
            warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=4)
        return result

    return reduction


def _logical(ufunc: np.ufunc) -> Callable[..., Any]:
    """Return an implementation of `numpy.any` or `numpy.all`."""

    def reduction(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOTHING, *, where: Any = NOTHING
    ) -> Any:
        _checked(a, NOTHING)
        return reduce_array(ufunc, a, axis, None, out, **_given(keepdims=keepdims, where=where))

    return reduction


_function: Any
for _function, _implementation in {
    np.sum: _sum_or_product(np.add, None),
    np.prod: _sum_or_product(np.multiply, None),
    np.nansum: _sum_or_product(np.add, 0),
    np.nanprod: _sum_or_product(np.multiply, 1),
    np.max: _extremum(np.maximum, False),
    np.amax: _extremum(np.maximum, False),
    np.min: _extremum(np.minimum, False),
    np.amin: _extremum(np.minimum, False),
    np.nanmax: _extremum(np.fmax, True),
    np.nanmin: _extremum(np.fmin, True),
    np.any: _logical(np.logical_or),
    np.all: _logical(np.logical_and),
}.items():
    implements(_function)(_implementation)


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Return the number of elements that are not zero."""
    if not is_wrapped(a) or a.dtype.kind not in "biufc":
        raise Unserved
    flags = a if a.dtype == np.bool_ else np.not_equal(a, 0)
    count = reduce_array(add, flags, axis, np.intp, keepdims=keepdims)
    if axis is None and not keepdims:
        return type(np.count_nonzero(np.empty(0)))(count)
    return count


def _items(a: Any, axis: Any) -> np.intp:
    return np.intp(prod([a.shape[k] for k in axes_of(axis, a.ndim)]))


def _divide(total: Any, count: Any) -> Any:
    """Return ``total / count`` in the dtype of ``total``, which is new (or the caller's ``out``)."""
    if is_array(total):
        return np.true_divide(total, count, out=total, casting="unsafe")
    return total.dtype.type(total / count)


def _wide(a: Any, dtype: Any) -> Any:
    return np.dtype("f8") if dtype is None and a.dtype.kind in "iub" else dtype


def _checked(a: Any, where: Any) -> None:
    if not is_wrapped(a) or a.dtype.kind not in "biufc":
        raise Unserved
    if not (where is NOTHING or where is True):
        raise Unserved


@implements(np.mean)
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOTHING, *,
    where: Any = NOTHING,
) -> Any:  # fmt: skip
    """Return the arithmetic mean."""
    if is_array(where) and where.dtype == np.bool_:
        return _mean_where(a, axis, dtype, out, keepdims, where)
    _checked(a, where)
    count = _items(a, axis)
    if count == 0:
        raise Unserved  # NumPy gives the warning
    half = dtype is None and a.dtype == np.float16
    total = reduce_array(
        add, a, axis, np.dtype("f4") if half else _wide(a, dtype), out, **_given(keepdims=keepdims)
    )
    if not half:
        return _divide(total, count)
    if is_array(total):
        result = _divide(total, count)
        return result if out is not None else result.astype(np.float16)
    return np.float16(total / count)


def _mean_where(a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, where: Any) -> Any:
    """Return the mean of the elements that a mask selects."""
    _checked(a, NOTHING)
    if out is not None or a.dtype == np.float16 or not a.size or where.ndim > a.ndim:
        raise Unserved
    given = _given(keepdims=keepdims)
    total = reduce_array(add, a, axis, _wide(a, dtype), where=where, **given)
    where = where if where.shape == a.shape else np.broadcast_to(where, a.shape)
    count = reduce_array(add, where, axis, np.intp, **given)
    if np.any(count == 0):
        warnings.warn("Mean of empty slice", RuntimeWarning, stacklevel=3)
    return _divide(total, count)


def _squares(a: Any, center: Any) -> Any:
    x = np.subtract(a, center)
    if x.dtype.kind == "c":
        return np.square(x.real) + np.square(x.imag)
    return np.square(x)


@implements(np.var)
def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NOTHING, *,
    where: Any = NOTHING, mean: Any = NOTHING, correction: Any = NOTHING,
) -> Any:  # fmt: skip
    """Return the variance."""
    _checked(a, where)
    if correction is not NOTHING:
        if ddof != 0:
            raise Unserved
        ddof = correction
    count = _items(a, axis)
    if not isinstance(ddof, (int, float)) or ddof >= count or a.dtype == np.float16 or a.dtype == np.bool_:
        raise Unserved
    dtype = _wide(a, dtype)
    if mean is NOTHING:
        mean = _divide(reduce_array(add, a, axis, dtype, keepdims=True), count)
    total = reduce_array(add, _squares(a, mean), axis, dtype, out, **_given(keepdims=keepdims))
    return _divide(total, np.maximum(count - ddof, 0))


@implements(np.std)
def std(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NOTHING, *,
    where: Any = NOTHING, mean: Any = NOTHING, correction: Any = NOTHING,
) -> Any:  # fmt: skip
    """Return the standard deviation."""
    _checked(a, where)
    if a.dtype == np.float16 or a.dtype == np.bool_ or not isinstance(ddof, (int, float)):
        raise Unserved
    if dtype is not None and np.dtype(dtype).kind not in "fc":
        raise Unserved  # NumPy raises an error in the end; its warnings before that must come once
    if ddof >= _items(a, axis) or (correction is not NOTHING and correction >= _items(a, axis)):
        raise Unserved
    result = var(a, axis, dtype, out, ddof, keepdims, where=where, **_given(mean=mean, correction=correction))
    if is_array(result):
        return np.sqrt(result, out=result)
    return result.dtype.type(np.sqrt(result))


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOTHING) -> Any:
    """Return the largest element minus the smallest."""
    given = _given(keepdims=keepdims)
    high = reduce_array(maximum, a, axis, None, out, **given)
    return np.subtract(high, reduce_array(minimum, a, axis, None, None, **given), out)


@implements(np.average)
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = NOTHING
) -> Any:
    """Return the weighted mean."""
    if returned:
        raise Unserved
    a = operand(a)
    given = _given(keepdims=keepdims)
    axes_of(axis, a.ndim)  # NumPy's errors differ from those of its mean
    if weights is None:
        if not a.size:
            raise Unserved
        return np.mean(a, axis, **given)
    w = operand(weights)
    if w.shape != a.shape:
        if type(axis) is not int or w.ndim != 1 or not -a.ndim <= axis < a.ndim:
            raise Unserved
        axis %= a.ndim
        if w.shape[0] != a.shape[axis]:
            raise Unserved
        w = w.reshape((-1,) + (1,) * (a.ndim - axis - 1))
        w = np.broadcast_to(w, a.shape[:axis] + w.shape) if given else w
    if a.dtype.kind not in "biufc" or w.dtype.kind not in "biufc" or (w.shape != a.shape and given):
        raise Unserved
    dtype = np.result_type(a.dtype, w.dtype, *(["f8"] if a.dtype.kind in "iub" else []))
    if w.shape == a.shape:
        scale = reduce_array(add, w, axis, dtype, **given)
    else:
        scale = reduce_array(add, w, None, dtype)
    if np.any(scale == 0.0):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    return reduce_array(add, np.multiply(a.astype(dtype, copy=False), w), axis, **given) / scale


def without_nan(a: Any, value: float) -> tuple[Any, Any]:
    """Return ``a`` with its NaNs replaced, and their mask (None if the dtype has no NaN)."""
    if not is_wrapped(a) or a.dtype.kind not in "biufc":
        raise Unserved
    if a.dtype.kind not in "fc":
        return a, None
    mask = np.isnan(a)
    return elementwise("where", (mask, a.dtype.type(value), a)), mask


def _ratio(total: Any, count: Any) -> Any:
    with np.errstate(invalid="ignore", divide="ignore"):
        return _divide(total, count)


@implements(np.nanmean)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOTHING, *,
    where: Any = NOTHING,
) -> Any:  # fmt: skip
    """Return the mean, NaNs left out."""
    _checked(a, where)
    if a.dtype.kind not in "fc" or a.dtype == np.float16 or dtype is not None or out is not None:
        raise Unserved
    given = _given(keepdims=keepdims)
    values, mask = without_nan(a, 0)
    count = reduce_array(add, ~mask, axis, np.intp, **given)
    total = reduce_array(add, values, axis, **given)
    result = _ratio(total, count)
    if np.any(count == 0):
        warnings.warn("Mean of empty slice", RuntimeWarning, stacklevel=3)
    return result


def _nanvar(a: Any, axis: Any, ddof: Any, keepdims: Any, where: Any, *others: Any) -> Any:
    _checked(a, where)
    if any(others) or a.dtype.kind != "f" or a.dtype == np.float16 or not isinstance(ddof, (int, float)):
        raise Unserved
    values, mask = without_nan(a, 0)
    count = reduce_array(add, ~mask, axis, np.intp, keepdims=True)
    center = _ratio(reduce_array(add, values, axis, keepdims=True), count)
    squares = elementwise("where", (mask, a.dtype.type(0), np.square(np.subtract(values, center))))
    keep = bool(keepdims is not NOTHING and keepdims)
    total = reduce_array(add, squares, axis, keepdims=keep)
    free = (count if keep else reduce_array(add, ~mask, axis, np.intp)) - ddof
    result = _ratio(total, free)
    too_few = free <= 0
    if np.any(too_few):
        warnings.warn("Degrees of freedom <= 0 for slice.", RuntimeWarning, stacklevel=4)
        nan = a.dtype.type(np.nan)
        result = elementwise("where", (too_few, nan, result)) if is_array(result) else nan
    return result


@implements(np.nanvar)
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NOTHING, *,
    where: Any = NOTHING, **more: Any,
) -> Any:  # fmt: skip
    """Return the variance, NaNs left out."""
    return _nanvar(a, axis, ddof, keepdims, where, dtype is not None, out is not None, more)


@implements(np.nanstd)
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NOTHING, *,
    where: Any = NOTHING, **more: Any,
) -> Any:  # fmt: skip
    """Return the standard deviation, NaNs left out."""
    result = _nanvar(a, axis, ddof, keepdims, where, dtype is not None, out is not None, more)
    return np.sqrt(result, out=result) if is_array(result) else result.dtype.type(np.sqrt(result))


@implements(np.trace)
def trace_(
    a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None
) -> Any:
    """Return the sum of a diagonal."""
    if not is_wrapped(a) or a.ndim < 2 or is_distributed(a):
        raise Unserved
    diagonal = np.diagonal(a, offset, axis1, axis2)
    if out is None and a._small is None:
        prefer_numpy([a], diagonal.size)
    return reduce_array(add, diagonal, -1, dtype, out)
