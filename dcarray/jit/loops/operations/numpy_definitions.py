"""Functions of NumPy's as functions of Python, whose source is traced where a program calls them.

For the types that `definition` accepts they give NumPy's results, or raise an exception; then NumPy runs the
call.  Factorisations may differ from NumPy's in the last bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..entry.entry_values import Function, PublicObject
from ..entry.guards import described
from .values import Data, Value, is_array

__all__ = ["definition"]


def _edges(a: Any, bins: Any) -> Any:
    """The least element, the width of all bins, and their edges."""
    low = a.min()
    high = a.max()
    if low == high:
        low = low - 0.5
        high = high + 0.5
    return low, high - low, np.linspace(low, high, bins + 1)


def _bin(x: Any, low: Any, width: Any, edges: Any, bins: Any) -> Any:
    """Return the index of the bin that the element ``x`` belongs to."""
    place = int((x - low) / width * bins)
    if place == bins:
        place -= 1
    if x < edges[place]:  # the formula is not exact
        place -= 1
    if x >= edges[place + 1] and place != bins - 1:
        place += 1
    return place


def _histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    if range is not None or density:
        raise ValueError
    low, width, edges = _edges(a, bins)
    counts = np.zeros(bins, np.int64)
    for x in a:
        counts[_bin(x, low, width, edges, bins)] += 1
    return counts, edges


def _weighted_histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    if range is not None or density or len(a) != len(weights):
        raise ValueError
    low, width, edges = _edges(a, bins)
    sums = np.zeros(bins)
    for x, weight in zip(a, weights):  # noqa: B905 - of one length
        sums[_bin(x, low, width, edges, bins)] += weight
    return sums, edges


def _cov(m: Any, y: Any = None, rowvar: Any = True, bias: Any = False, ddof: Any = None) -> Any:
    if y is not None or ddof is not None:
        raise ValueError
    x = m if rowvar else m.T
    degrees = x.shape[1] if bias else x.shape[1] - 1
    if x.shape[0] < 2 or degrees < 1:  # NumPy drops axes, or warns
        raise ValueError
    x = x - np.mean(x, axis=1)[:, None]
    c = x @ x.T
    c *= 1 / degrees
    return c


def _cholesky(a: Any) -> Any:
    n = len(a)
    if a.shape[1] != n:
        raise ValueError
    factor = np.tril(a)
    for i in range(n):
        for j in range(i):
            factor[i, j] -= np.dot(factor[i, :j], factor[j, :j])
            factor[i, j] /= factor[j, j]
        factor[i, i] -= np.dot(factor[i, :i], factor[i, :i])
        if not factor[i, i] > 0.0:
            raise ValueError
        factor[i, i] = np.sqrt(factor[i, i])
    return factor


def _size(x: Any) -> Any:
    return abs(x)


def _complex_size(x: Any) -> Any:
    return abs(x.real) + abs(x.imag)  # as LAPACK has it


def _solved(a: Any, b: Any, size: Any) -> Any:
    """Return the solution for the columns of ``b``, by elimination with row exchanges."""
    n = len(a)
    if a.shape[1] != n or len(b) != n:
        raise ValueError
    u = a.copy()
    x = b.copy()
    for k in range(n):
        p = k
        most = size(u[k, k])
        for i in range(k + 1, n):
            value = size(u[i, k])
            if value > most:
                most = value
                p = i
        if not most > 0.0:
            raise ValueError
        for j in range(n):
            kept = u[k, j]
            u[k, j] = u[p, j]
            u[p, j] = kept
        for j in range(x.shape[1]):
            kept = x[k, j]
            x[k, j] = x[p, j]
            x[p, j] = kept
        for i in range(k + 1, n):
            factor = u[i, k] / u[k, k]
            u[i, k:] -= factor * u[k, k:]
            x[i] -= factor * x[k]
    for k in range(n - 1, -1, -1):
        x[k] /= u[k, k]
        for i in range(k):
            x[i] -= u[i, k] * x[k]
    return x


def _inv(a: Any) -> Any:
    return _solved(a, np.eye(len(a)), _size)


def _complex_inv(a: Any) -> Any:
    return _solved(a, np.eye(len(a), dtype=a.dtype), _complex_size)


def _solve(a: Any, b: Any) -> Any:
    return _solved(a, b, _size)


def _complex_solve(a: Any, b: Any) -> Any:
    return _solved(a, b, _complex_size)


def _solve_vector(a: Any, b: Any) -> Any:
    return _solved(a, b[:, None], _size)[:, 0].copy()


def _complex_solve_vector(a: Any, b: Any) -> Any:
    return _solved(a, b[:, None], _complex_size)[:, 0].copy()


_DEFINITIONS: dict[tuple[str, tuple[str, ...]], Callable[..., Any]] = {
    ("histogram", ("d1",)): _histogram, ("histogram", ("d1", "d1")): _weighted_histogram,
    ("cov", ("d2",)): _cov, ("linalg.cholesky", ("d2",)): _cholesky, ("linalg.inv", ("d2",)): _inv,
    ("linalg.inv", ("D2",)): _complex_inv, ("linalg.solve", ("d2", "d2")): _solve,
    ("linalg.solve", ("D2", "D2")): _complex_solve, ("linalg.solve", ("d2", "d1")): _solve_vector,
    ("linalg.solve", ("D2", "D1")): _complex_solve_vector,
}  # fmt: skip
"""By name, and the types and numbers of axes of the arguments that are arrays."""


def definition(function: Value, args: Sequence[Value]) -> Function | None:
    """Return the Python definition of a NumPy function for arguments of these types, or None."""
    if not isinstance(function, PublicObject) or not function.name.startswith("numpy."):
        return None
    arrays = [x for x in args if isinstance(x, Data) and is_array(x)]
    types = tuple([f"{x.dtype.char}{len(x.shape)}" for x in arrays])
    substitute: Any = _DEFINITIONS.get((function.name.removeprefix("numpy."), types))
    return None if substitute is None else described(substitute)
