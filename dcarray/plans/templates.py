"""Log templates: logs that differ in their integers alone, and the plans that serve many of them.

The first log of a template is planned with its integers.  When the template comes back with others, those
that changed become symbols - integers that changed by the same amount share one - and the region is planned
again with these symbols, deciding what cannot be proved by the values at hand and recording it as guards.
Such a symbolic plan serves every log whose integers fit its pattern and its guards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from dcarray.core import fp_attribution
from dcarray.core.fp_state import ODD
from dcarray.ir.log_entries import Statement, declarations, statements
from dcarray.recording.log_format import Log

from .slot import PlanSlot

if TYPE_CHECKING:
    from dcarray.ir.nodes import Region
    from dcarray.lowering.program.loaded_plan import LoadedPlan

    from .requests import Request

MAX_SYMBOLIC = 8
MAX_SYMBOLS = 24


class ExecutablePlan:
    """A loaded plan, with the facts that every run of it needs."""

    __slots__ = (
        "_bytes", "aside", "guard", "interpreted", "keeps", "kept", "kernels", "needs_arrays",
        "range_check", "request", "run", "stops",
    )  # fmt: skip

    def __init__(self, plan: LoadedPlan, request: Request) -> None:
        self.request = request  # which it was made for
        self.run = plan.run
        self.kernels = plan.kernels
        self.interpreted = plan.interpreted
        self.needs_arrays = self.kernels < plan.steps
        # the slots of existing memory that is to be as it was, should the plan fail half-way
        self.keeps = tuple(int(name[1:]) for name in plan.overwritten) if self.needs_arrays else ()
        # the slots of which a run keeps what it overwrites, and where that is
        self.kept = tuple([(int(name[1:]), where) for name, where in plan.kept])
        # the check whether anything can be raised, the slots to be copied if it can or if there is none, and
        # whether a run stops before it overwrites anything
        self.range_check = plan.range_check
        self.aside = tuple([int(name[1:]) for name in plan.spared])
        self.stops = plan.stops
        self.guard = plan.guard
        self._bytes = plan.bytes

    def bytes(self, symbols: tuple[int, ...]) -> int:
        """Return the bytes that the kernels read and write in a run with these values of the symbols."""
        return int(self._bytes(*symbols))


def are_related(old: tuple[int, ...], new: tuple[int, ...]) -> bool:
    """Whether the integers of two logs differ by a few sizes or a loop's counter only.

    If many integers differ, such as between two similar parts of a program, planning with a symbol for each
    takes minutes, and the plan serves hardly any other log.
    """
    return len({b - a for a, b in zip(old, new, strict=True) if a != b}) <= MAX_SYMBOLS


class Pattern(NamedTuple):
    """The integers of a log as functions of some of them, the leaders: for each integer the position of its
    leader and the difference to it; or -1 and the integer's value."""

    leaders: tuple[int, ...]
    terms: tuple[tuple[int, int], ...]


def pattern(old: tuple[int, ...], new: tuple[int, ...]) -> Pattern:
    """Return the pattern of two logs' integers: those that changed by the same amount share a leader."""
    leaders: dict[int, int] = {}  # change -> the first position that changed so
    terms: list[tuple[int, int]] = []
    for position, (a, b) in enumerate(zip(old, new, strict=True)):
        if a == b:
            terms.append((-1, b))
        else:
            leader = leaders.setdefault(b - a, position)
            terms.append((leader, b - new[leader]))
    return Pattern(tuple(leaders.values()), tuple(terms))


class TemplatePlan(PlanSlot[ExecutablePlan]):
    """A plan of a template, and the integers that it serves: those of one log, or all that have the pattern
    of two logs and meet the plan's guards.

    Parameters
    ----------
    old, new
        The integers of the two logs of the template; equal if the plan is for one log.
    """

    __slots__ = ("fits",)

    def __init__(self, old: tuple[int, ...], new: tuple[int, ...]) -> None:
        super().__init__()
        self.fits: Callable[[tuple[int, ...]], tuple[int, ...] | None]
        if old == new:
            self.fits = lambda values: () if values == new else None
        else:
            match = pattern(old, new)
            self.fits = _matcher(match.terms, match.leaders)

    def serves(self, symbols: tuple[int, ...]) -> bool:
        """Whether there is a plan whose guards hold for these values of the symbols."""
        plan = self.plan
        return plan is not None and (plan.guard is None or bool(plan.guard(*symbols)))


def _matcher(terms: Any, leaders: tuple[int, ...]) -> Callable[[tuple[int, ...]], tuple[int, ...] | None]:
    """Return a function of a log's integers: the symbols' values if they have the pattern, else None."""
    differ = [
        f"v{k} != {value if leader < 0 else f'v{leader} + {value}'}"
        for k, (leader, value) in enumerate(terms)
        if k not in leaders
    ]
    lines = [
        "def fits(values):",
        f"    {', '.join(f'v{k}' for k in range(len(terms)))}, = values",
        f"    if {' or '.join(differ) or 'False'}:",
        "        return None",
        f"    return {', '.join(f'v{k}' for k in leaders)},",
    ]
    scope: dict[str, Any] = {}
    exec("\n".join(lines), scope)  # names and integers alone
    return scope["fits"]  # type: ignore[no-any-return]


MOST_RUNS_BETWEEN_REPEATS = 8
"""Runs of a plan, one of which has to be repeated op by op, so that this counts as often."""
DOUBTS = 3
"""Such repetitions, from which on runs are op by op at once."""
OP_BY_OP = 8, 512
"""How many of these there are, at first and at most: twice as many after each further repetition."""


class Doubts:
    """A count of runs of a template's plans that were repeated op by op, since it was unknown which statement
    had raised an exception.  If they are frequent, the next runs go op by op at once, for a while.

    Attributes
    ----------
    runs : int
        The number of runs of plans so far.
    raised : int
        The exceptions that were in doubt, as FPE bits.
    """

    __slots__ = ("_last", "_left", "_often", "raised", "runs")

    def __init__(self) -> None:
        self.runs = self.raised = 0
        self._last = self._often = self._left = 0

    def add(self, flags: int) -> None:
        """Note a run with such exceptions."""
        self.raised |= flags
        self._often = 1 if self.runs - self._last > MOST_RUNS_BETWEEN_REPEATS else self._often + 1
        self._last = self.runs
        if self._often >= DOUBTS:
            first, most = OP_BY_OP
            self._left = min(first << (self._often - DOUBTS), most)

    def skip_plan(self) -> bool:
        """Return whether the run that begins is to go op by op at once for this reason, and count it."""
        if not self._left:
            return False
        self._left -= 1
        return True


class LogTemplate:
    """The facts that all logs of a template share: roles of slots, and the plans made so far."""

    def __init__(self, log: Log, live: tuple[int, ...], values: tuple[int, ...], mask: int) -> None:
        self.sample = values
        self.seen = 0  # how often, while it had no plan
        self.steps: Any = None  # those of the op-by-op interpreter, once they were asked for
        self.doubts = Doubts()
        self.plans = [TemplatePlan(values, values)]  # and others with symbols, the last ones
        declared, body = declarations(log), statements(log)
        self.elements = sum(math.prod(entry.shape) for entry in declared)
        # for each slot that of the first array on the same memory, and those that statements write
        self.heads = heads = [entry.head for entry in declared]
        written, read = _effects([entry for entry in body if entry.kind != "call"])
        # of those, the elements that are not a library's alone
        self.kernel_elements = sum(math.prod(declared[k].shape) for k in written | read)
        written, read = _effects(body)
        alive = set(live)
        self.written = changed = {heads[k] for k in written}
        seen = {heads[k] for k in read}
        # the statement that raises exceptions of each kind, and the kinds that matter and have several such
        self.culprits = fp_attribution.culprits(body, bool(mask & ODD))
        self.doubt = mask & sum(1 << k for k, one in enumerate(self.culprits) if one == fp_attribution.DOUBT)
        # the slots whose memory a run is given, those that get new memory, and those that are written
        # after they may have been read (to be kept, should the region have to run again)
        self.memory: list[int] = []
        self.new = frozenset(k for k, entry in enumerate(declared) if entry.is_new)
        self.reshapes: dict[int, int] = {}  # of those that get new memory, with the slots of their heads
        self.fresh: list[int] = []
        self.saved: list[int] = []
        self.inputs: list[int] = []
        for k, entry in enumerate(declared):
            if entry.is_new:
                if heads[k] in alive:
                    self.memory.append(k)
                    if heads[k] == k:
                        self.fresh.append(k)
                    else:
                        self.reshapes[k] = heads[k]
                continue
            self.memory.append(k)
            if heads[k] not in changed:
                self.inputs.append(k)
            elif self.doubt and heads[k] in seen:
                self.saved.append(k)
        # is all the memory whole, and nothing to be kept?
        self.direct = not self.saved and not self.reshapes
        self.useful = bool(self.fresh) or any(not declared[k].is_new for k in written)

    def slot(self, values: tuple[int, ...]) -> TemplatePlan | None:
        """Return the slot of a plan for these integers; None if they differ too much from the sample."""
        for plan in self.plans:
            if plan.plan is None and plan.fits(values) is not None:
                return plan
        if not are_related(self.sample, values):
            return None
        new = TemplatePlan(self.sample, values)
        exact, *others = self.plans
        self.plans = [exact, *others[1 - MAX_SYMBOLIC :], new]
        return new


def _effects(body: list[Statement]) -> tuple[set[int], set[int]]:
    """Return the slots that statements write and read."""
    written = {slot for entry in body for slot in entry.outs}
    return written, {slot for entry in body for slot, _, _ in entry.arrays}


class PlanEntry:
    """One log of the plan cache: its template, and the plan that serves it once there is one."""

    __slots__ = ("_region", "bytes", "direct", "key", "plan", "symbols", "template", "values")

    def __init__(self, key: tuple[Log, tuple[int, ...], str], template: LogTemplate, values: Any) -> None:
        self.key = key
        self.template = template
        self.values = values
        self.plan: ExecutablePlan | None = None
        self.direct = False
        self.symbols: tuple[int, ...] = ()
        self.bytes = 0
        self._region: Region | None = None

    def find_plan(self) -> ExecutablePlan | None:
        """Return the plan that serves the log from now on; None if there is none yet."""
        for candidate in self.template.plans if self.plan is None else ():
            symbols = candidate.fits(self.values)
            if candidate.plan is not None and symbols is not None and candidate.serves(symbols):
                self.plan, self.symbols = candidate.plan, symbols
                self.bytes = candidate.plan.bytes(symbols)
                self.direct = self.template.direct and not candidate.plan.needs_arrays
                break
        return self.plan

    @property
    def useful(self) -> bool:
        return self.template.useful

    @property
    def region(self) -> Region:
        """The region with the integers of this log."""
        if self._region is None:
            from dcarray.ir.build import build

            self._region = build(*self.key)
        return self._region
