"""Products that NumPy makes, in the company of threads of ours.

OpenBLAS's threads spin for some 25 ms after a product, waiting for the next, and leave ours half of a
core. So a slight product, which one thread does in some 100 us, stays on the thread that makes it while
kernels run in between: the first few after each. That is counted and not timed, since one thread adds
up in another order than several, and a program is to find the same last bits each time; for the same
reason nothing of this is done where several ranks make the same product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from dcarray.core.counters import counters
from dcarray.core.processes import communicator
from dcarray.lowering.runtime import skinny_products

__all__ = ["COMPANY", "WIDE", "Company", "read_once", "shared"]

WIDE = 1 << 22
"""Elements of a matrix that hardly any cache holds."""

_SHARED = 1 << 15
"""Multiplications of a product below which OpenBLAS shares nothing out, whatever its kind."""
_SLIGHT, _NEAR = 1 << 22, 1 << 18
"""Multiplications, and elements of both operands, up to which a product is slight."""
_FEW = 8
"""Slight products after the last kernel that stay on one thread."""


def shared(a: Sequence[int], b: Sequence[int]) -> bool:
    """Is a product that of a vector with so large a matrix that it is worth to look for others to share the
    pass?"""
    return len(a) + len(b) == 3 and max(math.prod(a), math.prod(b)) >= WIDE


def read_once(a: Sequence[int], b: Sequence[int], char: str) -> bool:
    """Is a product that of a large matrix with few rows, which a plan makes sooner than BLAS?"""
    if len(a) < 2 or len(b) != 2 or char not in skinny_products.DTYPES:
        return False
    return skinny_products.is_skinny(math.prod(a[:-1]), b[1], b[0], np.dtype(char).itemsize)


class Company:
    """Which products are made beside threads of ours."""

    def __init__(self) -> None:
        self._kernels = 0  # that had run when the last slight product was made
        self._left = 0

    def of(self, a: Sequence[int], b: Sequence[int]) -> AbstractContextManager[object]:
        """The context for a product of arrays of these shapes: `openblas.SingleThreaded`, which is not None
        inside, or nothing."""
        size = math.prod(a)
        multiplications = size * b[-1] if len(b) > 1 else size
        if (
            not _SHARED < multiplications <= _SLIGHT
            or size + math.prod(b) > _NEAR
            or communicator() is not None
        ):
            return nullcontext()
        if counters.kernels != self._kernels:
            self._kernels, self._left = counters.kernels, _FEW
        elif self._left:
            self._left -= 1
        if self._left:
            from dcarray.lowering.cpu.llvm.thread_pool import threads
            from dcarray.lowering.runtime import openblas

            if threads.begun() and openblas.is_available():
                return openblas.SingleThreaded()
        return nullcontext()


COMPANY = Company()
"""That of this process."""
