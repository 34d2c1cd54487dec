"""Distributed `numpy.linalg` and `numpy.trace`, of single matrices and of stacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.api.functions.registry import Unserved
from dcarray.comm.algorithms import diagonals, factorisations, tall_skinny
from dcarray.comm.algorithms.matrix_stacks import apply_to_stacks
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.distributed.function_dispatch import DISTRIBUTED, dist_operand, require

_ARRAYS = (ndarray, np.ndarray, list, tuple)
_DTYPES = "fdFDbBhHiIlLqQ?"


# ---- stacks ------------------------------------------------------------------------------------------
def _of_stack(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the implementation for stacks of a function of one matrix and non-array arguments."""

    def implementation(a: Any, *others: Any, **kwargs: Any) -> Any:
        x = dist_operand(a)
        require(not any(isinstance(value, _ARRAYS) for value in (*others, *kwargs.values())))
        require(x.ndim > 2 and x.size and x.dtype.char in _DTYPES)
        return apply_to_stacks([x], [2], lambda block: function(block, *others, **kwargs))

    return implementation


def _solve_stack(a: Any, b: Any) -> Any:
    x, sides = dist_operand(a), dist_operand(b)
    require(x.ndim > 1 and sides.ndim and x.size and sides.size)
    inner = min(sides.ndim, 2)
    require((x.ndim, sides.ndim) != (2, inner) and x.shape[-1] == sides.shape[-inner])
    require(all(p.dtype.char in _DTYPES for p in (x, sides)))
    np.broadcast_shapes(x.shape[:-2], sides.shape[:-inner])
    return apply_to_stacks([x, sides], [2, inner], np.linalg.solve)


# ---- one matrix --------------------------------------------------------------------------------------
def _square_operands(*arrays: Any) -> list[DistArray]:
    """Return a square matrix and right-hand sides, of shapes and dtypes that NumPy accepts."""
    operands = [dist_operand(a) for a in arrays]
    n = operands[0].shape[0] if operands[0].ndim == 2 else 0
    require(operands[0].shape == (n, n))
    require(all(1 <= x.ndim <= 2 and x.shape[0] == n for x in operands))
    require(all(x.dtype.char in _DTYPES and x.dtype.isnative for x in operands))
    return operands


def _solve(a: Any, b: Any) -> Any:
    return factorisations.solve(*_square_operands(a, b))


def _cholesky(a: Any, *, upper: bool = False) -> Any:
    require(not upper)
    return factorisations.cholesky(*_square_operands(a))


def _slogdet(a: Any) -> Any:
    (x,) = _square_operands(a)
    require(x.size)
    sign, logarithm = (DistArray.replicated(value, x.comm) for value in factorisations.slogdet(x))
    return type(np.linalg.slogdet(np.ones((1, 1))))(sign, logarithm)


def _det(a: Any) -> Any:
    sign, logarithm = _slogdet(a)
    with np.errstate(over="ignore"):
        return DistArray.replicated(sign.block * np.exp(logarithm.block).astype(sign.dtype), sign.comm)


def _tall_operand(a: Any) -> DistArray:
    """Return a matrix that is much taller than wide."""
    x = dist_operand(a)
    require(tall_skinny.is_tall_skinny(x) and x.dtype.char in _DTYPES)
    return x


def _lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    x, sides = _tall_operand(a), dist_operand(b)
    require(sides.ndim in (1, 2) and sides.size and sides.shape[0] == x.shape[0])
    require(sides.dtype.char in _DTYPES and (rcond is None or isinstance(rcond, (int, float))))
    return tall_skinny.least_squares(x, sides, rcond)


def _qr(a: Any, mode: Any = "reduced") -> Any:
    x = _tall_operand(a)
    require(x.dtype.kind != "c" and mode in ("reduced", "r"))
    factors = tall_skinny.qr(x)
    if factors is None:
        raise Unserved
    orthogonal, triangle = factors[0], DistArray.replicated(factors[1], x.comm)
    result: Any = type(np.linalg.qr(np.ones((1, 1))))
    return triangle if mode == "r" else result(orthogonal, triangle)


def _pinv(a: Any, rcond: Any = None, hermitian: Any = False, *, rtol: Any = np._NoValue) -> Any:
    x = _tall_operand(a)
    require(not hermitian and (rcond is None or rtol is np._NoValue))
    if rcond is None:
        eps = np.finfo(x.dtype if x.dtype.kind in "fc" else np.float64).eps
        rcond = 1e-15 if rtol is np._NoValue else max(x.shape) * eps if rtol is None else rtol
    require(isinstance(rcond, (float, np.floating)))
    return tall_skinny.pseudo_inverse(x, float(rcond))


def _svd(a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    x = _tall_operand(a)
    require(not compute_uv and not hermitian)
    return DistArray.replicated(tall_skinny.singular_values(x), x.comm)


def _trace(
    a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None
) -> Any:
    x = dist_operand(a)
    require(x.ndim > 1 and out is None and axis1 != axis2)
    return diagonals.trace(x, offset, axis1, axis2, dtype)


def _either(first: Callable[..., Any], second: Callable[..., Any]) -> Callable[..., Any]:
    def implementation(*args: Any, **kwargs: Any) -> Any:
        try:
            return first(*args, **kwargs)
        except Unserved:
            return second(*args, **kwargs)

    return implementation


_ONE_MATRIX: dict[str, Callable[..., Any]] = {
    "cholesky": _cholesky, "det": _det, "lstsq": _lstsq, "pinv": _pinv, "qr": _qr, "slogdet": _slogdet,
    "solve": _solve, "svd": _svd,
}  # fmt: skip
_STACKED = """
cholesky cond det eig eigh eigvals eigvalsh inv matrix_rank pinv qr slogdet svd svdvals
"""
_STACKS = {name: _of_stack(getattr(np.linalg, name)) for name in _STACKED.split()} | {"solve": _solve_stack}
for _name in _ONE_MATRIX.keys() | _STACKS.keys():
    _forms = [table[_name] for table in (_ONE_MATRIX, _STACKS) if _name in table]
    DISTRIBUTED[getattr(np.linalg, _name)] = _forms[0] if len(_forms) == 1 else _either(*_forms)
DISTRIBUTED[np.trace] = _trace
