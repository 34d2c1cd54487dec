"""Expansion of library calls to statements that a kernel can compute."""

from __future__ import annotations

import numpy as np

from dcarray.ir.analysis import matrix_products
from dcarray.ir.nodes import Call, Compute, Region

from .access import Memory


def expand(call: Call, region: Region) -> Compute | None:
    """Return the statement that computes the same as a call; None if there is none, or if the call's result
    may overlap an operand."""
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
