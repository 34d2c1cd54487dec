"""The libraries for library calls on a CPU: NumPy's BLAS, and routines of this package as LLVM text."""

from __future__ import annotations

import math

from dcarray.ir import dims
from dcarray.ir.analysis.size_hints import SizeHints
from dcarray.ir.nodes import Call, Dim, Region
from dcarray.lowering.cpu.llvm.routines.routine import Routine
from dcarray.lowering.libraries.dispatch import Library, all_alike, dtypes_of
from dcarray.lowering.runtime import matmul_tiles, openblas, skinny_products


def _few_rows(call: Call, region: Region) -> bool:
    """Whether a product is one of a large matrix with a few rows or columns.

    Whether they are few is decided by guards, because the routine for few rows is no faster than NumPy for
    many; the size of the matrix is estimated by hints.
    """
    dtype, (a, b), hints = dtypes_of(call, region)[0], call.reads, SizeHints(region)
    if (
        len(a.shape) < 2
        or len(b.shape) != 2
        or not all_alike(call, region)
        or dtype.char not in skinny_products.DTYPES
    ):
        return False
    sides = math.prod(a.shape[:-1]), b.shape[1]
    if not skinny_products.is_large(hints(sides[0]), hints(sides[1]), hints(b.shape[0]), dtype.itemsize):
        return False
    return all_alike(call, region) and any(_at_most(side, skinny_products.MAX_ROWS, hints) for side in sides)


def _at_most(extent: Dim, most: int, hints: SizeHints) -> bool:
    known = dims.prove_le(extent, most)
    return hints(extent) <= most if known is None else known


def _read_once(call: Call, region: Region, cores: int) -> Routine:
    """Return the routine for products of a large matrix with few rows or columns."""
    from dcarray.lowering.cpu.llvm.routines.skinny_products import skinny as routine

    return routine(dtypes_of(call, region)[0].char)


def _tiled(call: Call, region: Region, cores: int) -> Routine | None:
    """Return the routine that computes a product in tiles on several threads; None if it is too small."""
    a, b = call.reads
    hints = SizeHints(region)
    if min(len(a.shape), len(b.shape)) < 2 or cores < 2 or not openblas.is_available():
        return None
    if hints.product((*a.shape, b.shape[-1])) < matmul_tiles.MIN_MULTIPLICATIONS:
        return None
    from dcarray.lowering.cpu.llvm.routines.gemm import gemm

    return gemm(dtypes_of(call, region)[0].char)


LIBRARIES: dict[str, list[Library]] = {
    "blas.matmul": [
        Library("skinny", _few_rows, _read_once, "the large matrix is read once, where it lies"),
        Library("numpy", all_alike, _tiled, "by NumPy's BLAS, in tiles on our threads"),
    ]
}
"""The libraries of each operation, best first."""
