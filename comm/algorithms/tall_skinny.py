"""Factorisations of tall and narrow matrices (TSQR): QR, singular values, least squares, pseudo-inverse.

Each rank factors its rows, then all factor the stacked triangles.

Demmel, Grigori, Hoemmen and Langou, "Communication-optimal parallel and sequential QR and LU factorizations"
(2012).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.derived_layouts import row_layout
from dcarray.comm.layout.layouts import Layout
from dcarray.comm.transport.protocol import Array
from dcarray.comm.transport.sparse_alltoall import allgather

__all__ = ["is_tall_skinny", "least_squares", "pseudo_inverse", "qr", "singular_values"]

_ROWS = 2  # rows per column on every rank: with fewer the stacked triangles are as large as the matrix


def is_tall_skinny(x: DistArray) -> bool:
    """Whether TSQR pays for a matrix: it needs at least `_ROWS` rows per column on every rank."""
    return x.ndim == 2 and bool(x.shape[1]) and x.shape[0] >= _ROWS * x.comm.size * x.shape[1]


@dataclass(frozen=True)
class _LocalFactors:
    """The QR factors of the ranks' rows: the matrix by rows, this rank's orthogonal factor, and the
    triangular factors of all ranks stacked."""

    held: DistArray
    orthogonal: Array
    stacked_factors: Array

    def own_rows(self, values: Array) -> Array:
        """Return this rank's rows of an array that has the rows of the stacked factors."""
        n = self.held.shape[1]
        return values[self.held.comm.rank * n :][: self.orthogonal.shape[1]]


def _factor(x: DistArray, dtype: np.dtype[Any]) -> _LocalFactors:
    held = x.redistribute(row_layout(x.shape, x.comm.size))
    own, upper = np.linalg.qr(held.local.astype(dtype))
    return _LocalFactors(held, own, _gather_rows(x, upper))


def _gather_rows(x: DistArray, some: Array) -> Array:
    """Return rows of all ranks, at most as many of each as `x` has columns, stacked, on every rank."""
    padded: Array = np.zeros((x.shape[1], *some.shape[1:]), some.dtype)
    padded[: len(some)] = some
    return allgather(x.comm, padded).reshape(-1, *some.shape[1:])


def _dtype(*of: DistArray) -> np.dtype[Any]:
    dtype = np.result_type(*(x.dtype for x in of))
    return np.dtype(np.float64) if dtype.kind in "biu" else dtype


def singular_values(x: DistArray) -> Array:
    """Return the singular values of a tall matrix, in descending order, on every rank."""
    return np.asarray(np.linalg.svd(_factor(x, _dtype(x)).stacked_factors, compute_uv=False))


def pseudo_inverse(x: DistArray, rcond: float) -> DistArray:
    """Return the pseudo-inverse of a tall matrix, distributed by columns.

    Singular values of at most `rcond` times the largest count as zero.
    """
    factors = _factor(x, _dtype(x))
    inner = factors.own_rows(np.linalg.pinv(factors.stacked_factors, rcond).T).T
    layout = Layout(x.shape[::-1], factors.held.layout.grid, factors.held.layout.axes[::-1])
    return DistArray(x.comm, layout, inner @ factors.orthogonal.conj().T)


def qr(x: DistArray) -> tuple[DistArray, Array] | None:
    """Return the reduced QR factors of a tall real matrix, with the signs of Householder reflections.

    Returns
    -------
    (DistArray, ndarray) or None
        The orthogonal factor, distributed by rows, and the triangular one on every rank; None if columns are
        linearly dependent, so that the factors are not unique.
    """
    factors = _factor(x, _dtype(x))
    inner, upper = np.linalg.qr(factors.stacked_factors)
    sizes = np.abs(upper.diagonal())
    if not sizes.min() > np.sqrt(np.finfo(upper.dtype).eps) * sizes.max():
        return None
    own = factors.orthogonal @ factors.own_rows(inner)
    top = _top(x, own, factors)
    signs = np.ones(len(upper), upper.dtype)
    for j in range(len(upper)):  # Ballard and others, "Reconstructing Householder vectors from TSQR" (2014)
        signs[j] = 1 if top[j, j] < 0 else -1
        top[j, j] -= signs[j]
        top[j + 1 :, j] /= top[j, j]
        top[j + 1 :, j + 1 :] -= np.outer(top[j + 1 :, j], top[j, j + 1 :])
    return DistArray(x.comm, factors.held.layout, own * signs), upper * signs[:, None]


def _top(x: DistArray, own: Array, factors: _LocalFactors) -> Array:
    """Return the first ``x.shape[1]`` rows of a matrix distributed by rows, on every rank; `own` has this
    rank's."""
    first = factors.held.layout.parts[0].to_global(x.comm.rank, 0)
    return _gather_rows(x, own[: max(0, min(len(own), x.shape[1] - first))])[: x.shape[1]]


def least_squares(a: DistArray, b: DistArray, rcond: float | None) -> tuple[DistArray, ...]:
    """Return the least-squares solution of ``a @ x = b`` for a tall matrix, like `numpy.linalg.lstsq`.

    Parameters
    ----------
    a : DistArray
        The matrix.
    b : DistArray
        Right-hand sides of one or two axes, with as many rows.
    rcond : float or None
        NumPy's parameter.

    Returns
    -------
    DistArray, DistArray, DistArray, DistArray
        NumPy's four results, on every rank.
    """
    dtype, (m, n) = _dtype(a, b), a.shape
    factors = _factor(a, dtype)
    sides = b.redistribute(row_layout(b.shape, a.comm.size)).local.astype(dtype)
    given = np.finfo(dtype).eps * max(m, n) if rcond is None else rcond
    x, _, rank, values = np.linalg.lstsq(
        factors.stacked_factors, _gather_rows(a, factors.orthogonal.conj().T @ sides), given
    )
    rest = sides - factors.held.local.astype(dtype) @ x
    squares = np.atleast_1d((rest.real**2 + rest.imag**2 if dtype.kind == "c" else rest**2).sum(axis=0))
    errors = allgather(a.comm, squares).sum(axis=0)
    if rank != n:
        errors = errors[:0]
    return tuple(DistArray.replicated(one, a.comm) for one in (x, errors, rank, values))
