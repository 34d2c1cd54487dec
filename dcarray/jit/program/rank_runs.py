"""Runs of a program's region on all ranks, if arrays lie in blocks or are large enough to be distributed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dcarray.core import fp_state
from dcarray.core.backend import backend, is_distributed
from dcarray.core.config import Options
from dcarray.core.counters import counters
from dcarray.core.fp_bits import INVALID, RAISING
from dcarray.core.handle import Handle
from dcarray.core.processes import communicator
from dcarray.ir import dims

from ..loops.entry import generators
from ..loops.entry.lists import ListElements
from ..loops.sites.loop_requests import is_checked
from ..loops.sites.plan_values import PlanMismatch, binding, fetcher, number
from .description import Description

__all__ = ["RankRuns"]

_MAX_SIZES = 64  # of which there are plans


class RankRuns:
    """The runs of one `dc.program` on all ranks.

    Parameters
    ----------
    description : Description
    """

    def __init__(self, description: Description) -> None:
        from .region import trace_program

        self._traced = traced = trace_program(description)
        function = description.function
        self._name, self._where = function.name, (function.file, function.line)
        self._regions: dict[tuple[int, ...], Any] = {}
        region, self._checked = traced.region, is_checked(traced.region)
        place = {name: k for k, (name, _) in enumerate(description.parameters)}
        inputs = [a for a in region.arrays if a.role in ("in", "inout")]
        self._refused = any(map(generators.is_input, traced.inputs)) or any(a.base for a in region.arrays)
        self._inputs: list[tuple[str, Any, Any]] = []
        self._results: list[tuple[str, Any]] = []
        if self._refused:
            return
        try:
            self._inputs = [
                (a.name, fetcher(text, place), a.dtype) for a, text in zip(inputs, traced.inputs, strict=True)
            ]
            at_of = {a.name: k for k, a in enumerate(region.arrays)}
            for k, result in enumerate(traced.results):
                bind = None
                if result.kind != "array":
                    bind = binding(result, f"r{k}", place, at_of, True)
                self._results.append((result.name, bind))
        except PlanMismatch:
            self._refused = True

    def is_needed(self, values: Sequence[Any], symbols: tuple[int, ...], options: Options) -> bool:
        """Whether an array lies in blocks, or an array of the region is large enough to be distributed."""
        if any(isinstance(x, Handle) and is_distributed(x) for x in values):
            return True
        known = dict(zip([s.name for s in self._traced.region.symbols], symbols, strict=True))
        shapes = [[dims.substitute(n, known) for n in a.shape] for a in self._traced.region.arrays if a.shape]
        return any(
            not all(type(n) is int for n in shape) or math.prod(shape) > options.distribute_above
            for shape in shapes
        )

    def run(
        self, values: Sequence[Any], symbols: tuple[int, ...], options: Options
    ) -> tuple[Any, ...] | None:
        """Return the program's result; None if the original function has to run.

        Parameters
        ----------
        values : sequence
            The arguments, of which arrays are wrapped.
        symbols : tuple of int
            The values of the region's symbols.
        """
        comm = communicator()
        if self._refused or comm is None or any(type(x) is ListElements for x in values):
            return None
        given: dict[str, Any] = {}
        for name, fetch, dtype in self._inputs:
            value = values[fetch] if type(fetch) is int else fetch(values)
            if not isinstance(value, Handle):
                value = number(value, dtype)
                if value is None:
                    return None
            given[name] = value
        region = self._traced.region
        state = fp_state.current_state()
        mask = fp_state.watched_flags(state)
        if self._traced.may_raise:
            mask |= RAISING
        elif mask & RAISING and self._checked:
            mask |= INVALID
        unseen = not (self._traced.may_raise or self._checked or fp_state.raises_or_calls(state))
        by_name = self._region(symbols).run(given, mask, options, comm, unseen)
        if by_name is None:
            return None
        counters.loops += 1
        arrays = [by_name.get(array.name) for array in region.arrays]
        return tuple(
            [
                by_name[name] if bind is None else bind(values, arrays, (), options.eager_below)
                for name, bind in self._results
            ]
        )

    def _region(self, symbols: tuple[int, ...]) -> Any:
        pieces = self._regions.get(symbols)
        if pieces is None:
            if len(self._regions) >= _MAX_SIZES:
                self._regions.clear()
            known = dict(zip([s.name for s in self._traced.region.symbols], symbols, strict=True))
            region = self._traced.region
            pieces = self._regions[symbols] = backend().RegionOnRanks(region, known, self._name, self._where)
        return pieces
