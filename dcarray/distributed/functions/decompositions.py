"""Decompositions of NumPy's functions into others that have distributed implementations."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from dcarray.api.array import ndarray
from dcarray.api.functions.common import is_array, operand, plain_key
from dcarray.distributed.function_dispatch import require
from dcarray.distributed.ranges import distributed_range

from .numpy_source import decomposition_of


def _arange(*args: Any) -> Any:
    """Return `numpy.arange`, distributed where it is large."""
    array = distributed_range("arange", args)
    return np.arange(*args) if array is None else array


# ---- order -------------------------------------------------------------------------------------------
@decomposition_of(np.lexsort)
def _lexsort(keys: Any, axis: Any = -1) -> Any:
    order: Any = None
    for key in map(operand, keys):
        at = normalize_axis_index(axis, key.ndim)
        if order is None:
            order = np.argsort(key, at, kind="stable")
        else:
            beyond = np.argsort(np.take_along_axis(key, order, at), at, kind="stable")
            order = np.take_along_axis(order, beyond, at)
    require(order is not None)
    return order


def _extreme(find: Any, extreme: Any) -> Callable[..., Any]:
    def body(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        """Return the index of the first extreme complex number, or of the first NaN."""
        require(out is None and a.dtype.kind == "c" and a.size)
        most = extreme(a, axis, keepdims=True)
        is_most = np.where(np.isnan(most), np.isnan(a), a == most)
        return find(is_most, axis, keepdims=True) if keepdims is True else find(is_most, axis)

    return body


decomposition_of(np.argmax)(_extreme(np.argmax, np.max))
decomposition_of(np.argmin)(_extreme(np.argmax, np.min))


# ---- elements ----------------------------------------------------------------------------------------
@decomposition_of(np.choose)
def _choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Any:
    a, given = operand(a), list(choices)
    require(out is None and a.dtype.kind in "biu" and given and mode in ("raise", "wrap", "clip"))
    n = len(given)
    likes = [np.empty(0, c.dtype) if is_array(c) else c for c in given]
    dtype = np.choose(np.empty(0, np.intp), likes).dtype
    if mode == "wrap":
        a = np.mod(a, n)
    elif mode == "raise":
        require(not bool(((a < 0) | (a >= n)).any()))
    chosen: Any = np.asarray(given[-1], dtype) if not is_array(given[-1]) else given[-1].astype(dtype)
    for k in range(n - 2, -1, -1):
        one = given[k].astype(dtype) if is_array(given[k]) else np.asarray(given[k], dtype)
        chosen = np.where(a <= k, one, chosen)
    return np.where(a < n, chosen, chosen) if n == 1 else chosen


@decomposition_of(np.take)
def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
    index = operand(indices)
    require(out is None and type(a) is ndarray and index.dtype.kind in "iu")
    require(mode in ("raise", "wrap", "clip"))
    if axis is None:
        a, axis = a.ravel(), 0
    at = normalize_axis_index(axis, a.ndim)
    n = a.shape[at]
    require(n)
    if mode == "wrap":
        index = np.mod(index, n)
    elif mode == "clip":
        index = np.clip(index, 0, n - 1)
    return a[plain_key(a.ndim, at, index if index.ndim else int(index))]


@decomposition_of(np.isreal)
def _isreal(x: Any) -> Any:
    require(x.dtype.kind in "biuf")
    return np.ones_like(x, np.bool_)


@decomposition_of(np.ravel_multi_index)
def _ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: Any = "C") -> Any:
    indices, shape = list(map(operand, multi_index)), dims if isinstance(dims, tuple) else (dims,)
    require(mode == "raise" and order == "C" and len(indices) == len(shape) and shape)
    flat: Any = 0
    for index, n in zip(indices, shape, strict=True):
        require(index.dtype.kind in "iu" and not bool(((index < 0) | (index >= n)).any()))
        flat = flat * int(n) + index.astype(np.intp)
    return flat


@decomposition_of(np.unravel_index)
def _unravel_index(indices: Any, shape: Any, order: Any = "C") -> Any:
    size = math.prod(shape)
    require(indices.dtype.kind in "iu" and order == "C")
    require(not bool(((indices < 0) | (indices >= size)).any()))
    quotient, places = indices.astype(np.intp), []
    for n in reversed(shape[1:]):
        places.append(quotient % n)
        quotient = quotient // n
    return (quotient, *places[::-1])


@decomposition_of(np.interp)
def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Interpolate element by element, by NumPy's formulas."""
    require(period is None and is_array(xp) and is_array(fp) and xp.ndim == 1 and xp.shape == fp.shape)
    require(all(a.dtype.kind in "biuf" for a in (xp, fp, operand(x))) and len(xp))
    require(bool((xp[1:] >= xp[:-1]).all()))  # else NumPy's result depends on its search
    ends = [fp[0] if left is None else left, fp[-1] if right is None else right]
    require(not any(isinstance(end, (complex, np.complexfloating)) or np.ndim(end) for end in ends))
    xs, knots, values = (a.astype(np.float64) for a in (np.atleast_1d(operand(x)), xp, fp))
    n = len(xp)
    place = np.searchsorted(knots, xs, "right") - 1
    low = np.clip(place, 0, max(n - 2, 0))
    high = np.minimum(low + 1, n - 1)
    x0, x1, y0, y1 = knots[low], knots[high], values[low], values[high]
    with np.errstate(all="ignore"):
        slope = (y1 - y0) / (x1 - x0)
        y = slope * (xs - x0) + y0
        other = slope * (xs - x1) + y1
        y = np.where(np.isnan(y), np.where(np.isnan(other) & (y0 == y1), y0, other), y)
    y = np.where(xs == x0, y0, y)
    y = np.where(place >= n - 1, y1, y)
    y = np.where(xs > knots[-1], ends[1], np.where(place < 0, ends[0], y))
    y = np.where(np.isnan(xs), xs, y)
    return y.reshape(np.shape(x)) if np.ndim(x) else y[0]


@decomposition_of(np.linspace)
def _linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: Any = True, retstep: Any = False, dtype: Any = None,
    axis: Any = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    """Return ramps between the elements of arrays, by NumPy's formulas."""
    num = operator.index(num)
    require(not retstep and device is None and num >= 0)
    kind = np.result_type(*[np.empty(0, v.dtype) if is_array(v) else v for v in (start, stop)])
    kind = kind if kind.kind in "fc" else np.result_type(kind, 1.0)
    first, last = (v.astype(kind) if is_array(v) else kind.type(v) for v in (start, stop))
    delta = last - first
    ramps: Any = _arange(num).astype(kind).reshape((-1,) + (1,) * delta.ndim)
    parts = num - 1 if endpoint else num
    step = delta / parts if parts > 0 else None
    if step is None:
        ramps = ramps * delta
    elif bool(np.any(step == 0)):
        ramps = ramps / parts * delta
    else:
        ramps = ramps * step
    ramps = ramps + start
    if endpoint and num > 1:
        ramps[-1, ...] = stop
    ramps = np.moveaxis(ramps, 0, axis) if axis else ramps
    if dtype is not None and np.issubdtype(dtype, np.integer):
        ramps = np.floor(ramps)
    return ramps.astype(dtype or kind, copy=False)


# ---- products and systems ----------------------------------------------------------------------------
@decomposition_of(np.linalg.inv)
def _inv(a: Any) -> Any:
    require(a.ndim == 2 and a.dtype.kind in "biufc")
    one = np.zeros_like(a)
    np.fill_diagonal(one, 1)
    return np.linalg.solve(a, one)


@decomposition_of(np.linalg.cholesky)
def _cholesky(a: Any, /, *, upper: Any = False) -> Any:
    require(upper and a.ndim == 2)
    return np.linalg.cholesky(np.conj(a.T)).T.conj()


@decomposition_of(np.linalg.svd)
def _svd(a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    require(not compute_uv and not hermitian and a.ndim == 2 and a.shape[0] < a.shape[1])
    return np.linalg.svd(np.conj(a.T), compute_uv=False)


@decomposition_of(np.linalg.pinv)
def _pinv(a: Any, rcond: Any = None, hermitian: Any = False, *, rtol: Any = np._NoValue) -> Any:
    require(not hermitian and a.ndim == 2 and a.shape[0] < a.shape[1])
    return np.conj(np.linalg.pinv(np.conj(a.T), rcond, rtol=rtol).T)


@decomposition_of(np.linalg.svdvals)
def _svdvals(x: Any, /) -> Any:
    return np.linalg.svd(x, compute_uv=False)


@decomposition_of(np.einsum_path)
def _einsum_path(*operands: Any, **kwargs: Any) -> Any:
    """Return the path for arrays of the same shapes without memory."""
    likes = [np.broadcast_to(np.empty((), a.dtype), a.shape) if type(a) is ndarray else a for a in operands]
    return np.einsum_path(*likes, **kwargs)


@decomposition_of(np.einsum)
def _einsum(*operands: Any, out: Any = None, optimize: Any = False, **kwargs: Any) -> Any:
    """Contract two operands at a time."""
    require(out is None and not kwargs and len(operands) >= 4 and isinstance(operands[0], str))
    path: Any = np.einsum_path
    factors, steps = path(*operands, optimize=optimize or True, einsum_call=True)
    arrays = [operand(a) for a in operands[1:]]
    require(len(factors) == len(arrays))
    for step in steps:
        text = next(part for part in step if isinstance(part, str) and "->" in part)
        # with optimize NumPy warns, and a result without axes is an array
        optimized = bool(optimize) and text[-1] != ">"
        arrays.append(np.einsum(text, *[arrays.pop(k) for k in step[0]], optimize=optimized))
    return arrays[0]


@decomposition_of(np.repeat)
def _repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """Repeat each element by a count of its own."""
    x, counts = operand(a), operand(repeats)
    require(counts.ndim == 1 and counts.dtype.kind in "biu" and np.can_cast(counts.dtype, np.intp, "safe"))
    x, axis = (x.reshape(-1), 0) if axis is None else (x, normalize_axis_index(axis, x.ndim))
    require(counts.shape == x.shape[axis : axis + 1] and counts.size and counts.min() >= 0)
    require(int(counts.max()) * counts.size < 2**62)
    ends = np.cumsum(counts.astype(np.intp))
    return np.take(x, np.searchsorted(ends, _arange(int(ends[-1])), "right"), axis)


def _vecdot(x1: Any, x2: Any, /, axis: Any = -1) -> Any:
    require(axis == -1)
    a, b = _vectors(x1, x2)
    return np.add.reduce(np.multiply(np.conj(a), b), -1)


def _matvec(x1: Any, x2: Any, /) -> Any:
    a, b = _vectors(x1, x2)
    return np.matmul(a, b[..., None])[..., 0]


def _vecmat(x1: Any, x2: Any, /) -> Any:
    a, b = _vectors(x1, x2)
    return np.matmul(np.conj(a)[..., None, :], b)[..., 0, :]


def _vectors(*operands: Any) -> list[Any]:
    arrays = [operand(a) for a in operands]
    require(all(a.dtype.kind in "iufc" and a.ndim for a in arrays))
    return arrays


for _name, _body in (("vecdot", _vecdot), ("matvec", _matvec), ("vecmat", _vecmat)):
    decomposition_of(getattr(np, _name))(_body)
