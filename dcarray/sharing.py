"""NumPy's loops over large arrays, on the threads that kernels have.

What NumPy does at once (`dcarray.alone`) runs on one core.  Where there are threads for kernels anyway, the C
module has the plainest of its loops shared by them (`_shared.h`): each thread calls the loop that NumPy would
call, on a part of the elements.
"""

from __future__ import annotations

import sys

__all__ = ["pool"]


def pool(threads: int) -> tuple[int, int] | None:
    """The native function that launches a job on so many threads, and the address of their pool; None as long
    as no kernel has wanted one: nothing is imported or compiled for the sake of NumPy's loops."""
    module = sys.modules.get("dcarray.lowering.llvm.threads")
    found: tuple[int, int] | None = module.native(threads) if module is not None else None
    return found
