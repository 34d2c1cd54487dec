"""Exceptions of the face; everything that NumPy itself would raise is raised as NumPy raises it."""

from __future__ import annotations

__all__ = ["StrictError"]


class StrictError(RuntimeError):
    """A call has no lowering of its own and ``strict`` forbids to run it through NumPy."""
