"""What is known of recordings that many ranks run: of a log, and of a log over arrays that lie so and so."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.core.config import Options
from dcarray.core.shard import NDArray, Shard
from dcarray.execution.executor import complain
from dcarray.plans import requests
from dcarray.plans.slot import PlanSlot
from dcarray.plans.templates import Ready
from dcarray.recording.log_format import writes

from .consistency import digest

if TYPE_CHECKING:
    from dcarray.comm.layout.layouts import Layout
    from dcarray.comm.planning.analysis.halo_state import ValidHalos
    from dcarray.comm.planning.program.steps import Note, Program
    from dcarray.ir.analysis.value_ranges import Limits
    from dcarray.ir.nodes import Region
    from dcarray.recording.log import Recording

__all__ = ["LayoutPlan", "LogFacts", "compile_region", "facts_of", "region_request", "slot_of"]

MAX_LOGS = 1024
MAX_PLANS = 64  # of one log


@dataclass
class LayoutPlan:
    """What is known of a log over arrays that lie so and so."""

    program: Program
    layouts: dict[str, Layout]  # of what exists or is made
    # by the identity of local regions
    compiled: dict[int, PlanSlot[Ready]] = field(default_factory=dict)
    plan_per_statement: Callable[[], Program] | None = None  # plans each statement for itself
    doubt: int = 0
    culprits: tuple[int, ...] = ()
    limits: Limits | None = None  # of the inputs within which `overwriting` may run instead
    plan_overwriting: Callable[[], Program] | None = None  # plans what overwrites at once what it may
    _scalars: dict[int, dict[str, NDArray]] = field(default_factory=dict)

    @cached_property
    def per_statement(self) -> Program:
        """The program of each statement for itself, which is planned when something has to be found."""
        assert self.plan_per_statement is not None
        return self.plan_per_statement()

    @cached_property
    def overwriting(self) -> LayoutPlan:
        """The same in place, which raises nothing of small inputs."""
        assert self.plan_overwriting is not None
        return LayoutPlan(self.plan_overwriting(), self.layouts)

    @cached_property
    def inputs(self) -> tuple[tuple[str, int], ...]:
        """The arrays that exist before, with their slots."""
        return tuple((name, slot) for name in self.program.given if (slot := slot_of(name)) >= 0)

    @cached_property
    def outputs(self) -> tuple[tuple[int, str, Layout | None, ValidHalos | None], ...]:
        """Of the slots that exist afterwards the array, how it lies and what is valid of its halo."""
        program = self.program
        slots = sorted((slot, name) for name in program.after if (slot := slot_of(name)) >= 0)
        return tuple((slot, name, program.layout(name), program.valid.get(name)) for slot, name in slots)

    @cached_property
    def gathering_notes(self) -> tuple[Note, ...]:
        """What is computed from whole arrays."""
        return tuple(note for note in self.program.notes if note.whole)

    def scalars(self, rec: Recording) -> dict[str, NDArray]:
        """The scalar arguments; where they are depends on the memory that the recording has for them."""
        found = self._scalars.get(rec.arena)
        if found is None:
            if len(self._scalars) >= MAX_PLANS:
                self._scalars.clear()
            every = rec.scalar_arrays()
            found = {name: every[name] for name in self.program.given if slot_of(name) < 0}
            self._scalars[rec.arena] = found
        return found


class LogFacts:
    """What is known of a log, however its arrays lie.

    Attributes
    ----------
    what : tuple
        What ranks compare.
    plain : bool
        Every array has one geometry.
    largest : int
        The elements of the largest array; those of scalars do not count.
    written : frozenset of int
        The slots that are written.
    changes : bool
        Something is written that was there before.
    factors : tuple of int
        Where there are sums, the scalars that something is multiplied with.
    """

    __slots__ = ("_plans", "changes", "factors", "largest", "plain", "what", "written")

    def __init__(self, rec: Recording, log: tuple[Any, ...]) -> None:
        declared = rec.declarations()
        self.what = ("run", f"{len(log)} recorded", digest((log, rec.kinds)))
        self.plain = all(entry[-1] == slot for slot, entry in enumerate(declared))
        self.largest = max((math.prod(entry[2]) for entry in declared if entry[2]), default=-1)
        self.written = frozenset(slot for entry in rec.statements() for slot in writes(entry))
        self.changes = any(declared[slot][0] == "old" for slot in self.written)
        statements = rec.statements()
        sums = any(entry[0] != "map" for entry in statements)
        products = [entry for entry in statements if entry[:2] == ("map", "multiply")] if sums else []
        self.factors = tuple(sorted({arg for entry in products for arg in entry[6:] if type(arg) is int}))
        self._plans: dict[Any, LayoutPlan] = {}

    def finite(self, rec: Recording) -> tuple[str, ...]:
        """The names of those that are finite."""
        found = [(k, rec.views[rec.kinds[k]][k]) for k in self.factors]
        return tuple([f"c{k}" for k, value in found if np.isfinite(value)])

    def concerns(self, held: Mapping[int, Shard], options: Options) -> bool:
        """Is there something in blocks, or that is to be?  Not where one memory has several geometries."""
        return self.plain and (bool(held) or self.largest > options.distribute_above)

    def plan(self, key: Any) -> LayoutPlan | None:
        """What was planned for arrays that lie so."""
        return self._plans.get(key)

    def keep(self, key: Any, plan: LayoutPlan) -> LayoutPlan:
        """Keep what was planned."""
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        self._plans[key] = plan
        return plan


_logs: dict[Any, LogFacts] = {}


def facts_of(rec: Recording) -> LogFacts:
    """What is known of a log; it is long, and looked up once for each run."""
    key = tuple(rec.log), rec.kinds
    found = _logs.get(key)
    if found is None:
        if len(_logs) >= MAX_LOGS:
            _logs.clear()
        found = _logs[key] = LogFacts(rec, key[0])
    return found


def slot_of(name: str) -> int:
    """The slot of an array of a region; -1 of a scalar."""
    return int(name[1:]) if name[0] == "a" else -1


def region_request(region: Region, options: Options) -> requests.Located:
    """The request for the plan of local statements."""
    return requests.Located(region, options.fastmath, options.threads, options.cache_dir, options.target)


def compile_region(slot: PlanSlot[Ready], region: Region, options: Options) -> None:
    """Have local statements compiled."""
    from dcarray.execution.executor import EXECUTOR
    from dcarray.plans import provider

    request = region_request(region, options)
    try:
        slot.make(lambda: Ready(provider.obtained(request, options, EXECUTOR.background), request))
    except Exception as error:  # a bug of ours; other ranks wait for what comes of this
        if options.debug:
            raise
        complain("a rank's part of a region is interpreted", error, ("<compiled region>", 0))
