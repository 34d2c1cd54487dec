"""What NumPy's functions mean on wrapped arrays: one module a topic, and NumPy itself for the rest."""

from __future__ import annotations

from . import (
    creation,
    differences,
    elementwise,
    fallback,
    histograms,
    indexing,
    joining,
    linalg,
    manipulation,
    reductions,
    small,
    types,
)
from .registry import IMPLEMENTATIONS, implements

__all__ = [
    "IMPLEMENTATIONS", "creation", "differences", "elementwise", "fallback", "histograms", "implements",
    "indexing", "joining", "linalg", "manipulation", "reductions", "small", "types",
]  # fmt: skip
