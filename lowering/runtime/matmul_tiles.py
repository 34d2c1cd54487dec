"""Tiled matrix products on the thread pool, each tile by one single-threaded call of BLAS."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import numpy as np

from . import openblas
from .array_memory import address_of, round_up
from .blas_layout import blas_layout

if TYPE_CHECKING:
    from dcarray.lowering.kernel.compiler import LoadedKernel

__all__ = ["multiply"]

NDArray = np.ndarray[Any, Any]

MIN_MULTIPLICATIONS = 1 << 22
"""Multiplications below which a product is not tiled."""
_ROW, _COLUMN = 18, 100
"""The cost model of a product of few rows or columns: its time for each multiplication is as
``1 + _ROW / rows + _COLUMN / columns``, since BLAS packs the other factor each time."""
_DOWN, _ALONG = 16, 48
"""Rows and columns of a tile are a multiple of these."""
_MAX_TILES = 64
"""Tiles, and so threads that call BLAS at a time: it has buffers for some more."""
_MIN_SIDE = 256
"""Rows and columns, at least, of a tile of half a product."""
_TOLERATED = 1.03
"""How much longer smaller tiles may take in all than larger ones: they balance the load better."""
_WORTH = 1.02
"""How much longer all tiles may take than the whole product, in which OpenBLAS's own threads share packed
panels."""
_NEAR = 1 << 20
"""Bytes of a tile that is copied once it is made."""
_UNIT = 2
"""Multiplications in a unit of the scheduler's work."""


@lru_cache(maxsize=256)
def tile_shape(m: int, n: int, k: int, threads: int, rows_only: int = 0) -> tuple[int, int]:
    """Return the rows and columns of a tile of an ``m`` by ``n`` product over ``k``.  With ``rows_only``, a
    tile has all columns and at most that many rows.

    The result depends on the arguments alone, since the tiling may change the last bits of elements.
    """
    threads = min(threads, _MAX_TILES)
    if rows_only:
        return min(
            round_up(-(-m // threads), _DOWN), max(rows_only // _DOWN * _DOWN, -(-m // _MAX_TILES), _DOWN)
        ), n
    best: tuple[float, int, int] | None = None
    for count in (threads, 2 * threads, 4 * threads):
        if count > _MAX_TILES:
            break
        timed = [(_time(m, n, k, *grid, threads), *grid) for grid in _grids(m, n, count)]
        least = min(timed, default=None)
        if least is not None and (best is None or least[0] <= best[0] * _TOLERATED):
            best = least if best is None else (min(best[0], least[0]), *least[1:])
    if best is None or best[0] > _WORTH * _time(m, n, k, m, n, 1) / threads:
        return m, n
    return best[1:]


@lru_cache(maxsize=64)
def triangular_tiles(threads: int) -> NDArray:
    """Return the row and column numbers of the tiles on and above the diagonal of ``a @ a.T``.  Tiles above
    the diagonal come first, since they take twice as long."""
    side = 2
    while side * side < 2 * min(threads, _MAX_TILES):
        side += 2
    return np.array(sorted(combinations_with_replacement(range(side), 2), key=_last), np.int64)


def _last(pair: tuple[int, int]) -> tuple[bool, int]:
    return pair[0] == pair[1], -pair[1]


def _grids(m: int, n: int, count: int) -> Iterator[tuple[int, int]]:
    """Yield the tile shapes that divide a product into about ``count`` tiles."""
    for down in range(1, count + 1):
        if count % down == 0:
            rows, columns = round_up(-(-m // down), _DOWN), round_up(-(-n // (count // down)), _ALONG)
            if (down == 1 or rows < m) and (down == count or columns < n):
                yield min(rows, m), min(columns, n)


def _time(m: int, n: int, k: int, rows: int, columns: int, threads: int) -> float:
    """Return the estimated time of a tiled product on ``threads`` threads, in multiplications."""
    tiles = -(-m // rows) * -(-n // columns)
    return -(-tiles // threads) * k * rows * columns * (1 + _ROW / rows + _COLUMN / columns)


def multiply(out: NDArray, a: NDArray, b: NDArray, launch: LoadedKernel, threads: int) -> int | None:
    """Write the product of two matrices to ``out``; return the floating-point flags that were raised.

    The arrays have one dtype that BLAS supports; ``launch`` is the routine
    `dcarray.lowering.cpu.llvm.routines.gemm` for it. ``out`` may be the same memory as ``a``. The tiles
    depend on OpenBLAS's number of threads, not on ``threads``. Does nothing and returns None if the library
    alone is as fast, or if a matrix has no BLAS layout.
    """
    (m, k), n = a.shape, b.shape[1]
    sharing = openblas.threads()  # not ``threads``, on which the last bits must not depend
    if m * n * k < MIN_MULTIPLICATIONS or sharing < 2:
        return None
    left, right, to = blas_layout(a), blas_layout(b), blas_layout(out)
    routine = openblas.gemm(out.dtype.char)
    if left is None or right is None or to is None or to[0] != 111 or routine is None:
        return None
    if np.may_share_memory(out, b):
        return None
    within = np.may_share_memory(out, a)
    if within and not _is_same_view(out, a):
        return None
    size = out.itemsize
    half, pairs = 0, np.zeros((0, 2), np.int64)
    if _is_same_view(a, b.T):  # half of a product is enough
        half, pairs = openblas.syrk(out.dtype.char) or 0, triangular_tiles(sharing)
        rows = columns = round_up(-(-m // (int(pairs[0, 1]) + 1)), _DOWN)
        if not half or rows < _MIN_SIDE:
            return None
    else:
        rows, columns = tile_shape(m, n, k, sharing, max(_NEAR // (n * size), 1) if within else 0)
    down, across = -(-m // rows), -(-n // columns)
    count = down * across
    if half:
        pairs = np.ascontiguousarray(pairs[pairs[:, 1] < across])
        count = len(pairs)
    if count < 2:
        return None
    places = min(threads, count) if within else 0
    room = rows * n * size if within else 0
    scratch, taken = np.empty((places * room,), np.dtype(np.uint8)), np.zeros(places, np.int64)
    scalars = np.array([1, 0], out.dtype)
    arguments = (
        *map(address_of, (a, b, out)), routine, m, n, k, left[1], right[1], to[1], left[0], right[0],
        rows, columns, across, left[1] if left[0] == 111 else 1, 1 if right[0] == 111 else right[1],
        address_of(scalars), address_of(taken), places, address_of(scratch), room,
        half, address_of(pairs) if half else 0,
    )  # fmt: skip
    work = rows * columns * k // _UNIT
    with openblas.SingleThreaded():
        return launch(launch.pack(count, work, *arguments), threads)


def _is_same_view(one: NDArray, other: NDArray) -> bool:
    """Whether two arrays have the same address, shape and strides."""
    where = address_of(one) == address_of(other)
    return where and one.shape == other.shape and one.strides == other.strides
