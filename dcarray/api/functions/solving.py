"""Linear systems and inverses, with the right-hand sides divided over the cores, and the Cholesky factor, by
LAPACK without transposing the matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.api.array import ndarray, wrap
from dcarray.core import config
from dcarray.core.backend import is_distributed
from dcarray.execution.routines import Compiled
from dcarray.lowering.runtime.array_memory import address_of, require
from dcarray.tiering import policy

from .common import is_array, plain
from .registry import Unserved, implements, launch_of

# Triangles of smaller matrices are cleared in no time, and OpenBLAS's own threads suit larger ones.
_ROWS_SERVED = range(16, 2048 + 1)
_RATE = 2e-11  # seconds that NumPy needs for an operation on real numbers
# Columns, or a few more, that are factored at a time while others are updated: no thread has other work
# before the first ones are done.
_PANEL = 48
_NARROW = 32  # columns: narrower pieces of the right-hand sides are slow
_WIDE = 64  # columns of pieces so small that each thread has two, of which another may take one
_ROWS = 64  # rows that are cleared at a time


_ROUTINES = {char: Compiled("solving", "solver", char) for char in "fdFD"}


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    """Return the solution of systems of linear equations."""
    if not is_array(a) or not is_array(b) or b.ndim < 2 or a.shape[:-2] != b.shape[:-2]:
        raise Unserved
    if a.dtype != b.dtype or a.shape[-1] != b.shape[-2] or is_distributed(a) or is_distributed(b):
        raise Unserved
    return _solved(a, b, b.shape[-1])


@implements(np.linalg.inv)
def inv(a: Any) -> Any:
    """Return the inverses of square matrices."""
    if not is_array(a) or a.ndim < 2:
        raise Unserved
    return _solved(a, None, a.shape[-1])


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """Return the triangular factor of a Hermitian positive definite matrix.

    NumPy transposes the matrix before and after, which takes half as long as factorising some thousand rows.
    That is not needed: a triangle in C order is the other triangle in LAPACK's order.
    """
    if type(a) is not ndarray or a.ndim != 2 or a.shape[0] != a.shape[1] or is_distributed(a):
        raise Unserved
    if a.dtype.char not in _ROUTINES or not a.dtype.isnative or type(upper) is not bool:
        raise Unserved
    if config.current().jit == "off" or a.size < 4 or policy.eager(a.size):
        raise Unserved
    from dcarray.lowering.runtime import openblas

    factor = openblas.cholesky(a.dtype.char)
    if factor is None:
        raise Unserved
    triangle = a.copy()
    factors = triangle._writable()
    if factor(factors, upper) or np.isnan(factors.diagonal()).any():
        raise Unserved  # NumPy raises the error
    _clear(factors, not upper)
    return triangle


def _clear(matrix: np.ndarray[Any, Any], upper: bool) -> None:
    """Put zeros above the diagonal of a matrix (``upper``), or below it, in place."""
    n = len(matrix)
    beyond = np.tri(_ROWS, k=-1, dtype=bool)
    mask = beyond.T if upper else beyond
    for start in range(0, n, _ROWS):
        rows, end = matrix[start : start + _ROWS], min(start + _ROWS, n)
        (rows[:, end:] if upper else rows[:, :start])[...] = 0
        np.copyto(rows[:, start:end], 0, where=mask[: len(rows), : len(rows)])


def _solved(a: Any, b: Any, columns: int) -> Any:
    """Return the solution; without right-hand sides, the inverse."""
    char, n = a.dtype.char, a.shape[-1]
    if a.shape[-2] != n or char not in _ROUTINES or not a.dtype.isnative or n not in _ROWS_SERVED:
        raise Unserved
    count = a.size // (n * n)
    options = config.current()
    threads = options.threads
    scale = 4 if char in "FD" else 1
    pieces = max(min(threads, columns // _NARROW), 1)
    if count < threads and columns >= 2 * threads * _WIDE:
        pieces = 2 * threads
    operations = 2 * scale * n * n * columns * count
    if policy.eager(operations, policy.SEVERAL):
        raise Unserved
    if min(threads, pieces * count) < 2 or policy.eager(operations, policy.SHARED):
        threads = pieces = 1
        if columns < min(_NARROW, n):
            raise Unserved
    launch = launch_of(_ROUTINES[char], _RATE * operations)
    from dcarray.lowering.runtime.elimination import PHASES, plan
    from dcarray.lowering.runtime.openblas import SingleThreaded, lu_routines

    routines = lu_routines(char)
    if routines is None:
        raise Unserved
    given = [np.ascontiguousarray(plain(v)) for v in (a, b) if v is not None]
    matrices, sides = given if b is not None else (given[0], np.eye(n, dtype=a.dtype))
    require(2 * matrices.nbytes + sides.nbytes)
    panels = 1 if count >= threads else min(max(n // _PANEL, 1), PHASES - 1)
    steps = plan(n, columns, panels, pieces, a.dtype.itemsize, b is None)
    x, factored = np.empty((*a.shape[:-1], columns), a.dtype), np.empty(a.shape, a.dtype)
    swaps, info = np.empty((count, n), np.int64), np.zeros(count * panels, np.int64)
    table = steps.at([*map(address_of, (matrices, sides, x, factored, swaps, info))])
    scalars = np.array([1, -1], a.dtype)
    sizes = [number for items, work in steps.phases for number in (items * count, work * scale)]
    arguments = address_of(table), address_of(steps.starts), *routines, address_of(scalars), count
    with SingleThreaded():
        launch(launch.pack(*sizes, *arguments, *steps.firsts), threads)
    if info.any():
        raise Unserved  # singular: NumPy raises the error, or finds a solution
    return wrap(x)
