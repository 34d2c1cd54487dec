"""Decompositions of NumPy's functions into others that have distributed implementations."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.api.functions.common import axis_of, is_array, operand, plain_key
from dcarray.api.functions.registry import Unserved
from dcarray.comm.algorithms.unique import unique_rows
from dcarray.core.backend import NOT_DISTRIBUTED
from dcarray.distributed.function_dispatch import dist_array_of, run_distributed
from dcarray.distributed.ranges import distributed_range

from .numpy_source import DECOMPOSITIONS

__all__ = ["decomposition_of"]


def _arange(*args: Any) -> Any:
    """`numpy.arange`, distributed where it is large."""
    found = distributed_range("arange", args)
    return np.arange(*args) if found is None else found


def decomposition_of(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that makes a function the decomposition of NumPy's; where it raises, NumPy is called."""

    def enter(body: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            DECOMPOSITIONS[function] = body
        return body

    return enter


# ---- order -------------------------------------------------------------------------------------------
@decomposition_of(np.lexsort)
def _lexsort(keys: Any, axis: Any = -1) -> Any:
    order: Any = None
    for key in map(operand, keys):
        at = axis_of(axis, key.ndim)
        if order is None:
            order = np.argsort(key, at, kind="stable")
        else:
            beyond = np.argsort(np.take_along_axis(key, order, at), at, kind="stable")
            order = np.take_along_axis(order, beyond, at)
    if order is None:
        raise Unserved
    return order


def _extreme(find: Any, extreme: Any) -> Callable[..., Any]:
    def body(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        """The index of the first extreme complex number, or of the first NaN."""
        if out is not None or a.dtype.kind != "c" or not a.size:
            raise Unserved
        most = extreme(a, axis, keepdims=True)
        found = np.where(np.isnan(most), np.isnan(a), a == most)
        return find(found, axis, keepdims=True) if keepdims is True else find(found, axis)

    return body


decomposition_of(np.argmax)(_extreme(np.argmax, np.max))
decomposition_of(np.argmin)(_extreme(np.argmax, np.min))


@decomposition_of(np.unique)
def _unique(
    ar: Any, return_index: Any = False, return_inverse: Any = False, return_counts: Any = False,
    axis: Any = None, *, equal_nan: Any = True, sorted: Any = True,
) -> Any:  # fmt: skip
    """Unique subarrays along an axis, as rows of a matrix."""
    at = axis_of(axis, ar.ndim)
    shape = np.moveaxis(np.broadcast_to(np.int8(0), ar.shape), at, 0).shape
    if ar.ndim < 2 or not ar.size or ar.dtype.char not in "?bBhHiIlLqQefdg":
        raise Unserved
    table = np.moveaxis(ar, at, 0).reshape(shape[0], ar.size // shape[0])
    found = run_distributed(_rows, (table,), {}, "unique")
    if found is NOT_DISTRIBUTED:
        raise Unserved
    values = np.moveaxis(found[0].reshape(len(found[0]), *shape[1:]), 0, at)
    asked = zip(found[1:], (return_index, return_inverse, return_counts), strict=True)
    others = tuple([one for one, wanted in asked if wanted])
    return (values, *others) if others else values


def _rows(table: Any) -> Any:
    x = dist_array_of(table)
    return NOT_DISTRIBUTED if x is None else unique_rows(x)


@decomposition_of(np.setdiff1d)
def _setdiff1d(ar1: Any, ar2: Any, assume_unique: Any = False) -> Any:
    first, second = (operand(a).ravel() if assume_unique else np.unique(operand(a)) for a in (ar1, ar2))
    return first[np.isin(first, second, assume_unique=True, invert=True)]


@decomposition_of(np.searchsorted)
def _searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    if not is_array(sorter) or sorter.shape != a.shape or sorter.dtype.kind not in "iu":
        raise Unserved
    return np.searchsorted(a[sorter], v, side)


@decomposition_of(np.digitize)
def _digitize(x: Any, bins: Any, right: Any = False) -> Any:
    if x.dtype.kind not in "iufb" or bins.ndim != 1:
        raise Unserved
    side: Any = "left" if right else "right"
    if bool((bins[1:] >= bins[:-1]).all()):
        return np.searchsorted(bins, x, side)
    if not bool((bins[1:] <= bins[:-1]).all()):
        raise Unserved
    return len(bins) - np.searchsorted(bins[::-1].copy(), x, side)


# ---- elements ----------------------------------------------------------------------------------------
@decomposition_of(np.choose)
def _choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Any:
    a, given = operand(a), list(choices)
    if out is not None or a.dtype.kind not in "biu" or not given or mode not in ("raise", "wrap", "clip"):
        raise Unserved
    n = len(given)
    likes = [np.empty(0, c.dtype) if is_array(c) else c for c in given]
    dtype = np.choose(np.empty(0, np.intp), likes).dtype
    if mode == "wrap":
        a = np.mod(a, n)
    elif mode == "raise" and bool(((a < 0) | (a >= n)).any()):
        raise Unserved
    found: Any = np.asarray(given[-1], dtype) if not is_array(given[-1]) else given[-1].astype(dtype)
    for k in range(n - 2, -1, -1):
        one = given[k].astype(dtype) if is_array(given[k]) else np.asarray(given[k], dtype)
        found = np.where(a <= k, one, found)
    return np.where(a < n, found, found) if n == 1 else found


@decomposition_of(np.take)
def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
    if out is not None or type(a) is not ndarray:
        raise Unserved
    index = operand(indices)
    if index.dtype.kind not in "iu":
        raise Unserved
    if axis is None:
        a, axis = a.ravel(), 0
    at = axis_of(axis, a.ndim)
    n = a.shape[at]
    if not n:
        raise Unserved
    if mode == "wrap":
        index = np.mod(index, n)
    elif mode == "clip":
        index = np.clip(index, 0, n - 1)
    elif mode != "raise":
        raise Unserved
    return a[plain_key(a.ndim, at, index if index.ndim else int(index))]


@decomposition_of(np.isreal)
def _isreal(x: Any) -> Any:
    if x.dtype.kind not in "biuf":
        raise Unserved
    return np.ones_like(x, np.bool_)


@decomposition_of(np.ravel_multi_index)
def _ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: Any = "C") -> Any:
    indices, shape = list(map(operand, multi_index)), dims if isinstance(dims, tuple) else (dims,)
    if mode != "raise" or order != "C" or len(indices) != len(shape) or not shape:
        raise Unserved
    found: Any = 0
    for index, n in zip(indices, shape, strict=True):
        if index.dtype.kind not in "iu" or bool(((index < 0) | (index >= n)).any()):
            raise Unserved
        found = found * int(n) + index.astype(np.intp)
    return found


@decomposition_of(np.unravel_index)
def _unravel_index(indices: Any, shape: Any, order: Any = "C") -> Any:
    size = math.prod(shape)
    if indices.dtype.kind not in "iu" or order != "C" or bool(((indices < 0) | (indices >= size)).any()):
        raise Unserved
    left, found = indices.astype(np.intp), []
    for n in reversed(shape[1:]):
        found.append(left % n)
        left = left // n
    return (left, *found[::-1])


@decomposition_of(np.interp)
def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Elementwise, by NumPy's formulas."""
    if period is not None or not (is_array(xp) and is_array(fp)) or xp.ndim != 1 or xp.shape != fp.shape:
        raise Unserved
    if any(a.dtype.kind not in "biuf" for a in (xp, fp, operand(x))) or not len(xp):
        raise Unserved
    if not bool((xp[1:] >= xp[:-1]).all()):
        raise Unserved  # NumPy's result depends on its search
    ends = [fp[0] if left is None else left, fp[-1] if right is None else right]
    if any(isinstance(end, (complex, np.complexfloating)) or np.ndim(end) for end in ends):
        raise Unserved
    xs, knots, values = (a.astype(np.float64) for a in (np.atleast_1d(operand(x)), xp, fp))
    n = len(xp)
    place = np.searchsorted(knots, xs, "right") - 1
    low = np.clip(place, 0, max(n - 2, 0))
    high = np.minimum(low + 1, n - 1)
    x0, x1, y0, y1 = knots[low], knots[high], values[low], values[high]
    with np.errstate(all="ignore"):
        slope = (y1 - y0) / (x1 - x0)
        found = slope * (xs - x0) + y0
        other = slope * (xs - x1) + y1
        found = np.where(np.isnan(found), np.where(np.isnan(other) & (y0 == y1), y0, other), found)
    found = np.where(xs == x0, y0, found)
    found = np.where(place >= n - 1, y1, found)
    found = np.where(xs > knots[-1], ends[1], np.where(place < 0, ends[0], found))
    found = np.where(np.isnan(xs), xs, found)
    return found.reshape(np.shape(x)) if np.ndim(x) else found[0]


@decomposition_of(np.linspace)
def _linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: Any = True, retstep: Any = False, dtype: Any = None,
    axis: Any = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    """Between elements of arrays, by NumPy's formulas."""
    num = operator.index(num)
    if retstep or device is not None or num < 0:
        raise Unserved
    kind = np.result_type(*[np.empty(0, v.dtype) if is_array(v) else v for v in (start, stop)])
    kind = kind if kind.kind in "fc" else np.result_type(kind, 1.0)
    first, last = (v.astype(kind) if is_array(v) else kind.type(v) for v in (start, stop))
    delta = last - first
    found: Any = _arange(num).astype(kind).reshape((-1,) + (1,) * delta.ndim)
    parts = num - 1 if endpoint else num
    step = delta / parts if parts > 0 else None
    if step is None:
        found = found * delta
    elif bool(np.any(step == 0)):
        found = found / parts * delta
    else:
        found = found * step
    found = found + start
    if endpoint and num > 1:
        found[-1, ...] = stop
    found = np.moveaxis(found, 0, axis) if axis else found
    if dtype is not None and np.issubdtype(dtype, np.integer):
        found = np.floor(found)
    return found.astype(dtype or kind, copy=False)


# ---- products and systems ----------------------------------------------------------------------------
@decomposition_of(np.linalg.inv)
def _inv(a: Any) -> Any:
    if a.ndim != 2 or a.dtype.kind not in "biufc":
        raise Unserved
    one = np.zeros_like(a)
    np.fill_diagonal(one, 1)
    return np.linalg.solve(a, one)


@decomposition_of(np.linalg.cholesky)
def _cholesky(a: Any, /, *, upper: Any = False) -> Any:
    if not upper or a.ndim != 2:
        raise Unserved
    return np.linalg.cholesky(np.conj(a.T)).T.conj()


@decomposition_of(np.linalg.svd)
def _svd(a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    if compute_uv or hermitian or a.ndim != 2 or a.shape[0] >= a.shape[1]:
        raise Unserved
    return np.linalg.svd(np.conj(a.T), compute_uv=False)


@decomposition_of(np.linalg.pinv)
def _pinv(a: Any, rcond: Any = None, hermitian: Any = False, *, rtol: Any = np._NoValue) -> Any:
    if hermitian or a.ndim != 2 or a.shape[0] >= a.shape[1]:
        raise Unserved
    return np.conj(np.linalg.pinv(np.conj(a.T), rcond, rtol=rtol).T)


@decomposition_of(np.linalg.svdvals)
def _svdvals(x: Any, /) -> Any:
    return np.linalg.svd(x, compute_uv=False)


@decomposition_of(np.einsum_path)
def _einsum_path(*operands: Any, **kwargs: Any) -> Any:
    """By arrays of the same shapes without memory."""
    likes = [np.broadcast_to(np.empty((), a.dtype), a.shape) if type(a) is ndarray else a for a in operands]
    return np.einsum_path(*likes, **kwargs)


@decomposition_of(np.einsum)
def _einsum(*operands: Any, out: Any = None, optimize: Any = False, **kwargs: Any) -> Any:
    """By contractions of two operands each."""
    if out is not None or kwargs or len(operands) < 4 or not isinstance(operands[0], str):
        raise Unserved
    path: Any = np.einsum_path
    left, steps = path(*operands, optimize=optimize or True, einsum_call=True)
    held = [operand(a) for a in operands[1:]]
    if len(left) != len(held):
        raise Unserved
    for step in steps:
        text = next(part for part in step if isinstance(part, str) and "->" in part)
        said = (
            bool(optimize) and text[-1] != ">"
        )  # with optimize NumPy warns, and a result without axes is an array
        held.append(np.einsum(text, *[held.pop(k) for k in step[0]], optimize=said))
    return held[0]


@decomposition_of(np.repeat)
def _repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """With a count for each element."""
    x, counts = operand(a), operand(repeats)
    if counts.ndim != 1 or counts.dtype.kind not in "biu" or not np.can_cast(counts.dtype, np.intp, "safe"):
        raise Unserved
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis_of(axis, x.ndim))
    if counts.shape != x.shape[axis : axis + 1] or not counts.size or counts.min() < 0:
        raise Unserved
    if int(counts.max()) * counts.size >= 2**62:
        raise Unserved
    ends = np.cumsum(counts.astype(np.intp))
    return np.take(x, np.searchsorted(ends, _arange(int(ends[-1])), "right"), axis)


@decomposition_of(np.polymul)
def _polymul(a1: Any, a2: Any) -> Any:
    if isinstance(a1, np.poly1d) or isinstance(a2, np.poly1d):
        raise Unserved
    factors = [np.trim_zeros(operand(a), "f") for a in (a1, a2)]
    if any(a.ndim != 1 or not a.size for a in factors):
        raise Unserved
    return np.convolve(*factors)


def _vecdot(x1: Any, x2: Any, /, axis: Any = -1) -> Any:
    if axis != -1:
        raise Unserved
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
    if any(a.dtype.kind not in "iufc" or not a.ndim for a in arrays):
        raise Unserved
    return arrays


for _name, _body in (("vecdot", _vecdot), ("matvec", _matvec), ("vecmat", _vecmat)):
    if hasattr(np, _name):  # newer than NumPy 2.0
        decomposition_of(getattr(np, _name))(_body)
