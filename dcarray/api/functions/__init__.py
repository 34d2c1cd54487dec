"""NumPy's functions on wrapped arrays: one module a topic, and the fallback to NumPy for all others."""

from __future__ import annotations

from dcarray.api.dispatch import DISPATCH

from . import (  # noqa: F401 - an import registers implementations
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
    reductions,
    scans,
    searching,
    sliding,
    types,
)
from .registry import IMPLEMENTATIONS, implements

from . import native_routes  # noqa: F401  # isort: skip - last, since it reads which functions are implemented

__all__ = ["IMPLEMENTATIONS", "implements"]

DISPATCH.fallback = fallback.call  # last: until then other threads wait for these imports
