"""Loops among the requests that are planned: see `dcarray.plans.requests`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from dcarray.core.errors import Untraceable
from dcarray.plans.requests import Drawn

from .entry_values import Request, Result

if TYPE_CHECKING:
    from dcarray.ir.nodes import Array, Region


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
    rewritten : tuple of str
        The arrays that are overwritten and not kept, since another run writes them anew (`ir.idempotent`), if
        nothing ends it.
    loud : bool
        Whether floating-point flags are minded also where they are ignored: it may raise other exceptions.
    checked : bool
        Whether it checks values, and raises the flag of an invalid operation where they do not fit.
    """

    arrays: tuple[tuple[str, str, str, tuple[int, ...], tuple[int, ...]], ...]
    inputs: tuple[str, ...]
    results: tuple[tuple[str, Result], ...]
    rewritten: tuple[str, ...]
    loud: bool
    checked: bool


class LoopRequest(NamedTuple):
    """A loop that is to be planned, with the options that its plan depends on.

    Attributes
    ----------
    most : int or None
        Statements that go over more elements in a turn are better left to ranks that share them out.
    """

    loop: Request
    fastmath: bool
    threads: int
    cache_dir: str | None
    most: int | None = None

    def drawn(self) -> Drawn:
        """The region of the loop."""
        from dcarray.ir.analysis.idempotence import idempotent

        from .trace import trace

        traced = trace(self.loop)
        if self.most is not None and _largest(traced.region) > self.most:
            raise Untraceable("its statements work on arrays in blocks", self.loop.line)
        given = [a for a in traced.region.arrays if a.role != "temp"]
        arrays = tuple([(a.name, a.role, a.dtype.str, a.shape, _strides(a)) for a in given])
        anew = frozenset() if traced.loud else idempotent(traced.region)
        saved = frozenset(a.name for a in given if a.role == "inout") - anew
        checked = _checked(traced.region)
        told = Told(arrays, traced.inputs, traced.results, tuple(sorted(anew)), traced.loud, checked)
        return Drawn(traced.region, {}, saved, told, True, True)

    def text(self) -> str:
        """All that the plan depends on."""
        loop = self.loop
        options = self.fastmath, self.threads, self.most
        return repr((loop.source, loop.names, sorted(loop.live), loop.watched, *options))


def _strides(array: Array) -> tuple[int, ...]:
    item, shape = array.dtype.itemsize, array.shape
    if array.strides is None:
        return tuple([item * math.prod(shape[k + 1 :]) for k in range(len(shape))])
    return tuple([item * s for s in array.strides])


def _largest(region: Region) -> int:
    """The most elements that a statement of a region goes over in one turn of the loops around it."""
    from dcarray.ir.analysis.effects import reads, writes
    from dcarray.ir.analysis.independence import every
    from dcarray.ir.nodes import Branch, Loop, While

    sizes = {array.name: math.prod(array.shape) for array in region.arrays}
    found = 0
    for stmt in every(region.body):
        if not isinstance(stmt, Branch | Loop | While):
            for window in (*reads(stmt), *writes(stmt)):
                whole = all(type(n) is int for n in window.shape)
                found = max(found, math.prod(window.shape) if whole else sizes[window.array])
    return found


def _checked(region: Region) -> bool:
    """Does a statement of a region check values, and say so where they do not fit?"""
    from dcarray.ir.analysis.independence import every
    from dcarray.ir.nodes import Apply, Branch, Compute, While
    from dcarray.ir.windows import walk

    asked = [
        stmt.body if isinstance(stmt, Compute) else stmt.cond
        for stmt in every(region.body)
        if isinstance(stmt, Branch | Compute | While)
    ]
    return any(isinstance(node, Apply) and node.op == "checked" for node in walk(*asked))
