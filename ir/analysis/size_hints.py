"""Plausible values of dimensions; they steer choices and never decide what is right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy

from dcarray.ir import dims
from dcarray.ir.nodes import Dim, Region

UNKNOWN = 1000  # what a size is taken for when nothing is known of it


class SizeHints:
    """Plausible values of a region's dimensions, where loop variables have the given values."""

    def __init__(self, region: Region, variables: Mapping[str, int] | None = None) -> None:
        self._hints: Mapping[str, int] = {
            s.name: s.hint if s.hint is not None else max(s.minimum, UNKNOWN) for s in region.symbols
        } | dict(variables or {})

    def __call__(self, dim: Dim) -> int:
        """A plausible value."""
        if type(dim) is int:
            return dim
        return dims.evaluate(dim, {name: self._hints.get(name, UNKNOWN) for name in dims.free_symbols(dim)})

    def within(self, var: str, bounds: tuple[Dim, Dim, Dim]) -> tuple[SizeHints, int]:
        """The values inside of a loop, with its variable half-way, and how many iterations it takes."""
        start, stop, step = map(self, bounds)
        iterations = range(start, stop, step or 1)
        inner = copy(self)
        inner._hints = {**self._hints, var: iterations[len(iterations) // 2] if iterations else start}
        return inner, len(iterations)

    def product(self, shape: Iterable[Dim]) -> int:
        """How many points there may be."""
        total = 1
        for dim in shape:
            total *= self(dim)
        return total
