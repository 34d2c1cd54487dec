"""NumPy's functions on wrapped arrays: one module a topic, and the fallback to NumPy for all others."""

from __future__ import annotations

from dcarray.api.dispatch import DISPATCH

from . import (
    argreduce,
    covariance,
    creation,
    differences,
    elementwise,
    fallback,
    histograms,
    indexing,
    joining,
    linalg,
    manipulation,
    per_axis,
    reductions,
    scans,
    searching,
    sliding,
    solving,
    types,
)
from .registry import IMPLEMENTATIONS, implements

from . import native_routes  # isort: skip - last, since it reads which functions are implemented

__all__ = [
    "IMPLEMENTATIONS",
    "argreduce",
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
    "manipulation",
    "native_routes",
    "per_axis",
    "reductions",
    "scans",
    "searching",
    "sliding",
    "solving",
    "types",
]  # fmt: skip

DISPATCH.fallback = fallback.call  # last: until then other threads wait for these imports
