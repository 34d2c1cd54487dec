"""Distributed `numpy.linalg`: stacks of matrices by each rank's own, and single matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.comm.algorithms import factorisations, tall_skinny
from dcarray.comm.algorithms.matrix_stacks import apply_to_stacks
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.core.backend import NOT_DISTRIBUTED
from dcarray.distributed.function_dispatch import DISTRIBUTED, dist_array_of, factorisable

_ARRAYS = (ndarray, np.ndarray, list, tuple)
_DTYPES = "fdFDbBhHiIlLqQ?"


def _of_each(function: Callable[..., Any]) -> Callable[..., Any]:
    """The implementation for stacks of a function of one matrix and non-array arguments."""

    def implementation(a: Any, *rest: Any, **kwargs: Any) -> Any:
        x = dist_array_of(a)
        if x is None or any(isinstance(value, _ARRAYS) for value in (*rest, *kwargs.values())):
            return NOT_DISTRIBUTED
        if x.ndim < 3 or 0 in x.shape or x.dtype.char not in _DTYPES:
            return NOT_DISTRIBUTED
        return apply_to_stacks([x], [2], lambda own: function(own, *rest, **kwargs))

    return implementation


def _solve(a: Any, b: Any) -> Any:
    x, sides = dist_array_of(a), dist_array_of(b)
    if x is None or sides is None or x.ndim < 2 or not sides.ndim or 0 in (*x.shape, *sides.shape):
        return NOT_DISTRIBUTED
    inner = min(sides.ndim, 2)
    if x.ndim == sides.ndim - inner + 2 == 2 or x.shape[-1] != sides.shape[-inner]:
        return NOT_DISTRIBUTED
    if any(p.dtype.char not in _DTYPES for p in (x, sides)):
        return NOT_DISTRIBUTED
    try:
        np.broadcast_shapes(x.shape[:-2], sides.shape[:-inner])
    except ValueError:
        return NOT_DISTRIBUTED
    return apply_to_stacks([x, sides], [2, inner], np.linalg.solve)


# ---- one matrix --------------------------------------------------------------------------------------
def _slogdet(a: Any) -> Any:
    matrix = dist_array_of(a)
    if matrix is None or matrix.ndim != 2 or not matrix.shape[0] or not factorisable(matrix):
        return NOT_DISTRIBUTED
    sign, logarithm = (DistArray.replicated(value, matrix.comm) for value in factorisations.slogdet(matrix))
    return type(np.linalg.slogdet(np.ones((1, 1))))(sign, logarithm)


def _det(a: Any) -> Any:
    found = _slogdet(a)
    if found is NOT_DISTRIBUTED:
        return found
    sign, logarithm = found
    with np.errstate(over="ignore"):
        return DistArray.replicated(sign.block * np.exp(logarithm.block).astype(sign.dtype), sign.comm)


def _lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    x, sides = dist_array_of(a), dist_array_of(b)
    if (
        x is None
        or sides is None
        or not tall_skinny.is_tall_skinny(x)
        or sides.ndim not in (1, 2)
        or 0 in sides.shape
    ):
        return NOT_DISTRIBUTED
    if sides.shape[0] != x.shape[0] or not (rcond is None or isinstance(rcond, (int, float))):
        return NOT_DISTRIBUTED
    if any(p.dtype.char not in _DTYPES for p in (x, sides)):
        return NOT_DISTRIBUTED
    return tall_skinny.least_squares(x, sides, rcond)


def _qr(a: Any, mode: Any = "reduced") -> Any:
    x = dist_array_of(a)
    if x is None or not tall_skinny.is_tall_skinny(x) or x.dtype.char not in _DTYPES or x.dtype.kind == "c":
        return NOT_DISTRIBUTED
    found = tall_skinny.qr(x) if mode in ("reduced", "r") else None
    if found is None:
        return NOT_DISTRIBUTED
    upper: Any = DistArray.replicated(found[1], x.comm)
    first: Any = found[0]
    return upper if mode == "r" else type(np.linalg.qr(np.ones((1, 1))))(first, upper)


def _pinv(a: Any, rcond: Any = None, hermitian: Any = False, *, rtol: Any = np._NoValue) -> Any:
    x = dist_array_of(a)
    if x is None or hermitian or not tall_skinny.is_tall_skinny(x) or x.dtype.char not in _DTYPES:
        return NOT_DISTRIBUTED
    if rcond is None:
        eps = np.finfo(x.dtype if x.dtype.kind in "fc" else np.float64).eps
        rcond = 1e-15 if rtol is np._NoValue else max(x.shape) * eps if rtol is None else rtol
    elif rtol is not np._NoValue:
        return NOT_DISTRIBUTED
    return (
        tall_skinny.pseudo_inverse(x, float(rcond))
        if isinstance(rcond, (float, np.floating))
        else NOT_DISTRIBUTED
    )


def _svd(a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    x = dist_array_of(a)
    if (
        x is None
        or compute_uv
        or hermitian
        or not tall_skinny.is_tall_skinny(x)
        or x.dtype.char not in _DTYPES
    ):
        return NOT_DISTRIBUTED
    return DistArray.replicated(tall_skinny.singular_values(x), x.comm)


def _either(first: Callable[..., Any], then: Callable[..., Any]) -> Callable[..., Any]:
    def implementation(*args: Any, **kwargs: Any) -> Any:
        found = first(*args, **kwargs)
        return then(*args, **kwargs) if found is NOT_DISTRIBUTED else found

    return implementation


DISTRIBUTED[np.linalg.slogdet] = _slogdet
DISTRIBUTED[np.linalg.det] = _det
DISTRIBUTED[np.linalg.lstsq] = _lstsq
DISTRIBUTED[np.linalg.pinv] = _pinv
DISTRIBUTED[np.linalg.qr] = _qr
DISTRIBUTED[np.linalg.svd] = _svd
_NAMES = """
cholesky cond det eig eigh eigvals eigvalsh inv matrix_rank pinv qr slogdet svd svdvals
"""
for _name in _NAMES.split():
    _function = getattr(np.linalg, _name)
    _form = _of_each(_function)
    DISTRIBUTED[_function] = _either(DISTRIBUTED[_function], _form) if _function in DISTRIBUTED else _form
DISTRIBUTED[np.linalg.solve] = _either(DISTRIBUTED[np.linalg.solve], _solve)
