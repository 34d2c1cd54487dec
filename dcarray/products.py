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

from .ranks import several
from .report import counters

__all__ = ["COMPANY", "Company"]

_SHARED = 1 << 15
"""Multiplications of a product below which OpenBLAS shares nothing out, whatever its kind."""
_SLIGHT, _NEAR = 1 << 22, 1 << 18
"""Multiplications, and elements of both operands, up to which a product is slight."""
_FEW = 8
"""Slight products after the last kernel that stay on one thread."""


class Company:
    """Which products are made beside threads of ours."""

    def __init__(self) -> None:
        self._kernels = 0  # that had run when the last slight product was made
        self._left = 0

    def of(self, a: Sequence[int], b: Sequence[int]) -> AbstractContextManager[object]:
        """What a product of arrays of these shapes is made in: `dcarray.lowering.openblas.Alone`, which is
        not None inside, or nothing."""
        size = math.prod(a)
        multiplications = size * b[-1] if len(b) > 1 else size
        if not _SHARED < multiplications <= _SLIGHT or size + math.prod(b) > _NEAR or several() is not None:
            return nullcontext()
        if counters.kernels != self._kernels:
            self._kernels, self._left = counters.kernels, _FEW
        elif self._left:
            self._left -= 1
        if self._left:
            from .lowering import openblas
            from .lowering.llvm import threads

            if threads.begun() and openblas.usable():
                return openblas.Alone()
        return nullcontext()


COMPANY = Company()
"""That of this process."""
