"""What NumPy's functions mean on wrapped arrays: one module a topic, and NumPy itself for the rest."""

from __future__ import annotations

from dcarray.dispatch import DISPATCH

from . import (
    covariance,
    creation,
    differences,
    elementwise,
    fallback,
    histograms,
    indexing,
    joining,
    linalg,
    lines,
    manipulation,
    places,
    reductions,
    scans,
    searching,
    sliding,
    small,
    solving,
    types,
)
from .registry import IMPLEMENTATIONS, implements

__all__ = [
    "IMPLEMENTATIONS",
    "covariance",
    "creation",
    "differences",
    "elementwise",
    "fallback",
    "histograms",
    "implements",
    "indexing",
    "joining",
    "linalg",
    "lines",
    "manipulation",
    "places",
    "reductions",
    "scans",
    "searching",
    "sliding",
    "small",
    "solving",
    "types",
]  # fmt: skip

DISPATCH.fallback = fallback.call  # last: until then other threads wait for all of them
