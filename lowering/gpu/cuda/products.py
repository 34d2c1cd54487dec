"""Products of matrices as single calls of cuBLAS, prepared once for a geometry of their operands.

cuBLAS has matrices column by column, with one stride between columns.  To it, a matrix in C order is its
transpose: ``out.T = b.T @ a.T``.  What has another form is CuPy's (`dcarray.lowering.gpu.cuda.libraries`).
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
"""Enqueues a product, given the addresses of the arrays in which the result and the factors lie."""

_LETTERS: Final = {"f": "s", "d": "d", "F": "c", "D": "z"}
_ONE: Final = {char: np.ones(1, char) for char in _LETTERS}
_ZERO: Final = {char: np.zeros(1, char) for char in _LETTERS}
_LARGEST: Final = (1 << 31) - 1  # cuBLAS counts in 32 bits


@record(frozen=True, slots=True)
class _Matrix:
    """A matrix in memory, or a stack of such.

    Attributes
    ----------
    place : int
        The number of its array: 0 for that of the result.
    start : int
        The byte of its first element there.
    rows, columns : int
    down, across : int
        The strides between rows and between columns, in elements.
    stack : tuple of (int, int)
        The length and the stride of each axis before those.
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
        """Return whether cuBLAS, which sees the transpose, has to transpose it (0 or 1), and the stride
        between its columns; None if there is no such form."""
        if (self.across == 1 or self.columns == 1) and (self.down >= self.columns or self.rows == 1):
            return 0, self.down if self.rows > 1 else self.columns
        if (self.down == 1 or self.rows == 1) and (self.across >= self.rows or self.columns == 1):
            return 1, self.across if self.columns > 1 else self.rows
        return None

    def as_one(self) -> _Matrix | None:
        """Return the matrices of the stack as one matrix, if they lie one below the other like that."""
        rows, down = self.rows, self.down
        for length, stride in reversed(self.stack):
            if rows > 1 and stride != rows * down:
                return None
            down = stride if rows == 1 else down
            rows *= length
        return _Matrix(self.place, self.start, rows, self.columns, down, self.across)

    def between(self) -> int | None:
        """Return the stride between all matrices of the stack; None if there are several."""
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
    """Return the call of cuBLAS for ``out = a @ b`` where ``out`` lies in memory of its own; None if there is
    none.

    Parameters
    ----------
    views : sequence of View
        Of the result and the factors.
    arrays : sequence of tuple
        Each one's array: buffer, shape, strides in elements, dtype.
    values : dict
        Of the symbols in the views.
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
    """The geometry of a view, as a NumPy array that must not be read, and its first byte in its array."""
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
    """The product with a matrix of one column."""
    lead = a.leading()
    step, into = b.down if b.rows > 1 else 1, out.down if out.rows > 1 else 1
    if b.columns > 1 or lead is None or step < 1 or into < 1:
        return None
    sizes = (a.rows, a.columns) if lead[0] else (a.columns, a.rows)
    return _call(dtype, "gemv", 1 - lead[0], *sizes, _ONE, a, lead[1], b, step, _ZERO, out, into)


def _by_matrix(dtype: np.dtype[Any], count: int, out: _Matrix, a: _Matrix, b: _Matrix) -> Enqueue | None:
    """The product of two matrices, or of the matrices of two stacks."""
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
    """The call of a routine of cuBLAS; None if a number is too large for it."""
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
