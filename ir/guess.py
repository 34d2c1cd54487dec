"""Plausible values of dimensions; they steer choices and never decide what is right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from . import dims
from .nodes import Dim, Region

UNKNOWN = 1000  # what a size is taken for when nothing is known of it


class Guess:
    """Plausible values of a region's dimensions."""

    def __init__(self, region: Region) -> None:
        self._hints: Mapping[str, int] = {
            s.name: s.hint if s.hint is not None else max(s.minimum, UNKNOWN) for s in region.symbols
        }

    def __call__(self, dim: Dim) -> int:
        """A plausible value."""
        if type(dim) is int:
            return dim
        return dims.evaluate(dim, {name: self._hints.get(name, UNKNOWN) for name in dims.free_symbols(dim)})

    def product(self, shape: Iterable[Dim]) -> int:
        """How many points there may be."""
        total = 1
        for dim in shape:
            total *= self(dim)
        return total
