"""Helpers of the topic modules: operands, views with other axes, new results."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.api.array import ndarray, wrap
from dcarray.core import window
from dcarray.core.backend import is_distributed
from dcarray.core.config import current
from dcarray.core.handle import large
from dcarray.core.strides import columns_first, contiguous, strides_of
from dcarray.recording.recorder import empty

from .registry import Unserved

NOTHING: Any = np._NoValue  # NumPy's own "argument not given"


# NumPy's stubs know these with plain arrays only
add: Any = np.add
maximum: Any = np.maximum
minimum: Any = np.minimum
matmul: Any = np.matmul
rint: Any = np.rint


def is_wrapped(value: Any) -> bool:
    """Whether a value is a wrapped array."""
    return type(value) is ndarray


def is_array(value: Any) -> bool:
    """Whether a value is a wrapped or a plain array (no subclass)."""
    return type(value) is ndarray or type(value) is np.ndarray


def reduce_array(
    ufunc: np.ufunc, a: Any, axis: Any = 0, dtype: Any = None, out: Any = None, **given: Any
) -> Any:
    """Return ``ufunc.reduce``, without NumPy's dispatch for wrapped arrays: NumPy 2.4 leaks an array whose
    ``__array_ufunc__`` raises there."""
    if type(a) is ndarray and out is None:
        if dtype is not None:
            given["dtype"] = dtype
        result = a.__array_ufunc__(ufunc, "reduce", a, axis=axis, **given)
        if result is not NotImplemented:
            return result
    return ufunc.reduce(a, axis, dtype, out, **given)


def operand(value: Any) -> Any:
    """Return an operand as an array: sequences and scalars converted, arrays as they are.

    A plain array may be changed by its owner later: slice it and pass it to a ufunc, which copies it, but
    never wrap it.

    Raises
    ------
    Unserved
        For objects that define their own meaning as an array, such as subclasses.
    """
    kind = type(value)
    if kind is ndarray or kind is np.ndarray:
        return value
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return np.asarray(value)
    if kind is list or kind is tuple:
        array = np.asarray(value)
        if array.dtype != object:
            return array
    raise Unserved


def plain_key(ndim: int, axis: int, key: Any) -> tuple[Any, ...]:
    """Return the index that applies ``key`` along one axis."""
    return (slice(None),) * axis + (key,) + (slice(None),) * (ndim - axis - 1)


def expand(x: Any, *axes: int) -> Any:
    """Return ``x`` with axes of length 1 at these positions of the result, which are in ascending order."""
    key: list[Any] = [slice(None)] * (x.ndim + len(axes))
    for axis in axes:
        key[axis] = None
    return x[tuple(key)]


def new_array(shape: tuple[int, ...], dtype: Any, order: str = "C") -> Any:
    """Return a new wrapped array without content."""
    if order == "F" and len(shape) > 1:
        return empty(ndarray, shape[::-1], np.dtype(dtype)).transpose()
    return empty(ndarray, shape, np.dtype(dtype))


def eager_arrays(*arrays: Any) -> list[Any] | None:
    """Return plain arrays for the arrays if nothing is pending on any and NumPy may use them at once; else
    None."""
    if not current().eager_below or not all(x._idle() for x in arrays if type(x) is ndarray):
        return None
    return [plain(x) for x in arrays]


def plain(x: Any) -> Any:
    """Return the evaluated plain array of a wrapped one; anything else as it is."""
    return x._evaluated() if type(x) is ndarray else x


def contiguous_array(x: Any) -> Any:
    """Return the elements of an array as a contiguous plain array."""
    return np.require(plain(x), requirements=("C", "A"))


def vector(a: Any) -> Any:
    """Return a non-empty vector of real numbers as an array, on which work may be pending.

    Raises
    ------
    Unserved
        For anything else, and for distributed arrays.
    """
    if type(a) in (list, tuple) and set(map(type, a)) <= {int, float}:
        a = np.array(a)
    if not is_array(a) or a.ndim != 1 or not a.size or a.dtype.kind not in "biuf" or is_distributed(a):
        raise Unserved
    return a


def new_array_like(x: Any, dtype: Any = None, shape: tuple[int, ...] | None = None, order: str = "K") -> Any:
    """Return a new wrapped array like ``x`` in shape, dtype and memory order, where these are not given."""
    dtype = x.dtype if dtype is None else np.dtype(dtype)
    shape = x.shape if shape is None else shape
    if order == "A":
        order = "F" if columns_first(x) else "C"
    if order != "K" or len(shape) != x.ndim:
        return new_array(shape, dtype, "F" if order == "F" else "C")
    strides = strides_of(x)
    if contiguous(x.shape, strides):
        return new_array(shape, dtype)
    if columns_first(x):
        return new_array(shape, dtype, "F")
    # like NumPy: the new axes in memory in the order of the old strides
    axes = sorted(range(len(shape)), key=lambda k: (-abs(strides[k]), k))
    back = sorted(range(len(shape)), key=axes.__getitem__)
    return new_array(tuple(shape[k] for k in axes), dtype).transpose(back)


def _view(x: Any, shape: tuple[int, ...], maps: list[tuple[int, int, int | None]], readonly: bool) -> Any:
    """Return a view: each old axis is ``start + step * i[new axis]``."""
    result = large(ndarray, x._store, shape, window.apply(x._window(), maps))
    result._readonly = readonly or x._readonly
    return result


def broadcast(x: Any, shape: tuple[int, ...]) -> Any:
    """Return a read-only view in a shape to which ``x`` broadcasts."""
    if x._small is not None:
        return wrap(np.broadcast_to(x._small, shape))
    more = len(shape) - x.ndim
    maps: list[tuple[int, int, int | None]] = [
        (0, 1, k + more) if n == shape[k + more] else (0, 0, None) for k, n in enumerate(x.shape)
    ]
    return _view(x, shape, maps, True)


def diagonal_view(a: Any, offset: int, first: int, second: int, writeable: bool = False) -> Any:
    """Return the view of a diagonal of two axes, as the last axis."""
    if type(a) is np.ndarray or a._small is not None:
        plain = a if type(a) is np.ndarray else a._small
        diagonal = plain.diagonal(offset, first, second)
        diagonal.flags.writeable = writeable and plain.flags.writeable
        return diagonal if type(a) is np.ndarray else wrap(diagonal)
    down, right = max(-offset, 0), max(offset, 0)
    n = max(min(a.shape[first] - down, a.shape[second] - right), 0)
    a._store.permuted = True
    other_axes = [k for k in range(a.ndim) if k not in (first, second)]
    maps: list[tuple[int, int, int | None]] = []
    for k in range(a.ndim):
        if k in (first, second):
            start = down if k == first else right
            maps.append((start if n else 0, 1, len(other_axes)))
        else:
            maps.append((0, 1, other_axes.index(k)))
    shape = tuple(a.shape[k] for k in other_axes) + (n,)
    return _view(a, shape, maps, not writeable)
