"""The plans of a site by key: the guards of the values that its statements read.

A key of a hot site is planned in the background; until its plan is ready, and for every other key, the
statements run in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from dcarray.core import config
from dcarray.core.counters import note
from dcarray.core.errors import Untraceable
from dcarray.core.faults import is_fault, passed_over
from dcarray.core.processes import communicator
from dcarray.core.unpatched import perf_counter, thread_time
from dcarray.ir.records import replaced
from dcarray.lowering.runtime import perf_map
from dcarray.plans import provider
from dcarray.plans.background import BACKGROUND
from dcarray.plans.slot import PlanState
from dcarray.tiering import admission

from ..entry.bound_names import is_inside
from ..entry.entry_values import DeviceGuard
from ..entry.guards import ARRAYS, ObjectGuard, knows_wrapped
from ..entry.lists import ListElements
from ..syntax.path_names import shown
from ..syntax.stubs import function_at
from . import keys
from .bound_plans import bound_plan
from .keys import Entry, guards_of, is_wrapped, reads_bound, watched_exceptions
from .loop_requests import TOO_SHORT, LoopRequest
from .plan_values import PlanMismatch
from .run_loop import LoopPlan
from .site import Site
from .site_source import SiteSource
from .sizes import SizePattern, SizesSeen, kind_of, places_of
from .verdicts import need_plans

BACKGROUND.need_plans = need_plans
watchers: list[Callable[[LoopRequest], None]] = []
"""Callbacks that get the request of each compiled site, then planned eagerly, for `dcarray.explain`."""


def plans_at_once() -> bool:
    """Whether sites ask for plans from their first run on, without waiting until they are hot.  On several
    ranks they do: ranks find at different times what is hot, but have to do the same."""
    jit = config.current().jit
    return jit == "eager" or bool(watchers) or (jit == "background" and communicator() is not None)


class SitePlans:
    """The plans of one site.

    Parameters
    ----------
    site : Site
    source : SiteSource
        The site's statements as they are planned.
    give_up : callable
        ``give_up(reason)`` leaves the statements to Python for good.

    Attributes
    ----------
    entries : dict
        The entries, by key.
    counts : KindCounts
    """

    def __init__(self, site: Site, source: SiteSource, give_up: Callable[[str], None]) -> None:
        self.site, self.source, self._give_up = site, source, give_up
        self.entries: dict[Any, Entry] = {}
        self.counts = admission.KindCounts()
        self._sizes: dict[Any, SizesSeen] = {}  # by kind
        self._strange = 0  # runs with values of which no plan is made
        self._names = (*source.needed, *source.others)
        self._bind_plan = partial(bound_plan, source)

    # ---- keys ---------------------------------------------------------------------------------------------
    def surroundings(self, options: config.Options) -> tuple[Any, ...]:
        """Return the first part of a key: what holds in the thread, whatever the values are."""
        return options.target, options.fastmath, options.device, is_inside(self.site.names)

    def plan_of(self, entry: Entry, options: config.Options) -> LoopPlan | None:
        """Return the plan of a key if it is ready; with ``jit="eager"`` it is made now."""
        if entry.plan is None and options.jit == "eager" and entry.state is not PlanState.REFUSED:
            entry.ask()
            begun = thread_time()
            self._plan(entry, options)
            self.site.planned += thread_time() - begun
        elif self.site.known and entry.state is PlanState.UNASKED:
            try:
                with perf_map.named(self._place):
                    loaded = provider.load_stored(entry.request)
            except Untraceable as error:  # an earlier run has found it out
                entry.refuse()
                self.refuse_entry(entry, error.reason, error.line)
                return None
            if loaded is None:
                self.request(entry)
            else:
                entry.fill(self._bind_plan(loaded, entry))
                entry.gain.kept = self.site.kept
        if watchers and entry.plan is not None:
            for seen in watchers:
                seen(entry.request)
        plan: LoopPlan | None = entry.plan
        return plan

    def find(
        self, values: tuple[Any, ...], start: Any, options: config.Options, admitted: bool = False
    ) -> Entry | None:
        """Return the entry of the values' key, a new one if there is none yet; None if a value has no guard,
        or too many keys exist.

        ``start`` is an int if a loop is to be resumed there, else None.
        """
        guards = guards_of(self._names, values)
        if isinstance(guards, str):
            self.refuse_value(guards)
            return None
        resumed = type(start) is int
        first = (*self.surroundings(options), *[True] * resumed)
        own, sizes = kind_of(values, guards, communicator() is None)
        kind = (first, watched_exceptions(), *own)
        seen = self._sizes.get(kind)
        if seen is None:
            counters = [
                k for k, p in enumerate(places_of(own)) if self._names[p.value] in self.source.counters
            ]
            seen = SizesSeen(counters)
        narrow = None  # the pattern of a plan whose guard does not hold
        for known in seen.patterns:
            entry = self.entries.get((kind, known)) if known.fits(sizes) else None
            if entry is not None and entry.serves(values, start):
                self.counts.hit()
                return entry
            if entry is not None:
                narrow = known
        pattern = seen.pattern(sizes) if narrow is None else replaced(narrow, all_sizes=True)
        if (kind, pattern) in self.entries:  # there is no plan for all sizes
            seen.exact = True
            return None
        # A plan of some sizes is there: the next one is for others, too.
        admitted = bool(seen.patterns) and seen.is_general(pattern) and self.counts.admits_general()
        # An earlier run may have left a plan for the rest of a loop, and none for the whole.
        admitted |= self.site.known and all(len(other[0][0]) != len(first) for other in self.entries)
        counted = (kind, sizes) if seen.patterns else kind
        if not admitted and not self.counts.admits(counted, self.entries, options.jit == "eager"):
            if self.counts.is_a_loss():
                self.refuse("its sizes or types change from one run to the next", self.source.line)
            return None
        device = self._device(guards, values)
        if device is False:
            return None
        if reads_bound(self.source, values):
            self.refuse_value("a function that it calls reads a name that it assigns to")
            return None
        self._sizes[kind] = seen
        seen.note(sizes, pattern)
        return self._new(kind, pattern, guards, values, resumed, options, device)

    def _device(self, guards: list[Any], values: tuple[Any, ...]) -> Any:
        """Return the device that all arrays are on; None for the processor; False if they are on several."""
        there = {guard.device for guard in guards if isinstance(guard, DeviceGuard)}
        if there and (len(there) > 1 or any(type(v) in ARRAYS or type(v) is ListElements for v in values)):
            self.refuse("some of its arrays are on another device", self.source.line)
            return False
        if not self.source.is_loop and any(isinstance(guard, DeviceGuard) and guard.part for guard in guards):
            self.refuse_value("a part of an array on a device is copied for loops alone")
            return False
        return there.pop() if there else None

    def _new(
        self, kind: tuple[Any, ...], pattern: SizePattern, guards: list[Any], values: tuple[Any, ...],
        resumed: bool, options: config.Options, device: Any,
    ) -> Entry:  # fmt: skip
        request = keys.request_of(self.source, values, guards, kind, pattern, resumed, options)
        if device is not None:
            loop = replaced(request.loop, flagless=True)
            request = request._replace(loop=loop, target=device.target, undone=False)
        entry = Entry(kind, pattern, guards, request, device)
        self.entries[entry.key] = entry
        calls = kind[0][3] and any(callable(one) or type(one) in (ModuleType, ObjectGuard) for one in values)
        entry.wraps = knows_wrapped() and (calls or any(map(is_wrapped, values)))
        return entry

    # ---- plans --------------------------------------------------------------------------------------------
    def request(self, entry: Entry) -> None:
        """Request the plan of a key in the background."""
        if entry.ask():
            self.site.asked = True
            # For plans that are not stored, and imported by this thread: another one would wait for the
            # interpreter's lock after each module.
            from dcarray.plans.client import CLIENT

            CLIENT.start()
            gain = partial(self._gain, len(entry.request.text()))
            options = replaced(config.current(), jit="background")
            if not (self.site.runs or self.site.kept):  # code that asks is slower, also if there is nothing
                self.site.enabled = self.site.resuming = False
            BACKGROUND.submit(partial(self._plan, entry, options), gain, entry.request)

    def _gain(self, length: int) -> float:
        """Return the urgency of a plan whose request has a text of ``length`` characters; 0.0 if a plan of
        the statements around it is in use."""
        outer = self.site.outer
        while outer is not None:
            if outer.enabled and outer.runs:
                return 0.0
            outer = outer.outer
        return admission.priority(self.site.recency(perf_counter()), length)

    def _plan(self, entry: Entry, options: config.Options) -> None:
        """Make the plan of a key; if it cannot be made, refuse the key."""

        def bound_plan() -> Any:
            with perf_map.named(self._place):
                return self._bind_plan(provider.obtain(entry.request, options, BACKGROUND), entry)

        try:
            entry.make(bound_plan)
        except (MemoryError, SystemError):  # there may be more later, or no other thread that parses (3.11)
            entry.failures += 1
            if entry.failures < admission.FAILURES:
                self.site.heat()
            else:
                self.site.put_off(1.0 + 2.0 * self.site.seconds)
        except (Untraceable, PlanMismatch) as reason:
            line = reason.line if isinstance(reason, Untraceable) else self.source.line
            self.refuse_entry(entry, str(reason), line)
            self.site.heat()
        except Exception as error:
            if not BACKGROUND.is_stopping:  # else it is not known whether there would be a plan
                line, text = self.source.line, f"{type(error).__name__}: {error}"
                if is_fault(error):
                    text = passed_over(error, (self.source.file, line))
                self.refuse_entry(entry, text, line)
                self.site.heat()
        else:
            self.site.heat()

    def _place(self) -> tuple[str, str]:
        """Return the name of the function that contains the statements, and their file and lines."""
        file, first, last = self.source.file, self.source.line, self.source.last
        return function_at(file, first), f"{file}:{first}" + (f"-{last}" if last > first else "")

    def requests(self) -> list[LoopRequest]:
        """Return the requests of all plans that are ready."""
        return [entry.request for entry in [*self.entries.values()] if entry.plan is not None]

    def is_ready(self) -> bool:
        return any(entry.plan is not None for entry in self.entries.values())

    def are_awaited(self) -> bool:
        return any(entry.state is PlanState.ASKED for entry in self.entries.values())

    def refused(self) -> list[Entry]:
        return [entry for entry in self.entries.values() if entry.state is PlanState.REFUSED]

    def refuse_slow(self, entry: Entry, reason: str, kind: str = "loop") -> None:
        """Report that compiled code of a key is not faster, as a line of the kind ``kind`` in the report."""
        resumed = entry.request.loop.resumed
        self._doubt(resumed)
        if resumed:
            self.entries.pop(entry.key, None)
            note(shown(reason), kind=kind, where=(self.source.file, self.source.line))
        else:
            self.site.resumable = self.site.resuming = False  # the rest of a loop is no better
            self._report(entry, reason, self.source.line, kind)

    def refuse_entry(self, entry: Entry, reason: str, line: int) -> None:
        """Report that a key has no plan, and leave the site to Python if no key has one."""
        resumed = entry.request.loop.resumed  # a whole loop may have one
        self._doubt(resumed)
        if self._make_exact(entry) or resumed:  # perhaps sizes only have to be known
            self.entries.pop(entry.key, None)
        else:
            self._report(entry, reason, line)

    def _doubt(self, resumed: bool) -> None:
        if resumed:
            self.site.resumable = self.site.resuming = False
        else:
            self.site.doubtful = True
            self._heat_outer()

    def _report(self, entry: Entry, reason: str, line: int, kind: str = "loop") -> None:
        every = reason == TOO_SHORT and not self.source.is_loop and entry.is_of_numbers()
        if every or len(self.refused()) == len(self.entries):
            self.refuse(reason, line, kind)
        else:
            note(shown(reason), kind=kind, where=(self.source.file, line))

    def _make_exact(self, entry: Entry) -> bool:
        """If an entry's plan was for several sizes, and plans for single sizes may still be possible, make
        those from now on for its kind; return whether that is so."""
        seen = self._sizes.get(entry.kind)
        if seen is None or not seen.is_general(entry.pattern):
            return False
        single = [self.entries.get((entry.kind, one)) for one in seen.patterns if not seen.is_general(one)]
        if any(one is not None and one.state is PlanState.REFUSED for one in single):
            return False
        seen.exact = True
        return True

    def refuse_value(self, reason: str) -> None:
        """Leave this run to Python since a value has no guard; the site, for good, if that happens often."""
        if not self._strange:
            note(shown(reason), kind="loop", where=(self.source.file, self.source.line))
            self._heat_inner()
        self._strange += 1
        self.site.foreseen = 0.0
        if self._strange >= admission.STRANGE and not self.is_ready():
            self._give_up(shown(reason))

    def refuse(self, reason: str, line: int, kind: str = "loop") -> None:
        """Leave the statements to Python from now on.  The sites inside of them may become hot instead."""
        if not self.site.refused:
            note(shown(reason), kind=kind, where=(self.source.file, line))
        self._give_up(shown(reason))
        if reason == TOO_SHORT:
            for site in self.site.every_inner():
                site.refuse(reason)
        self._heat_inner()
        self._heat_outer()

    def _heat_outer(self) -> None:
        """Have the loop around this site ask for a plan, if its site is active and has run nothing compiled:
        it may have waited for this one."""
        outer = self.site.outer
        if outer is not None and outer.enabled and not outer.runs:
            outer.heat()

    def _heat_inner(self) -> None:
        """Have the sites inside this one ask for plans, if they are not activated by the sampler."""
        if plans_at_once():
            for inner in self.site.inner:
                inner.heat()
