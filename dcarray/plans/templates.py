"""Forms: logs that differ in their integers alone, and the plans that serve many of them.

The first log of a form is planned with its integers.  When the form comes back with others, those that
changed become symbols - integers that changed by the same amount share one - and the region is planned
again with these symbols, deciding what cannot be proved by the values at hand and recording it as guards.
A plan so made serves every log whose integers fit its pattern and its guards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from dcarray.core import fp_attribution
from dcarray.core.fp_state import ODD
from dcarray.recording.log_format import Log, effects
from dcarray.tiering import cost_model
from dcarray.tiering.state import TierState

from .slot import PlanSlot, PlanState

if TYPE_CHECKING:
    from dcarray.ir.nodes import Region
    from dcarray.lowering.program.parcel import Parcel

    from .requests import Request

MAX_GENERAL = 8
MAX_SYMBOLS = 24


class Ready:
    """A plan, with what every run of it wants to know."""

    __slots__ = (
        "_bytes", "aside", "guard", "interpreted", "keeps", "kept", "kernels", "look", "needs_arrays",
        "request", "run", "stops",
    )  # fmt: skip

    def __init__(self, plan: Parcel, request: Request) -> None:
        self.request = request  # which it was made for
        self.run = plan.run
        self.kernels = plan.kernels
        self.interpreted = plan.interpreted
        self.needs_arrays = self.kernels < plan.steps
        # the slots of existing memory that is to be as it was, should the plan fail half-way
        self.keeps = tuple(int(name[1:]) for name in plan.overwritten) if self.needs_arrays else ()
        # the slots of which a run keeps what it overwrites, and where that is
        self.kept = tuple([(int(name[1:]), where) for name, where in plan.kept])
        # what looks whether anything can be raised, the slots of which it is to be kept for a run if it can,
        # or if nobody looks, and whether a run stops before it overwrites anything
        self.look = plan.look
        self.aside = tuple([int(name[1:]) for name in plan.spared])
        self.stops = plan.stops
        self.guard = plan.guard
        self._bytes = plan.bytes

    def bytes(self, symbols: tuple[int, ...]) -> int:
        """What the kernels read and write in a run with these sizes."""
        return int(self._bytes(*symbols))


def related(old: tuple[int, ...], new: tuple[int, ...]) -> bool:
    """Whether the integers of two logs differ as by a few sizes or a loop's counter.

    Where they differ in many ways, as between two places of a program that look alike, planning with a symbol
    for each takes minutes, and the plan serves hardly any other log.
    """
    return len({b - a for a, b in zip(old, new, strict=True) if a != b}) <= MAX_SYMBOLS


class Pattern(NamedTuple):
    """How the integers of a log follow from those of the positions that lead: each by its leader's position
    and the difference to it, or -1 and its value."""

    leaders: tuple[int, ...]
    terms: tuple[tuple[int, int], ...]


def pattern(old: tuple[int, ...], new: tuple[int, ...]) -> Pattern:
    """The pattern of the integers of two logs: those that changed by the same amount share a leader."""
    leaders: dict[int, int] = {}  # change -> the first position that changed so
    terms: list[tuple[int, int]] = []
    for position, (a, b) in enumerate(zip(old, new, strict=True)):
        if a == b:
            terms.append((-1, b))
        else:
            leader = leaders.setdefault(b - a, position)
            terms.append((leader, b - new[leader]))
    return Pattern(tuple(leaders.values()), tuple(terms))


class General(PlanSlot[Ready]):
    """A plan over symbols, and which integers it serves.

    Parameters
    ----------
    old, new
        The integers of two logs of the form.
    """

    def __init__(self, old: tuple[int, ...], new: tuple[int, ...]) -> None:
        super().__init__()
        found = pattern(old, new)
        self.fits = _matcher(found.terms, found.leaders)

    def serves(self, symbols: tuple[int, ...]) -> bool:
        """Is there a plan that holds for these values of the symbols?"""
        plan = self.plan
        return plan is not None and (plan.guard is None or bool(plan.guard(*symbols)))


def _matcher(terms: Any, leaders: tuple[int, ...]) -> Callable[[tuple[int, ...]], tuple[int, ...] | None]:
    """A function of a log's integers: the symbols' values if they have the pattern, else None."""
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


class Form:
    """What all logs of a form have in common: which slots take part, and how."""

    def __init__(self, log: Log, live: tuple[int, ...], values: tuple[int, ...], mask: int) -> None:
        self.sample = values
        self.sights = 0
        self.steps: Any = None  # what there is to do call by call, once that was asked for
        self.ran = False  # has NumPy run it since that is done sooner?
        self.ample: set[tuple[int, ...]] = set()  # about which integers it is too much for that
        self.guess = cost_model.Estimate(0)  # what one of them takes
        self.passed = 0  # how often it was tried to do without a recording until there is a plan
        self.exact = PlanSlot[Ready]()  # with the sample's integers
        self.general: list[General] = []
        declared = [entry for entry in log if entry[0] in ("old", "new")]
        self.elements = sum(math.prod(entry[2]) for entry in declared)
        heads = [entry[-1] for entry in declared]
        statements = [entry for entry in log if entry[0] not in ("old", "new")]
        written, read = effects([entry for entry in statements if entry[0] != "call"])
        # of those, the elements that are not a library's alone
        self.own = sum(math.prod(declared[k][2]) for k in written | read)
        written, read = effects(statements)
        alive = set(live)
        changed = {heads[k] for k in written}
        seen = {heads[k] for k in read}
        # who raised an exception of each kind, and the kinds of which that is in doubt though they matter
        self.culprits = fp_attribution.culprits(statements, bool(mask & ODD))
        self.doubt = mask & sum(1 << k for k, one in enumerate(self.culprits) if one == fp_attribution.DOUBT)
        # the slots whose memory a run is given, those that get new memory, and those that are written
        # after they may have been read (to be kept, should the region have to run again)
        self.memory: list[int] = []
        self.reshapes: dict[int, int] = {}  # of those that get new memory, with the slots of their heads
        self.fresh: list[int] = []
        self.saved: list[int] = []
        self.inputs: list[int] = []
        for k, entry in enumerate(declared):
            if entry[0] == "new":
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
        self.useful = bool(self.fresh) or any(declared[k][0] == "old" for k in written)

    @property
    def asked(self) -> bool:
        """Whether any plan has been asked for."""
        return bool(self.general) or self.exact.state is not PlanState.UNASKED

    def slot(self, values: tuple[int, ...]) -> PlanSlot[Ready] | None:
        """The slot of a plan for a log with these integers; None if they differ too much from the sample."""
        if values == self.sample:
            return self.exact
        for general in self.general:
            if general.plan is None and general.fits(values) is not None:
                return general
        if not related(self.sample, values):
            return None
        general = General(self.sample, values)
        self.general = [*self.general[1 - MAX_GENERAL :], general]
        return general


class Prepared:
    """What is known of one log: its form, and the plan that serves it once there is one."""

    __slots__ = ("_region", "bytes", "direct", "form", "key", "little", "plan", "runs", "symbols", "values")

    def __init__(self, key: tuple[Log, tuple[int, ...], str], form: Form, values: Any) -> None:
        self.key = key
        self.form = form
        self.values = values
        self.little: int | None = None  # what `alone.cheaper` says of it, once that was asked
        self.plan: Any = None
        self.direct = False
        self.runs: dict[tuple[int, int], TierState] = {}  # of its plan as a kernel, by the last call site
        self.symbols: tuple[int, ...] = ()
        self.bytes = 0
        self._region: Region | None = None

    def found(self) -> tuple[Ready, tuple[int, ...]] | None:
        """A plan that serves the log, and the values of its symbols; None if the form has none yet."""
        form = self.form
        if form.exact.plan is not None and self.values == form.sample:
            return form.exact.plan, ()
        for general in form.general:
            symbols = general.fits(self.values)
            if general.plan is not None and symbols is not None and general.serves(symbols):
                return general.plan, symbols
        return None

    def serve(self, plan: Ready, symbols: tuple[int, ...]) -> Ready:
        """From now on this plan runs the log."""
        self.symbols = symbols
        self.bytes = plan.bytes(symbols)
        self.plan = plan
        self.direct = self.form.direct and not plan.needs_arrays
        return plan

    @property
    def useful(self) -> bool:
        return self.form.useful

    @property
    def region(self) -> Region:
        """The region with this log's integers."""
        if self._region is None:
            from dcarray.ir.build import build

            self._region = build(*self.key)
        return self._region
