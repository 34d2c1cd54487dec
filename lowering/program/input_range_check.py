"""The input range check of a plan: it tests whether inputs are so small that no exception can be raised.

Then a run needs no undo copies (`dcarray.ir.analysis.value_ranges`).  The check has its own kernels, which
read all inputs once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dcarray.lowering.runtime.array_memory import address_of

if TYPE_CHECKING:
    from .executable import Plan

__all__ = ["MIN_COPIED", "MIN_COPIED_BESIDE", "InputRangeCheck", "PlannedCheck", "within"]

MIN_COPIED = 1 << 18
"""Bytes of undo copies from which on a check of the inputs pays,"""
MIN_COPIED_BESIDE = 1 << 20
"""and of those that a kernel makes beside its other work."""

_F64 = np.dtype(np.float64)


class PlannedCheck(NamedTuple):
    """An input range check in the process that makes plans.

    Attributes
    ----------
    plan : Plan
        The plan of `dcarray.ir.analysis.value_ranges.magnitude_region`; all its steps are kernels.
    inputs : tuple of int
        The positions of the checked inputs among the addresses that a run of the checked plan gets.
    scalars : tuple of bool
        Whether each checked input is a number, not an array.
    most, least : float
        As in `dcarray.ir.analysis.value_ranges.Limits`.
    """

    plan: Plan
    inputs: tuple[int, ...]
    scalars: tuple[bool, ...]
    most: float
    least: float


class InputRangeCheck:
    """An input range check that can run: a callable of addresses, values of symbols, and a number of threads.

    Parameters
    ----------
    run : callable
        The `dcarray.lowering.program.executable.Plan.run` of the check's plan.
    inputs, scalars, most, least
        The attributes of `PlannedCheck`.
    """

    __slots__ = ("_inputs", "_least", "_most", "_run", "_scalars")

    def __init__(
        self,
        run: Callable[..., int],
        inputs: tuple[int, ...],
        scalars: tuple[bool, ...],
        most: float,
        least: float,
    ) -> None:
        self._run, self._inputs, self._scalars, self._most, self._least = run, inputs, scalars, most, least

    def __call__(self, addresses: Sequence[int], symbols: Sequence[int], threads: int) -> bool:
        """Whether all inputs are within the limits, and none has a NaN."""
        magnitudes = np.zeros(len(self._inputs), _F64)
        first = address_of(magnitudes)
        results = range(first, first + magnitudes.nbytes, _F64.itemsize)
        self._run((), [*[addresses[k] for k in self._inputs], *results], symbols, threads)
        return within(magnitudes.tolist(), self._scalars, self._most, self._least)


def within(magnitudes: Sequence[float], scalars: Sequence[bool], most: float, least: float) -> bool:
    """Whether the largest magnitudes of arrays, and the values of scalars, are within the limits."""
    return all(
        (least or -most) <= value <= most if scalar else value <= most
        for value, scalar in zip(magnitudes, scalars, strict=True)
    )
