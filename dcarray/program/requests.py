"""Loops among the requests that are planned: see `dcarray.planning`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from dcarray.planning import Drawn

from .known import Request, Result

if TYPE_CHECKING:
    from dcarray.ir.nodes import Array


class Told(NamedTuple):
    """What who runs the plan of a loop is told.

    Attributes
    ----------
    arrays : tuple
        For each array that a run is given, in order, before the copies that it keeps: its name in the region,
        its role, dtype, shape and strides (in bytes).
    inputs : tuple of str
        For each of them that is not "out": the variable whose value it is.
    results : tuple of (str, Result)
        What names are bound to afterwards.
    """

    arrays: tuple[tuple[str, str, str, tuple[int, ...], tuple[int, ...]], ...]
    inputs: tuple[str, ...]
    results: tuple[tuple[str, Result], ...]


class LoopRequest(NamedTuple):
    """A loop that is to be planned, with the options that its plan depends on."""

    loop: Request
    fastmath: bool
    threads: int
    cache_dir: str | None

    def drawn(self) -> Drawn:
        """The region of the loop."""
        from .trace import trace

        traced = trace(self.loop)
        given = [a for a in traced.region.arrays if a.role != "temp"]
        arrays = tuple([(a.name, a.role, a.dtype.str, a.shape, _strides(a)) for a in given])
        saved = frozenset(a.name for a in given if a.role == "inout")
        return Drawn(traced.region, {}, saved, Told(arrays, traced.inputs, traced.results))

    def text(self) -> str:
        """All that the plan depends on."""
        loop = self.loop
        return repr((loop.source, loop.names, sorted(loop.live), self.fastmath, self.threads))


def _strides(array: Array) -> tuple[int, ...]:
    item, shape = array.dtype.itemsize, array.shape
    if array.strides is None:
        return tuple([item * math.prod(shape[k + 1 :]) for k in range(len(shape))])
    return tuple([item * s for s in array.strides])
