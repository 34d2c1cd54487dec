"""Plausible values of symbolic dimensions, for cost models: they never decide legality."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from copy import copy

from dcarray.ir import dims
from dcarray.ir.nodes import Dim, Region

UNKNOWN = 1000  # the value of a size of which nothing is known


class SizeHints:
    """Maps a dimension of a region to a plausible value, with the given values of loop variables."""

    def __init__(self, region: Region, variables: Mapping[str, int] | None = None) -> None:
        self._hints: Mapping[str, int] = {
            s.name: s.hint if s.hint is not None else max(s.minimum, UNKNOWN) for s in region.symbols
        } | dict(variables or {})

    def __call__(self, dim: Dim) -> int:
        """Return a plausible value of a dimension."""
        if type(dim) is int:
            return dim
        return dims.evaluate(dim, {name: self._hints.get(name, UNKNOWN) for name in dims.free_symbols(dim)})

    def within(self, var: str, bounds: tuple[Dim, Dim, Dim]) -> tuple[SizeHints, int]:
        """Return the hints inside a loop, with its variable half-way, and the number of its iterations."""
        start, stop, step = map(self, bounds)
        iterations = range(start, stop, step or 1)
        inner = copy(self)
        inner._hints = {**self._hints, var: iterations[len(iterations) // 2] if iterations else start}
        return inner, len(iterations)

    def product(self, shape: Iterable[Dim]) -> int:
        """Return the plausible product of extents."""
        return math.prod(map(self, shape))
