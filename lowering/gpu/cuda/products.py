"""Products of matrices as single calls of cuBLAS, prepared once for the shapes and strides of the operands.

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

Enqueue = Callable[["CudaDevice", Sequence[int]], None]
"""A function that enqueues a product, given the device and the addresses of the arrays that hold the result
and the factors."""

_LETTERS: Final = {"f": "s", "d": "d", "F": "c", "D": "z"}
_ONE: Final = {char: np.ones(1, char) for char in _LETTERS}
_ZERO: Final = {char: np.zeros(1, char) for char in _LETTERS}
_LARGEST: Final = (1 << 31) - 1  # cuBLAS counts in 32 bits


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
        found, count = 0, 1
        for length, stride in reversed(self.stack):
            if count > 1 and stride != found * count:
                return None
            found = stride if count == 1 else found
            count *= length
        return found


def prepared(
    views: Sequence[Callable[..., Any]], arrays: Sequence[tuple[Any, ...]], values: dict[str, int]
) -> Enqueue | None:
    """Return the cuBLAS call for ``out = a @ b``, whose result shares no memory with ``a`` and ``b``; None if
    no single call computes it.

    Parameters
    ----------
    views : sequence of View
        The functions that make the views ``out``, ``a`` and ``b`` of their arrays.
    arrays : sequence of tuple
        For each view its array: buffer, shape, strides in elements, dtype.
    values : dict
        The values of the symbols in the views.
    """
    dtype = arrays[0][3]
    if dtype.char not in _LETTERS:
        return None
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
    found = None
    if count == 1:
        found = _by_vector(dtype, result, first, second)
        found = found or _by_vector(dtype, result.transposed(), second.transposed(), first.transposed())
    found = found or _by_matrix(dtype, count, result, first, second)
    if found is None:
        turned = result.transposed(), second.transposed(), first.transposed()
        found = _by_matrix(dtype, count, *turned)
    return found


def _shown(view: Callable[..., Any], array: tuple[Any, ...], values: dict[str, int]) -> tuple[Any, int]:
    """Return a NumPy array with a view's shape and strides, which must not be read, and the byte of the array
    at which the view begins."""
    _, shape, strides, dtype, *_ = array
    whole = as_strided(np.empty(1, dtype), shape, [step * dtype.itemsize for step in strides])
    found = view(whole, values)
    return found, found.__array_interface__["data"][0] - whole.__array_interface__["data"][0]


def _matrix(place: int, view: NDArray[Any], start: int) -> _Matrix:
    *lengths, rows, columns = view.shape
    *strides, down, across = [step // view.itemsize for step in view.strides]
    stack = tuple([(n, step) for n, step in zip(lengths, strides, strict=True) if n != 1])
    return _Matrix(place, start, rows, columns, down, across, stack)


def _by_vector(dtype: np.dtype[Any], out: _Matrix, a: _Matrix, b: _Matrix) -> Enqueue | None:
    """Return the call ``gemv`` for a product in which ``b`` has one column; None if cuBLAS has no such
    form."""
    lead = a.leading()
    step, into = b.down if b.rows > 1 else 1, out.down if out.rows > 1 else 1
    if b.columns > 1 or lead is None or step < 1 or into < 1:
        return None
    sizes = (a.rows, a.columns) if lead[0] else (a.columns, a.rows)
    return _call(dtype, "gemv", 1 - lead[0], *sizes, _ONE, a, lead[1], b, step, _ZERO, out, into)


def _by_matrix(dtype: np.dtype[Any], count: int, out: _Matrix, a: _Matrix, b: _Matrix) -> Enqueue | None:
    """Return the call ``gemm`` for ``count`` products of matrices; None if cuBLAS has no such form."""
    into, one, two = out.leading(), a.leading(), b.leading()
    if into is None or into[0] or one is None or two is None:
        return None
    sizes = out.columns, out.rows, a.columns
    ops = two[0], one[0]
    if count == 1:
        return _call(dtype, "gemm", *ops, *sizes, _ONE, b, two[1], a, one[1], _ZERO, out, into[1])
    between = [x.between() for x in (b, a, out)]
    if None in between or not between[2]:
        return None
    each = b, two[1], between[0], a, one[1], between[1], _ZERO, out, into[1], between[2], count
    return _call(dtype, "gemmStridedBatched", *ops, *sizes, _ONE, *each)


def _call(dtype: np.dtype[Any], name: str, *arguments: Any) -> Enqueue | None:
    """Return the call of a cuBLAS routine; ``name`` is without the dtype's letter.  None if a number among
    the arguments does not fit into 32 bits."""
    given: list[int] = []
    pointers: list[tuple[int, int, int]] = []  # position, array, first byte
    for position, one in enumerate(arguments):
        if isinstance(one, _Matrix):
            pointers.append((position, one.place, one.start))
            given.append(0)
        else:
            given.append(one[dtype.char].ctypes.data if isinstance(one, dict) else one)
            if not isinstance(one, dict) and one > _LARGEST:
                return None
    routine = _LETTERS[dtype.char] + name

    def call(device: CudaDevice, at: Sequence[int]) -> None:
        cuda, now = device.cupy.cuda, given.copy()
        for position, place, start in pointers:
            now[position] = at[place] + start
        getattr(cuda.cublas, routine)(cuda.get_cublas_handle(), *now)

    return call
