"""Plausible values of symbolic dimensions, for cost models: they never decide legality."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from copy import copy

from dcarray.ir import dims
from dcarray.ir.nodes import Dim, Loop, Region

UNKNOWN = 1000  # the value of a size of which nothing is known
SMALL_UNKNOWN = 30  # and another one


class SizeHints:
    """A callable that maps a dimension of a region to a plausible value, by the hints of symbols."""

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
        """Return the hints inside a loop, where its variable has the value of the middle iteration, and the
        plausible number of iterations."""
        start, stop, step = map(self, bounds)
        iterations = range(start, stop, step or 1)
        inner = copy(self)
        inner._hints = {**self._hints, var: iterations[len(iterations) // 2] if iterations else start}
        return inner, len(iterations)

    def product(self, shape: Iterable[Dim]) -> int:
        """Return the plausible product of extents."""
        return math.prod(map(self, shape))


Cases = list[tuple[SizeHints, int]]
"""Hints, and how often what is looked at runs with these."""


def variations(region: Region) -> list[SizeHints]:
    """Return several sets of plausible values for a region's sizes.  Where two or more sizes have no hint,
    each is in turn the only small one and the only large one, so that a common decision of all does not rely
    on how they compare."""
    free = [symbol.name for symbol in region.symbols if symbol.hint is None]
    hints = [SizeHints(region)]
    for name in free if len(free) > 1 else ():
        hints.append(SizeHints(region, {name: SMALL_UNKNOWN}))
        hints.append(SizeHints(region, {other: SMALL_UNKNOWN for other in free if other != name}))
    return hints


def within(cases: Cases, loop: Loop) -> Cases:
    """Return the cases (hints, and how often the code runs) for the body of a loop, given those for the
    loop."""
    inside = [(hints.within(loop.var, loop.bounds), times) for hints, times in cases]
    return [(hints, times * count) for (hints, count), times in inside]
