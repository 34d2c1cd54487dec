"""Small matrix products on one thread, so that OpenBLAS's spinning threads leave the cores to kernels.

OpenBLAS's threads spin for some 25 ms after a product, waiting for the next, and leave the pool's threads
half of a core.  So a small product, which one thread does in some 100 us, stays on the calling thread while
kernels run in between: the first few after each.  That is counted and not timed, since one thread adds up in
another order than several, and a program is to give the same last bits each time; for the same reason nothing
of this is done where several ranks make the same product."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from dcarray.core.counters import counters
from dcarray.core.processes import communicator
from dcarray.lowering.runtime import skinny_products

__all__ = ["LEAST_UNCACHED", "SMALL_PRODUCTS", "SmallProducts", "is_large_matvec", "is_skinny_product"]

LEAST_UNCACHED = 1 << 22
"""Elements of a matrix that hardly any cache holds."""

_SHARED = 1 << 15
"""Multiplications of a product below which OpenBLAS uses one thread, whatever its kind."""
_MOST_MULTIPLICATIONS, _MOST_OPERANDS = 1 << 22, 1 << 18
"""Multiplications, and elements of both operands, up to which a product is small."""
_AFTER_KERNEL = 8
"""Small products after the last kernel that stay on one thread."""


def is_large_matvec(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether a product is one of a vector and a matrix large enough for several threads."""
    return len(a) + len(b) == 3 and max(math.prod(a), math.prod(b)) >= LEAST_UNCACHED


def is_skinny_product(a: Sequence[int], b: Sequence[int], char: str) -> bool:
    """Whether a matrix product is so skinny that the routine which reads the large factor once beats BLAS."""
    if len(a) < 2 or len(b) != 2 or char not in skinny_products.DTYPES:
        return False
    return skinny_products.is_skinny(math.prod(a[:-1]), b[1], b[0], np.dtype(char).itemsize)


class SmallProducts:
    """The small products after kernels, which stay on one thread."""

    def __init__(self) -> None:
        self._kernels = 0  # launches before the last small product
        self._left = 0

    def context(self, a: Sequence[int], b: Sequence[int]) -> AbstractContextManager[object]:
        """Return the context for a product of arrays of these shapes: `openblas.SingleThreaded`, which is not
        None inside, if it stays on one thread, else none."""
        size = math.prod(a)
        multiplications = size * b[-1] if len(b) > 1 else size
        if (
            not _SHARED < multiplications <= _MOST_MULTIPLICATIONS
            or size + math.prod(b) > _MOST_OPERANDS
            or communicator() is not None
        ):
            return nullcontext()
        if counters.kernels != self._kernels:
            self._kernels, self._left = counters.kernels, _AFTER_KERNEL
        elif self._left:
            self._left -= 1
        if self._left:
            from dcarray.lowering.runtime import openblas, threads

            if threads.native is not None and threads.native.has_threads() and openblas.is_available():
                return openblas.SingleThreaded()
        return nullcontext()


SMALL_PRODUCTS = SmallProducts()
"""Those of this process."""
