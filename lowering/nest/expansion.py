"""Expansion of library calls to statements, for calls that a kernel makes itself."""

from __future__ import annotations

import numpy as np

from dcarray.ir.analysis import matrix_products
from dcarray.ir.nodes import Call, Compute, Region

from .access import Memory


def expand(call: Call, region: Region) -> Compute | None:
    """Return a call as a statement; None if it has no such form or writes an array that it reads."""
    if call.op != "blas.matmul" or call.attrs:
        return None
    memory = Memory(region)
    (out,), (a, b) = call.writes, call.reads
    dtypes = {memory.arrays[window.array].dtype for window in (out, a, b)}
    if len(dtypes) > 1 or not all(memory.disjoint(out, window) for window in (a, b)):
        return None
    (dtype,) = dtypes
    # NumPy adds up halves in single
    return None if dtype == np.float16 else matrix_products.as_sum(call, dtype)
