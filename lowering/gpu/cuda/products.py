"""Products of matrices as single calls of cuBLAS, prepared once for the shapes and strides of the operands.

A call computes ``alpha * a @ b + beta * out``.  Of these factors only ``beta`` may change from call to call.

cuBLAS expects matrices in column order, with one stride between columns.  It takes a matrix in C order for
its transpose, so it is asked for ``out.T = b.T @ a.T``.  Operands that no such call fits are left to CuPy
(`dcarray.lowering.gpu.cuda.libraries`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dcarray.ir.records import record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .device import CudaDevice

__all__ = ["Enqueue", "prepared"]

Enqueue = Callable[["CudaDevice", Sequence[int], float], None]
"""A function that enqueues a product, given the device, the addresses of the arrays that hold the result and
the operands, and ``beta``."""

_LETTERS: Final = {"f": "s", "d": "d", "F": "c", "D": "z"}
_ALPHA: Final = {(char, sign): np.full(1, sign, char) for char in _LETTERS for sign in (1, -1)}
_ZERO: Final = {char: np.zeros(1, char) for char in _LETTERS}
_BETA: Final = "beta"  # its place among the arguments
_MAX_EXTENT: Final = (1 << 31) - 1  # cuBLAS counts in 32 bits


@record(frozen=True, slots=True)
class _Matrix:
    """A matrix in memory, or a stack of matrices.

    Attributes
    ----------
    place : int
        The number of the array that holds it: 0 for the result's, 1 and 2 for the factors'.
    start : int
        The byte of that array at which the first element lies.
    rows, columns : int
    down, across : int
        The strides between rows and between columns, in elements.
    stack : tuple of (int, int)
        The length and the stride of each axis of the stack; empty for one matrix.
    """

    place: int
    start: int
    rows: int
    columns: int
    down: int
    across: int
    stack: tuple[tuple[int, int], ...] = ()

    def transposed(self) -> _Matrix:
        """Return the matrix with rows and columns exchanged."""
        return _Matrix(self.place, self.start, self.columns, self.rows, self.across, self.down, self.stack)

    def leading(self) -> tuple[int, int] | None:
        """Return how cuBLAS reads the matrix: its transpose (0), or transposed again (1), and cuBLAS's
        leading dimension, the stride between its columns; None if no axis is contiguous."""
        if (self.across == 1 or self.columns == 1) and (self.down >= self.columns or self.rows == 1):
            return 0, self.down if self.rows > 1 else self.columns
        if (self.down == 1 or self.rows == 1) and (self.across >= self.rows or self.columns == 1):
            return 1, self.across if self.columns > 1 else self.rows
        return None

    def as_one(self) -> _Matrix | None:
        """Return the stack as one matrix with the rows of all; None if their rows have no common stride."""
        rows, down = self.rows, self.down
        for length, stride in reversed(self.stack):
            if rows > 1 and stride != rows * down:
                return None
            down = stride if rows == 1 else down
            rows *= length
        return _Matrix(self.place, self.start, rows, self.columns, down, self.across)

    def between(self) -> int | None:
        """Return the stride between consecutive matrices of the stack; None if it is not the same for all."""
        apart, count = 0, 1
        for length, stride in reversed(self.stack):
            if count > 1 and stride != apart * count:
                return None
            apart = stride if count == 1 else apart
            count *= length
        return apart


def prepared(
    views: Sequence[Callable[..., Any]],
    arrays: Sequence[tuple[Any, ...]],
    values: dict[str, int],
    alpha: int = 1,
) -> Enqueue | None:
    """Return the cuBLAS call for ``out = alpha * a @ b + beta * out``, whose result shares no memory with
    ``a`` and ``b``; None if no single call computes it.

    Parameters
    ----------
    views : sequence of View
        The functions that make the views ``out``, ``a`` and ``b`` of their arrays.
    arrays : sequence of tuple
        For each view its array: buffer, shape, strides in elements, dtype.
    values : dict
        The values of the symbols in the views.
    alpha : int
        1 or -1.
    """
    dtype = arrays[0][3]
    if dtype.char not in _LETTERS:
        return None
    times = _ALPHA[dtype.char, alpha]
    shown = [_shown(view, one, values) for view, one in zip(views, arrays, strict=True)]
    (out, _), (a, _), (b, _) = shown
    if 0 in (*a.shape, *b.shape) or a.ndim == b.ndim == 1:
        return None
    if a.ndim == 1:
        a, out = a[None], out[..., None, :]
    if b.ndim == 1:
        b, out = b[:, None], out[..., None]
    stack = out.shape[:-2]
    given = (out, np.broadcast_to(a, stack + a.shape[-2:]), np.broadcast_to(b, stack + b.shape[-2:]))
    result, first, second = [_matrix(k, view, shown[k][1]) for k, view in enumerate(given)]
    count = math.prod(stack)
    if count > 1 and not any([step for _, step in second.stack]):
        one, two = result.as_one(), first.as_one()
        if one is not None and two is not None:
            result, first, count = one, two, 1
    call = None
    if count == 1:
        call = _by_vector(times, result, first, second)
        call = call or _by_vector(times, result.transposed(), second.transposed(), first.transposed())
    call = call or _by_matrix(times, count, result, first, second)
    if call is None:
        turned = result.transposed(), second.transposed(), first.transposed()
        call = _by_matrix(times, count, *turned)
    return call


def _shown(view: Callable[..., Any], array: tuple[Any, ...], values: dict[str, int]) -> tuple[Any, int]:
    """Return a NumPy array with a view's shape and strides, which must not be read, and the byte of the array
    at which the view begins."""
    _, shape, strides, dtype, *_ = array
    whole = as_strided(np.empty(1, dtype), shape, [step * dtype.itemsize for step in strides])
    shown = view(whole, values)
    return shown, shown.__array_interface__["data"][0] - whole.__array_interface__["data"][0]


def _matrix(place: int, view: NDArray[Any], start: int) -> _Matrix:
    *lengths, rows, columns = view.shape
    *strides, down, across = [step // view.itemsize for step in view.strides]
    stack = tuple([(n, step) for n, step in zip(lengths, strides, strict=True) if n != 1])
    return _Matrix(place, start, rows, columns, down, across, stack)


def _by_vector(alpha: NDArray[Any], out: _Matrix, a: _Matrix, b: _Matrix) -> Enqueue | None:
    """Return the call ``gemv`` for a product in which ``b`` has one column; None if cuBLAS has no such
    form."""
    lead = a.leading()
    step, into = b.down if b.rows > 1 else 1, out.down if out.rows > 1 else 1
    if b.columns > 1 or lead is None or step < 1 or into < 1:
        return None
    sizes = (a.rows, a.columns) if lead[0] else (a.columns, a.rows)
    return _call(alpha, "gemv", 1 - lead[0], *sizes, alpha, a, lead[1], b, step, _BETA, out, into)


def _by_matrix(alpha: NDArray[Any], count: int, out: _Matrix, a: _Matrix, b: _Matrix) -> Enqueue | None:
    """Return the call ``gemm`` for ``count`` products of matrices; None if cuBLAS has no such form."""
    into, one, two = out.leading(), a.leading(), b.leading()
    if into is None or into[0] or one is None or two is None:
        return None
    sizes = out.columns, out.rows, a.columns
    ops = two[0], one[0]
    if count == 1:
        return _call(alpha, "gemm", *ops, *sizes, alpha, b, two[1], a, one[1], _BETA, out, into[1])
    between = [x.between() for x in (b, a, out)]
    if None in between or not between[2]:
        return None
    each = b, two[1], between[0], a, one[1], between[1], _BETA, out, into[1], between[2], count
    return _call(alpha, "gemmStridedBatched", *ops, *sizes, alpha, *each)


def _call(alpha: NDArray[Any], name: str, *arguments: Any) -> Enqueue | None:
    """Return the call of a cuBLAS routine; ``name`` is without the letter of the dtype, which is that of
    ``alpha``.  None if a number among the arguments does not fit into 32 bits."""
    dtype, scale = alpha.dtype, 0
    given: list[int] = []
    pointers: list[tuple[int, int, int]] = []  # position, array, first byte
    for position, one in enumerate(arguments):
        if isinstance(one, _Matrix):
            pointers.append((position, one.place, one.start))
            given.append(0)
        elif one is alpha:
            given.append(alpha.ctypes.data)
        elif one is _BETA:
            scale = position
            given.append(_ZERO[dtype.char].ctypes.data)
        elif one > _MAX_EXTENT:
            return None
        else:
            given.append(one)
    routine = _LETTERS[dtype.char] + name

    def call(device: CudaDevice, at: Sequence[int], beta: float) -> None:
        cuda, now = device.cupy.cuda, given.copy()
        if beta:
            number = np.array([beta], dtype)  # cuBLAS reads it before the call returns
            now[scale] = number.ctypes.data
        for position, place, start in pointers:
            now[position] = at[place] + start
        getattr(cuda.cublas, routine)(cuda.get_cublas_handle(), *now)

    return call
