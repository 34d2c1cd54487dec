"""The plan cache of distributed execution: facts of a log, and its plans by the layouts of its arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from dcarray.comm.layout.layouts import Layout
from dcarray.comm.planning.analysis.halo_state import ValidHalos
from dcarray.comm.planning.rank_program.steps import Note, Program
from dcarray.core.config import Options
from dcarray.core.shard import NDArray, Shard
from dcarray.execution.executor import EXECUTOR, report_failure
from dcarray.ir.analysis.value_ranges import Limits
from dcarray.ir.nodes import Region
from dcarray.lowering.runtime import perf_map
from dcarray.plans import provider, requests
from dcarray.plans.slot import PlanSlot
from dcarray.plans.templates import ExecutablePlan
from dcarray.recording.log import Recording

from .consistency import digest

__all__ = ["LayoutPlan", "LogFacts", "compile_region", "facts_of", "region_request", "slot_of"]

Value = TypeVar("Value")

MAX_LOGS = 1024
MAX_PLANS = 64  # of one log


@dataclass
class LayoutPlan:
    """The plan of a log for arrays of certain layouts, with what follows from it."""

    program: Program
    layouts: dict[str, Layout]  # by array name
    # by the identity of a rank's local region
    compiled: dict[int, PlanSlot[ExecutablePlan]] = field(default_factory=dict)
    plan_per_statement: Callable[[], Program] | None = None  # statement by statement, without fusion
    ambiguous: int = 0  # exception bits that several statements may have raised
    culprits: tuple[int, ...] = ()  # by exception bit, the statement that raises it
    limits: Limits | None = None  # of the inputs' magnitudes, within which `overwriting` may run
    plan_overwriting: Callable[[], Program] | None = None  # with writes in place
    _scalars: dict[int, dict[str, NDArray]] = field(default_factory=dict)

    @cached_property
    def per_statement(self) -> Program:
        """The program that runs statement by statement, made when the cause of an exception is sought."""
        assert self.plan_per_statement is not None
        return self.plan_per_statement()

    @cached_property
    def overwriting(self) -> LayoutPlan:
        """The plan that writes in place, for inputs so small that nothing can raise."""
        assert self.plan_overwriting is not None
        return LayoutPlan(self.plan_overwriting(), self.layouts)

    @cached_property
    def inputs(self) -> tuple[tuple[str, int], ...]:
        """The names and slots of the arrays that exist before the run."""
        return tuple((name, slot) for name in self.program.given if (slot := slot_of(name)) >= 0)

    @cached_property
    def outputs(self) -> tuple[tuple[int, str, Layout | None, ValidHalos | None], ...]:
        """Slot, name, layout and valid halo of each array that exists after the run."""
        program = self.program
        slots = sorted((slot, name) for name in program.after if (slot := slot_of(name)) >= 0)
        return tuple((slot, name, program.layout(name), program.valid.get(name)) for slot, name in slots)

    @cached_property
    def gathering_notes(self) -> tuple[Note, ...]:
        """The notes of statements that gather their arrays."""
        return tuple(note for note in self.program.notes if note.whole)

    def scalars(self, rec: Recording) -> dict[str, NDArray]:
        """Return the scalar arguments, whose addresses depend on the recording's arena."""
        scalars = self._scalars.get(rec.arena)
        if scalars is None:
            arrays = rec.scalar_arrays()
            scalars = {name: arrays[name] for name in self.program.given if slot_of(name) < 0}
            _put(self._scalars, rec.arena, scalars, MAX_PLANS)
        return scalars


class LogFacts:
    """The facts of a log that are the same for all layouts of its arrays, and its plans by layouts.

    Attributes
    ----------
    description : tuple
        The description of the recording that ranks compare.
    one_geometry : bool
        Whether each storage family is used in one geometry only.
    largest : int
        The number of elements of the largest array; -1 if there are only scalars.
    written : frozenset of int
        The slots that are written.
    overwrites : bool
        Whether an array is written that existed before.
    factors : tuple of int
        The scalars that are factors of products, if the log has sums.
    """

    __slots__ = ("_plans", "description", "factors", "largest", "one_geometry", "overwrites", "written")

    def __init__(self, rec: Recording, log: tuple[Any, ...]) -> None:
        declared = rec.declarations()
        self.description = ("run", f"{len(log)} recorded", digest((log, rec.kinds)))
        self.one_geometry = all(entry.head == slot for slot, entry in enumerate(declared))
        self.largest = max((math.prod(entry.shape) for entry in declared if entry.shape), default=-1)
        statements = rec.statements()
        self.written = frozenset(slot for entry in statements for slot in entry.outs)
        self.overwrites = any(not declared[slot].is_new for slot in self.written)
        sums = any(entry.kind != "map" for entry in statements)
        products = (
            [entry for entry in statements if (entry.kind, entry.op) == ("map", "multiply")] if sums else []
        )
        self.factors = tuple(sorted({number for entry in products for number in entry.scalars}))
        self._plans: dict[Any, LayoutPlan] = {}

    def finite(self, rec: Recording) -> tuple[str, ...]:
        """Return the names of the factors that are finite."""
        values = [(k, rec.views[rec.kinds[k]][k]) for k in self.factors]
        return tuple([f"c{k}" for k, value in values if np.isfinite(value)])

    def is_distributed(self, shards: Mapping[int, Shard], options: Options) -> bool:
        """Whether an array is distributed or large enough to become so; False if a storage family has several
        geometries."""
        return self.one_geometry and (bool(shards) or self.largest > options.distribute_above)

    def plan(self, key: Any) -> LayoutPlan | None:
        """Return the plan for a key of layouts and options, if there is one."""
        return self._plans.get(key)

    def cache(self, key: Any, plan: LayoutPlan) -> LayoutPlan:
        """Keep the plan for a key of layouts and options, and return it.  All plans are dropped first if
        there are `MAX_PLANS`."""
        return _put(self._plans, key, plan, MAX_PLANS)


def _put(cache: dict[Any, Value], key: Any, value: Value, limit: int) -> Value:
    """Put a value into a cache, which is emptied first if it is full."""
    if len(cache) >= limit:
        cache.clear()
    cache[key] = value
    return value


_logs: dict[Any, LogFacts] = {}


def facts_of(rec: Recording) -> LogFacts:
    """Return the cached facts of a recording's log; the key is long, and looked up once for each run."""
    key = tuple(rec.log), rec.kinds
    facts = _logs.get(key)
    return _put(_logs, key, LogFacts(rec, key[0]), MAX_LOGS) if facts is None else facts


def slot_of(name: str) -> int:
    """Return the slot of a region's array; -1 for a scalar."""
    return int(name[1:]) if name[0] == "a" else -1


def region_request(region: Region, options: Options) -> requests.RegionRequest:
    """Return the request for the plan of local statements."""
    return requests.RegionRequest(
        region, options.fastmath, options.threads, options.cache_dir, options.target
    )


def compile_region(slot: PlanSlot[ExecutablePlan], region: Region, options: Options) -> None:
    """Compile a rank's local region."""
    request = region_request(region, options)
    try:
        with perf_map.named(lambda: ("<region of a rank>", "")):
            slot.make(lambda: ExecutablePlan(provider.obtain(request, options, EXECUTOR.background), request))
    except Exception as error:  # a bug; other ranks wait for this rank's messages
        if options.debug:
            raise
        report_failure("a rank's part of a region is interpreted", error, ("<compiled region>", 0))
