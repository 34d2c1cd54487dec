"""The layout of a matrix in BLAS's terms."""

from __future__ import annotations

from typing import Any

import numpy as np


def blas_layout(array: np.ndarray[Any, Any]) -> tuple[int, int] | None:
    """Return the BLAS layout of a matrix, or of each matrix of a stack, and its leading dimension.  The
    layout is CblasNoTrans (111, by rows) or CblasTrans (112, by columns); None if the matrix has neither."""
    (down, along), size = array.strides[-2:], array.itemsize
    height, width = array.shape[-2:]
    if along == size:
        return (111, down // size) if down % size == 0 and down >= size * max(width, 1) else None
    if down == size and along % size == 0 and along >= size * max(height, 1):
        return 112, along // size
    return None
