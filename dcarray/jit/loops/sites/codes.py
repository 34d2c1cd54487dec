"""The code objects with sites: the original of each, and the sites in it."""

from __future__ import annotations

from collections.abc import Mapping
from types import CodeType

from ..syntax.originals import originals
from .sampler import SAMPLER
from .site import Site

__all__ = ["every", "inner_codes", "note_codes"]


every: dict[int, list[Site]] = {}
"""By the identity of a code object with sites, these, and those of the codes in it."""


def note_codes(made: CodeType, plain: CodeType, sites_of: Mapping[tuple[str, int], list[Site]]) -> list[Site]:
    """Register a code object with sites, and the code objects in it: `original` finds ``plain`` for ``made``
    from now on, and the sampler watches ``made``.  Return all sites in it."""
    own = sites_of.get((made.co_name, made.co_firstlineno), ())
    found = [*own]
    for inner, before in zip(inner_codes(made), inner_codes(plain), strict=True):
        found += note_codes(inner, before, sites_of)
    if found:
        originals[id(made)] = made, plain
        every[id(made)] = found
    if own:
        SAMPLER.add(made, own)
    return found


def inner_codes(code: CodeType) -> list[CodeType]:
    """Return the code objects that are constants of a code object: those of its inner functions and
    classes."""
    return [const for const in code.co_consts if type(const) is CodeType]
