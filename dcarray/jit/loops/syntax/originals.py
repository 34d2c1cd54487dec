"""The original code objects of functions that run code with sites."""

from __future__ import annotations

from types import CodeType, FunctionType

__all__ = ["original", "originals"]

originals: dict[int, tuple[CodeType, CodeType]] = {}
"""By the identity of a code object with sites: that, and the original."""


def original(function: FunctionType) -> CodeType:
    """Return the code object of a function's source, also while it runs one with sites."""
    found = originals.get(id(function.__code__))
    return function.__code__ if found is None else found[1]
