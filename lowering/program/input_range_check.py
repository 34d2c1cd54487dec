"""A look at what a run is given: is it so small that nothing can raise a floating-point exception?

Then nothing of what the run overwrites need be kept (`dcarray.ir.analysis.value_ranges`).  The look has
kernels of its own, which read all that is given once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dcarray.lowering.runtime.memory import address_of

if TYPE_CHECKING:
    from .executable import Plan

__all__ = ["FEWEST", "WORTH", "Look", "Planned", "within"]

WORTH = 1 << 18
"""Bytes of copies from which on it is worth to look at the inputs first,"""
FEWEST = 1 << 20
"""and of those that kernels make beside what overwrites."""

_F64 = np.dtype(np.float64)


class Planned(NamedTuple):
    """What a look is made of.

    Attributes
    ----------
    plan : Plan
        Of `dcarray.ir.analysis.value_ranges.magnitude_region`, of kernels alone.
    at : tuple of int
        Which of the addresses that the run is given it looks at.
    plain : tuple of bool
        Is there no array, but a number?
    most, least : float
        As in `dcarray.ir.analysis.value_ranges.Limits`.
    """

    plan: Plan
    at: tuple[int, ...]
    plain: tuple[bool, ...]
    most: float
    least: float


class Look:
    """A look at arrays, given their addresses, the values of symbols, and how many threads there are.

    Parameters
    ----------
    run : callable
        As `dcarray.lowering.plan.Plan.run`.
    at, plain, most, least
        As in `Planned`.
    """

    __slots__ = ("_at", "_least", "_most", "_plain", "_run")

    def __init__(
        self, run: Callable[..., int], at: tuple[int, ...], plain: tuple[bool, ...], most: float, least: float
    ) -> None:
        self._run, self._at, self._plain, self._most, self._least = run, at, plain, most, least

    def __call__(self, addresses: Sequence[int], symbols: Sequence[int], threads: int) -> bool:
        """Is all within the limits, and no NaN?"""
        found = np.zeros(len(self._at), _F64)
        first = address_of(found)
        places = range(first, first + found.nbytes, _F64.itemsize)
        self._run((), [*[addresses[k] for k in self._at], *places], symbols, threads)
        return within(found.tolist(), self._plain, self._most, self._least)


def within(found: Sequence[float], plain: Sequence[bool], most: float, least: float) -> bool:
    """Are these the largest magnitudes of arrays, or plain numbers, within the limits?"""
    return all(
        (least or -most) <= value <= most if number else value <= most
        for value, number in zip(found, plain, strict=True)
    )
