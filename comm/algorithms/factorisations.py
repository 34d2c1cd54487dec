"""Systems of linear equations, determinants and Cholesky factors of distributed matrices.

Whole columns are distributed in cyclic blocks.  One rank factors a block of columns and broadcasts it to the
others, which update theirs: right-looking algorithms, as in ScaLAPACK (Blackford et al. 1997) on a grid of
one row.  If ScaLAPACK is installed, it is called instead, on a grid of rows and columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Cyclic, Layout, Whole
from dcarray.comm.transport.protocol import Array

from . import scalapack

__all__ = ["cholesky", "slogdet", "solve"]

BLOCK_WIDTH = 64


def solve(a: DistArray, b: DistArray) -> DistArray:
    """Solve ``a @ x = b`` like `numpy.linalg.solve`, for one matrix.

    Parameters
    ----------
    a : DistArray
        The matrix, of shape (n, n).
    b : DistArray
        The right-hand sides, of shape (n,) or (n, m), over the same ranks.

    Returns
    -------
    DistArray
        The solution, with the shape and layout of `b`, without halo.

    Raises
    ------
    numpy.linalg.LinAlgError
        On all ranks, when the matrix is not square or is singular.
    ValueError
        When shapes do not fit.
    TypeError
        If NumPy does not solve systems of these dtypes.
    """
    _check_square(a)
    if b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise ValueError(f"a system of shape {a.shape} with right-hand sides of shape {b.shape}")
    dtype = _factor_dtype(a, b)
    end = Layout(b.shape, b.layout.grid, b.layout.axes)
    sides = b if b.ndim == 2 else _column(b)
    if scalapack.is_available(a.comm):
        x = scalapack.solve(a, sides, dtype)
    else:
        x = _solve(a, sides, dtype)
    x = x.redistribute(Layout(sides.shape, end.grid, [end.axes[0], *(end.axes[1:] or [Whole()])]))
    return DistArray(a.comm, end, x.block.reshape(end.local_shape(a.comm.rank)))


def cholesky(a: DistArray) -> DistArray:
    """Return the lower Cholesky factor of a Hermitian positive definite matrix, as `numpy.linalg.cholesky`.

    Parameters
    ----------
    a : DistArray
        The matrix, of shape (n, n), of which only the lower triangle is read.

    Returns
    -------
    DistArray
        The factor, in the layout of `a`, without halo.

    Raises
    ------
    numpy.linalg.LinAlgError
        On all ranks, when the matrix is not square or not positive definite.
    TypeError
        If NumPy does not factor matrices of this dtype.
    """
    _check_square(a)
    factor = (scalapack.cholesky if scalapack.is_available(a.comm) else _cholesky)(a, _factor_dtype(a))
    return factor.redistribute(Layout(a.shape, a.layout.grid, a.layout.axes))


def slogdet(a: DistArray) -> tuple[Array, Array]:
    """Return sign and logarithm of the determinant of one matrix, as `numpy.linalg.slogdet`, on every rank.

    Parameters
    ----------
    a : DistArray
        The matrix, of shape (n, n), with at least one row.

    Raises
    ------
    numpy.linalg.LinAlgError, TypeError
        In the same cases as `solve`, but not if the matrix is singular.
    """
    _check_square(a)
    dtype = _factor_dtype(a)
    odd, pivots = _eliminate(_ColumnBlocks(a, dtype))
    real = np.abs(pivots)
    if not real[-1]:
        return np.zeros((), dtype), np.array(-np.inf, real.dtype)
    sign = np.multiply.reduce(pivots / real)
    return np.asarray(-sign if odd else sign, dtype), np.asarray(np.log(real).sum(), real.dtype)


def _check_square(a: DistArray) -> None:
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise np.linalg.LinAlgError(f"a matrix of shape {a.shape} is not square")


def _factor_dtype(*of: DistArray) -> np.dtype[Any]:
    dtype = np.result_type(*(x.dtype for x in of))
    if dtype.kind in "biu":
        dtype = np.dtype(np.float64)
    if dtype.char not in "fdFD":
        raise TypeError(f"array type {dtype} is unsupported in linalg")
    return dtype


def _column(x: DistArray) -> DistArray:
    """Return a vector as a matrix of one column."""
    mine = Layout(x.shape, x.layout.grid, x.layout.axes)
    return DistArray(x.comm, Layout((*x.shape, 1), mine.grid, [*mine.axes, Whole()]), x.local.reshape(-1, 1))


# ---- blocks of columns -------------------------------------------------------------------------------
class _ColumnBlocks:
    """A matrix in cyclic blocks of whole columns."""

    def __init__(self, x: DistArray, dtype: np.dtype[Any]) -> None:
        self.comm, (self.rows, self.extent) = x.comm, x.shape
        self.width = max(1, min(BLOCK_WIDTH, -(-self.extent // x.comm.size)))
        axes = Whole(), Cyclic(0, self.width)
        self.layout = Layout(x.shape, ProcessGrid((x.comm.size,)), axes)
        self.block = np.array(x.redistribute(self.layout).local, dtype, order="F")

    def blocks(self) -> range:
        return range(-(-self.extent // self.width))

    def columns(self, k: int) -> tuple[int, int]:
        """Return the interval of columns of a block."""
        return k * self.width, min(self.extent, (k + 1) * self.width)

    def is_local(self, k: int) -> bool:
        return k % self.comm.size == self.comm.rank

    def local_start(self, k: int) -> int:
        """Return the local column at which this rank's first block with a number of at least `k` begins."""
        return max(0, -(-(k - self.comm.rank) // self.comm.size)) * self.width

    def broadcast_rows(self, k: int, rows: slice) -> Array:
        """Broadcast the rows `rows` of block `k` from its owner, and return them on all ranks."""
        low, high = self.columns(k)
        height = len(range(*rows.indices(self.rows)))
        panel = np.empty((height, high - low), self.block.dtype)
        if self.is_local(k):
            panel[...] = self.block[rows, self.local_start(k) : self.local_start(k) + high - low]
        self.comm.bcast(panel, k % self.comm.size)
        return panel

    def to_array(self) -> DistArray:
        return DistArray(self.comm, self.layout, np.ascontiguousarray(self.block))


def _eliminate(matrix: _ColumnBlocks, sides: _ColumnBlocks | None = None) -> tuple[bool, Array]:
    """Factor a matrix as LU in place, and apply the row operations to right-hand sides.

    Returns
    -------
    bool, ndarray
        Whether rows have been exchanged an odd number of times, and the pivots: the last one is zero where
        the matrix is singular.
    """
    odd, diagonals = False, []
    for k in matrix.blocks():
        low, high = matrix.columns(k)
        pivots = np.empty(high - low, np.int64)
        if matrix.is_local(k):
            pivots[...] = _factor_panel(
                matrix.block[low:, matrix.local_start(k) : matrix.local_start(k) + high - low]
            )
        matrix.comm.bcast(pivots, k % matrix.comm.size)
        if pivots[-1] < 0:
            return odd, np.zeros(1, matrix.block.dtype)
        panel = matrix.broadcast_rows(k, slice(low, None))
        diagonals.append(panel.diagonal())
        lower = np.tril(panel[: high - low], -1) + np.eye(high - low, dtype=panel.dtype)
        for rest in (
            matrix.block[low:, matrix.local_start(k + 1) :],
            *([] if sides is None else [sides.block[low:]]),
        ):
            for row, other in enumerate(pivots.tolist()):
                if row != other:
                    rest[[row, other]] = rest[[other, row]]
            rest[: high - low] = np.linalg.solve(lower, rest[: high - low])
            rest[high - low :] -= panel[high - low :] @ rest[: high - low]
        odd ^= bool(np.count_nonzero(pivots != np.arange(high - low)) % 2)
    return odd, np.concatenate(diagonals) if diagonals else np.ones(1, matrix.block.dtype)


def _solve(a: DistArray, b: DistArray, dtype: np.dtype[Any]) -> DistArray:
    matrix, sides = _ColumnBlocks(a, dtype), _ColumnBlocks(b, dtype)
    if not _eliminate(matrix, sides)[1][-1]:
        raise np.linalg.LinAlgError("Singular matrix")
    for k in reversed(matrix.blocks()):
        low, high = matrix.columns(k)
        panel = matrix.broadcast_rows(k, slice(0, high))
        sides.block[low:high] = np.linalg.solve(np.triu(panel[low:]), sides.block[low:high])
        sides.block[:low] -= panel[:low] @ sides.block[low:high]
    return sides.to_array()


def _factor_panel(panel: Array) -> Array:
    """Factor a block of columns as LU in place; return the pivot rows, the last one -1 if a pivot is zero."""
    width = panel.shape[1]
    pivots = np.empty(width, np.int64)
    for j in range(width):
        best = j + int(np.argmax(np.abs(panel[j:, j])))
        if panel[best, j] == 0:
            pivots[-1] = -1
            return pivots
        if best != j:
            panel[[j, best]] = panel[[best, j]]
        pivots[j] = best
        panel[j + 1 :, j] /= panel[j, j]
        panel[j + 1 :, j + 1 :] -= np.outer(panel[j + 1 :, j], panel[j, j + 1 :])
    return pivots


def _cholesky(a: DistArray, dtype: np.dtype[Any]) -> DistArray:
    matrix = _ColumnBlocks(a, dtype)
    for k in matrix.blocks():
        low, high = matrix.columns(k)
        right = np.ones(1, np.int64)
        if matrix.is_local(k):
            mine = matrix.block[:, matrix.local_start(k) : matrix.local_start(k) + high - low]
            mine[:low] = 0
            try:
                mine[low:high] = np.linalg.cholesky(mine[low:high])
                mine[high:] = np.linalg.solve(mine[low:high], mine[high:].conj().T).conj().T
            except np.linalg.LinAlgError:
                right[0] = 0
        matrix.comm.bcast(right, k % matrix.comm.size)
        if not right[0]:
            raise np.linalg.LinAlgError("Matrix is not positive definite")
        panel = matrix.broadcast_rows(k, slice(low, None))
        for later in range(k + 1, len(matrix.blocks())):
            if matrix.is_local(later):
                begin, end = matrix.columns(later)
                at = matrix.local_start(later)
                top = panel[begin - low : end - low].conj().T
                matrix.block[begin:, at : at + end - begin] -= panel[begin - low :] @ top
    return matrix.to_array()
