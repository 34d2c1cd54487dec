"""Functions of NumPy's as functions of Python, whose source is traced where a program calls them.

For the types that `definition` accepts they give NumPy's results, or raise an exception; then NumPy runs the
call.  Factorisations may differ from NumPy's in the last bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..entry.entry_values import Function, PublicObject
from ..entry.guards import described
from .values import Data, Value, is_array

__all__ = ["DEFINED", "MOST_ROWS", "definition"]


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


def _cholesky(a: Any, part: Any = 0.0) -> Any:
    n = len(a)
    if a.shape[1] != n:
        raise ValueError
    factor = np.tril(a)
    for i in range(n):
        for j in range(i):
            factor[i, j] -= np.dot(factor[i, :j], factor[j, :j])
            factor[i, j] /= factor[j, j]
        factor[i, i] -= np.dot(factor[i, :i], factor[i, :i])
        if not factor[i, i] > part * a[i, i]:  # see `_pivot`
            raise ValueError
        factor[i, i] = np.sqrt(factor[i, i])
    return factor


def _size(x: Any) -> Any:
    return abs(x)


def _complex_size(x: Any) -> Any:
    return abs(x.real) + abs(x.imag)  # as LAPACK has it


def _pivot(u: Any, k: Any, size: Any, part: Any, a: Any) -> Any:
    """Return the row of the largest element of the column ``k`` that is not above the diagonal of ``u``.
    That element must be larger than ``part`` of the largest in the column of the matrix ``a`` that ``u`` was
    at first: of other matrices the inverse is inaccurate."""
    p = k
    most = size(u[k, k])
    for i in range(k + 1, len(u)):
        value = size(u[i, k])
        if value > most:
            most = value
            p = i
    top = size(a[0, k])
    for i in range(1, len(u)):
        top = max(top, size(a[i, k]))
    if not most > part * top:
        raise ValueError
    return p


def _exchange(a: Any, k: Any, p: Any) -> None:
    """Exchange two rows of a matrix."""
    for j in range(a.shape[1]):
        kept = np.positive(a[k, j])  # new numbers, where objects are compared by identity
        a[k, j] = np.positive(a[p, j])
        a[p, j] = np.positive(kept)


def _solved(a: Any, b: Any, size: Any, part: Any) -> Any:
    """Return the solution for the columns of ``b``, by elimination with row exchanges."""
    n = len(a)
    if a.shape[1] != n or len(b) != n:
        raise ValueError
    u = a.copy()
    x = b.copy()
    for k in range(n):
        p = _pivot(u, k, size, part, a)
        _exchange(u, k, p)
        _exchange(x, k, p)
        for i in range(k + 1, n):
            factor = u[i, k] / u[k, k]
            u[i, k:] -= factor * u[k, k:]
            x[i] -= factor * x[k]
    for k in range(n - 1, -1, -1):
        x[k] /= u[k, k]
        for i in range(k):
            x[i] -= u[i, k] * x[k]
    return x


def _inv(a: Any, part: Any = 0.0) -> Any:
    return _solved(a, np.eye(len(a)), _size, part)


def _complex_inv(a: Any, part: Any = 0.0) -> Any:
    return _solved(a, np.eye(len(a), dtype=a.dtype), _complex_size, part)


def _solve(a: Any, b: Any, part: Any = 0.0) -> Any:
    return _solved(a, b, _size, part)


def _complex_solve(a: Any, b: Any, part: Any = 0.0) -> Any:
    return _solved(a, b, _complex_size, part)


def _solve_vector(a: Any, b: Any, part: Any = 0.0) -> Any:
    return _solved(a, b[:, None], _size, part)[:, 0].copy()


def _complex_solve_vector(a: Any, b: Any, part: Any = 0.0) -> Any:
    return _solved(a, b[:, None], _complex_size, part)[:, 0].copy()


def _det(a: Any, part: Any = 0.0) -> Any:
    n = len(a)
    if a.shape[1] != n:
        raise ValueError
    u = a.copy()
    sign = 1.0
    logarithm = 0.0
    for k in range(n):
        p = _pivot(u, k, _size, part, a)
        if p != k:
            sign = -sign
        _exchange(u, k, p)
        if u[k, k] < 0.0:
            sign = -sign
        logarithm += np.log(abs(u[k, k]))
        for i in range(k + 1, n):
            factor = u[i, k] / u[k, k]
            u[i, k:] -= factor * u[k, k:]
    return sign * np.exp(logarithm)


_DEFINITIONS: dict[tuple[str, tuple[str, ...]], Callable[..., Any]] = {
    ("histogram", ("d1",)): _histogram, ("histogram", ("d1", "d1")): _weighted_histogram,
    ("cov", ("d2",)): _cov, ("linalg.cholesky", ("d2",)): _cholesky, ("linalg.det", ("d2",)): _det,
    ("linalg.inv", ("d2",)): _inv,
    ("linalg.inv", ("D2",)): _complex_inv, ("linalg.solve", ("d2", "d2")): _solve,
    ("linalg.solve", ("D2", "D2")): _complex_solve, ("linalg.solve", ("d2", "d1")): _solve_vector,
    ("linalg.solve", ("D2", "D1")): _complex_solve_vector,
}  # fmt: skip
"""By name, and the types and numbers of axes of the arguments that are arrays."""
DEFINED = frozenset([name for name, _ in _DEFINITIONS])


MOST_ROWS = 32
"""Of matrices that accelerated code factors itself; LAPACK is faster for larger ones."""
LEAST_PIVOT = 1e-6
"""See `_pivot`: accelerated code leaves other matrices to LAPACK.  Its results differ from LAPACK's by the
rounding errors of both, some 1e-16 divided by this."""


def definition(
    function: Value, args: Sequence[Value], named: Mapping[str, Value], has_numpy: bool
) -> tuple[Function, list[Value]] | None:
    """Return the Python definition of a NumPy function for arguments of these types, and its positional
    arguments; or None.  With ``has_numpy``, LAPACK gets the matrices for which it is faster or better."""
    if not isinstance(function, PublicObject) or not function.name.startswith("numpy."):
        return None
    arrays = [x for x in (*args, *named.values()) if isinstance(x, Data) and is_array(x)]
    types = tuple([f"{x.dtype.char}{len(x.shape)}" for x in arrays])
    substitute: Any = _DEFINITIONS.get((function.name.removeprefix("numpy."), types))
    defined = None if substitute is None else described(substitute)
    if defined is None or not (has_numpy and function.name.startswith("numpy.linalg.")):
        return None if defined is None else (defined, [*args])
    if named or not all(type(x.shape[0]) is int and x.shape[0] <= MOST_ROWS for x in arrays):
        return None
    return defined, [*args, LEAST_PIVOT]
