"""Products of a large matrix with a skinny one (few rows or columns), by a routine that reads the large one
once (`dcarray.lowering.cpu.llvm.routines.skinny_products`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .array_memory import address_of, round_up
from .blas_layout import blas_layout

if TYPE_CHECKING:
    from dcarray.lowering.kernel.compiler import LoadedKernel

__all__ = ["DTYPES", "MAX_ROWS", "is_large", "is_skinny", "multiply"]

NDArray = np.ndarray[Any, Any]

DTYPES = "fd"
MAX_ROWS = 16
"""The most rows of a skinny factor; with more, packing the large factor, as BLAS does, pays."""
MIN_BYTES = 1 << 23
"""Bytes of a large factor: smaller ones stay in caches meanwhile."""
_ITEMS = 4
"""Parts of the product for each thread, for load balance..."""
_WIDE = 1 << 16
"""... but at least so many bytes of a row that is read part by part: the prefetch restarts at each part."""
_COLUMNS, _LANES = 48, 16
"""Columns of a part, and elements of a packed row, are a multiple of these, whatever the vectors are."""
_UNIT = 4
"""Multiplications in a unit of the scheduler's work."""


def is_large(m: int, n: int, k: int, size: int) -> bool:
    """Whether the larger operand of an ``(m, k) @ (k, n)`` product has `MIN_BYTES` or more: ``size`` for
    each element."""
    return max(m, n) * k * size >= MIN_BYTES


def is_skinny(m: int, n: int, k: int, size: int) -> bool:
    """Whether a product has one large and one skinny factor, so that this routine is faster than BLAS."""
    return 1 < min(m, n) <= MAX_ROWS and is_large(m, n, k, size)


def multiply(out: NDArray, a: NDArray, b: NDArray, launch: LoadedKernel, threads: int) -> int | None:
    """Write the product of two matrices to ``out``; return the floating-point flags that were raised.

    The arrays have one dtype, float32 or float64; ``launch`` is the routine
    `dcarray.lowering.cpu.llvm.routines.skinny_products` for it. The result does not depend on ``threads``.
    Does nothing and returns None if neither factor is skinny, or if the large one has no BLAS layout.
    """
    (m, k), n = a.shape, b.shape[1]
    if out.dtype.char not in DTYPES or not is_skinny(m, n, k, out.itemsize):
        return None
    if n <= m:  # the transposed product has few rows
        out, a, b = out.T, b.T, a.T
        m, n = n, m
    how, size = blas_layout(b), out.itemsize
    if how is None or n < _COLUMNS or np.may_share_memory(out, b) or any(step % size for step in out.strides):
        return None
    along, padded = how[0] != 111, round_up(m, 4)
    # Rows that fill up are copies, and not zeros: those would raise flags of their own beside infinities.
    rows = np.minimum(np.arange(padded), m - 1)
    if along:
        packed = np.empty((padded, round_up(k, _LANES)), out.dtype)
        packed[:, :k] = a[rows]
        packed[:, k:] = 0
    else:
        packed = np.empty((k, padded), out.dtype)
        packed.T[...] = a[rows]
    least = 1 if along else min(_WIDE // size, -(-n // threads))
    width = round_up(max(-(-n // (threads * _ITEMS)), least), _COLUMNS)
    count = -(-n // width)
    part = np.empty((0 if along else round_up(n, _COLUMNS) * padded,), out.dtype)
    out.fill(0)
    down, across = (step // size for step in out.strides)
    arguments = (
        *map(address_of, (b, packed, out, part)), along, k, n, how[1], m, padded, packed.shape[1],
        down, across, width,
    )  # fmt: skip
    return launch(launch.pack(count, max(padded * width * k // _UNIT, 1), *arguments), threads)
