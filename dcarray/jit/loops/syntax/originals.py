"""The original code objects of functions whose code has sites."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

__all__ = ["called_by", "original", "originals", "wrapping"]

originals: dict[int, tuple[CodeType, CodeType]] = {}
"""By the identity of a code object with sites: that, and the original."""


wrapping: set[CodeType] = set()
"""The code objects of functions that do nothing but call the one that is their ``__wrapped__``."""


def called_by(value: Any) -> Any:
    """Return the function that a wrapper made by `accelerate` calls; any other value itself."""
    while type(value) is FunctionType and value.__code__ in wrapping:
        value = value.__wrapped__  # type: ignore[attr-defined]
    return value


def original(function: FunctionType) -> CodeType:
    """Return a function's own code object, even while its ``__code__`` is a version with sites, the places
    where compiled code may take over."""
    found = originals.get(id(function.__code__))
    return function.__code__ if found is None else found[1]
