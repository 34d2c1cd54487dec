"""Triangles of plain arrays, row by row where the C module was built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.core.native import BUILT

TRIL: Callable[..., Any] = getattr(np.tril, "_implementation", np.tril)
"""`numpy.tril` of a plain array."""
TRIU: Callable[..., Any] = getattr(np.triu, "_implementation", np.triu)
"""`numpy.triu` of a plain array."""

if BUILT:  # else NumPy makes a mask of all elements, and selects by it
    from dcarray._native.extension import make_triangles

    TRIL, TRIU = make_triangles(TRIL, True), make_triangles(TRIU, False)
