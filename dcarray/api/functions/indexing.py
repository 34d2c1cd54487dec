"""Diagonals, triangles and broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from dcarray.api.array import ndarray, wrap
from dcarray.core.backend import is_distributed
from dcarray.core.processes import communicator
from dcarray.recording.recorder import elementwise
from dcarray.tiering import policy

from .common import broadcast, diagonal_view, eager_arrays, new_array, operand
from .registry import Unserved, implements

_SCALARS = (bool, int, float, complex, np.generic)


@implements(np.diagonal, views=True)
def diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    """Return a read-only view of a diagonal."""
    if type(a) is not ndarray or a.ndim < 2 or type(offset) is not int:
        raise Unserved
    first, second = normalize_axis_index(axis1, a.ndim), normalize_axis_index(axis2, a.ndim)
    if first == second:
        raise Unserved
    return diagonal_view(a, offset, first, second)


def _on_diagonal(v: Any, k: int) -> Any:
    n = v.shape[0] + abs(k)
    result = new_array((n, n), v.dtype)
    result[...] = 0
    if is_distributed(result):  # they have one shape only
        row = np.arange(v.shape[0])
        result[row + max(-k, 0), row + max(k, 0)] = v
        return result
    start = k if k >= 0 else -k * n
    result.reshape(-1)[start : start + v.shape[0] * (n + 1) : n + 1] = v
    return result


@implements(np.diag)
def diag(v: Any, k: Any = 0) -> Any:
    """Return the diagonal of a matrix, or a matrix with this diagonal."""
    if type(v) is not ndarray or type(k) is not int or v.ndim not in (1, 2):
        raise Unserved
    if v.ndim == 2:
        return diagonal(v, k)
    if v.dtype.kind not in "biufc":
        raise Unserved
    return _on_diagonal(v, k)


@implements(np.diagflat)
def diagflat(v: Any, k: Any = 0) -> Any:
    """Return a matrix with these elements on its diagonal."""
    if type(v) is not ndarray or type(k) is not int or v.dtype.kind not in "biufc":
        raise Unserved
    return _on_diagonal(v.reshape(-1), k)


def _triangle(m: Any, k: Any, lower: bool) -> Any:
    few = type(m) is ndarray and type(k) is int and policy.eager(m.size, policy.PASS)
    if few and communicator() is None:
        plain = eager_arrays(m)
        if plain is not None:
            return wrap(np.tril(plain[0], k) if lower else np.triu(plain[0], k + 1))
    m = operand(m)
    if type(k) is not int or m.ndim < 2 or m.dtype.kind not in "biufc":
        raise Unserved
    rows, columns = m.shape[-2:]
    # both vectors are small: the comparison is part of the kernel, no mask is stored
    row, column = np.arange(rows)[:, None], np.arange(-k, columns - k)[None, :]
    zero = np.zeros((), m.dtype)[()]
    inside = elementwise("greater_equal", (wrap(row), column))
    return elementwise("where", (inside, m, zero) if lower else (inside, zero, m))


@implements(np.tril)
def tril(m: Any, k: Any = 0) -> Any:
    """Return the lower triangle; zeros above."""
    return _triangle(m, k, True)


@implements(np.triu)
def triu(m: Any, k: Any = 0) -> Any:
    """Return the upper triangle; zeros below."""
    return _triangle(m, k - 1 if type(k) is int else k, False)


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """Return a read-only view of an array in a larger shape."""
    if type(array) is not ndarray:
        raise Unserved
    wanted = (shape,) if type(shape) is int else tuple(shape)
    if any(type(n) is not int or n < 0 for n in wanted) or len(wanted) < array.ndim:
        raise Unserved
    for n, old in zip(wanted[len(wanted) - array.ndim :], array.shape, strict=True):
        if old not in (n, 1):
            raise Unserved
    return broadcast(array, wanted)


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    """Return views of arrays in their common shape."""
    arrays = [wrap(np.asarray(a)) if isinstance(a, _SCALARS) else operand(a) for a in args]
    if any(type(a) is not ndarray and type(a) is not np.ndarray for a in arrays):
        raise Unserved
    shape = np.broadcast_shapes(*(a.shape for a in arrays))

    def one(a: Any) -> Any:
        if a.shape == shape:
            return a
        if type(a) is ndarray:
            return broadcast(a, shape)
        return np.broadcast_arrays(a, np.broadcast_to(False, shape))[0]  # a plain array stays plain

    return tuple(map(one, arrays))
