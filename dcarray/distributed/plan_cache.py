"""The plan cache of distributed execution: facts of a log, and its plans by the layouts of its arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.core.config import Options
from dcarray.core.shard import NDArray, Shard
from dcarray.execution.executor import report_failure
from dcarray.plans import requests
from dcarray.plans.slot import PlanSlot
from dcarray.plans.templates import ExecutablePlan
from dcarray.recording.log_format import writes

from .consistency import digest

if TYPE_CHECKING:
    from dcarray.comm.layout.layouts import Layout
    from dcarray.comm.planning.analysis.halo_state import ValidHalos
    from dcarray.comm.planning.rank_program.steps import Note, Program
    from dcarray.ir.analysis.value_ranges import Limits
    from dcarray.ir.nodes import Region
    from dcarray.recording.log import Recording

__all__ = ["LayoutPlan", "LogFacts", "compile_region", "facts_of", "region_request", "slot_of"]

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
        """The scalar arguments, whose addresses depend on the recording's arena."""
        found = self._scalars.get(rec.arena)
        if found is None:
            if len(self._scalars) >= MAX_PLANS:
                self._scalars.clear()
            every = rec.scalar_arrays()
            found = {name: every[name] for name in self.program.given if slot_of(name) < 0}
            self._scalars[rec.arena] = found
        return found


class LogFacts:
    """Facts of a log that do not depend on layouts, and its plans by layouts.

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
        If there are sums, the scalars that are factors of products.
    """

    __slots__ = ("_plans", "description", "factors", "largest", "one_geometry", "overwrites", "written")

    def __init__(self, rec: Recording, log: tuple[Any, ...]) -> None:
        declared = rec.declarations()
        self.description = ("run", f"{len(log)} recorded", digest((log, rec.kinds)))
        self.one_geometry = all(entry[-1] == slot for slot, entry in enumerate(declared))
        self.largest = max((math.prod(entry[2]) for entry in declared if entry[2]), default=-1)
        self.written = frozenset(slot for entry in rec.statements() for slot in writes(entry))
        self.overwrites = any(declared[slot][0] == "old" for slot in self.written)
        statements = rec.statements()
        sums = any(entry[0] != "map" for entry in statements)
        products = [entry for entry in statements if entry[:2] == ("map", "multiply")] if sums else []
        self.factors = tuple(sorted({arg for entry in products for arg in entry[6:] if type(arg) is int}))
        self._plans: dict[Any, LayoutPlan] = {}

    def finite(self, rec: Recording) -> tuple[str, ...]:
        """The names of the factors that are finite."""
        found = [(k, rec.views[rec.kinds[k]][k]) for k in self.factors]
        return tuple([f"c{k}" for k, value in found if np.isfinite(value)])

    def is_distributed(self, shards: Mapping[int, Shard], options: Options) -> bool:
        """Whether an array is distributed, or is to be.  False if a storage family has several geometries."""
        return self.one_geometry and (bool(shards) or self.largest > options.distribute_above)

    def plan(self, key: Any) -> LayoutPlan | None:
        """The plan for a key of layouts and options, if there is one."""
        return self._plans.get(key)

    def cache(self, key: Any, plan: LayoutPlan) -> LayoutPlan:
        """Cache a plan."""
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        self._plans[key] = plan
        return plan


_logs: dict[Any, LogFacts] = {}


def facts_of(rec: Recording) -> LogFacts:
    """The cached facts of a recording's log; a long key, looked up once for each run."""
    key = tuple(rec.log), rec.kinds
    found = _logs.get(key)
    if found is None:
        if len(_logs) >= MAX_LOGS:
            _logs.clear()
        found = _logs[key] = LogFacts(rec, key[0])
    return found


def slot_of(name: str) -> int:
    """The slot of a region's array; -1 for a scalar."""
    return int(name[1:]) if name[0] == "a" else -1


def region_request(region: Region, options: Options) -> requests.RegionRequest:
    """The request for the plan of local statements."""
    return requests.RegionRequest(
        region, options.fastmath, options.threads, options.cache_dir, options.target
    )


def compile_region(slot: PlanSlot[ExecutablePlan], region: Region, options: Options) -> None:
    """Compile a rank's local region."""
    from dcarray.execution.executor import EXECUTOR
    from dcarray.plans import provider

    request = region_request(region, options)
    try:
        slot.make(lambda: ExecutablePlan(provider.obtain(request, options, EXECUTOR.background), request))
    except Exception as error:  # a bug; other ranks wait for this rank's messages
        if options.debug:
            raise
        report_failure("a rank's part of a region is interpreted", error, ("<compiled region>", 0))
