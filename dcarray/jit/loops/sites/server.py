"""The plans of a site: which values they are for, when they are asked for, and whether they are faster.

A plan is made for a key: the guards of the values that the statements read.  A key of a hot site is planned
in the background; until its plan is ready, and for every other key, the statements run in Python.  A plan
that is not faster than NumPy is not used again.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from threading import get_ident
from time import perf_counter
from typing import Any

from dcarray.core import config
from dcarray.core.counters import counters, note
from dcarray.core.errors import Untraceable
from dcarray.core.processes import LOCK, communicator
from dcarray.plans import provider
from dcarray.plans.background import BACKGROUND
from dcarray.plans.slot import PlanState
from dcarray.tiering import admission

from ..entry.guards import ARRAYS, DeviceGuard, knows_wrapped
from ..entry.lists import ListElements
from ..entry.members import Check, still_hold, watched_members
from ..syntax.attributes import shown
from . import keys
from .attribute_values import AttributeValues
from .bound_plans import bound_plan
from .keys import MISSING, SYMBOLIC, Entry, guards_of, is_wrapped, other_ints, watched_exceptions
from .list_conversion import ListConversion
from .plan_values import PlanMismatch
from .requests import LoopRequest
from .run_loop import LoopPlan
from .short_runs import ShortRuns
from .site import Site

watchers: list[Callable[[LoopRequest], None]] = []
"""Callbacks that get the request of each compiled site, then planned eagerly, for `dcarray.explain`."""


class SiteServer:
    """The plans of one site."""

    def __init__(self, site: Site) -> None:
        self.site, self.source = site, site.source
        self._entries: dict[Any, Entry] = {}
        self._last: Entry | None = None  # the key whose plan ran last
        self._symbolic = set(self.source.counters)  # names of ints that are symbols
        self._exact: set[str] = set()  # and those that no plan has as symbols
        self._running: dict[int, tuple[float, Entry | None]] = {}  # by thread: what runs in Python since when
        self._done: set[int] = set()  # threads in which all iterations have been done
        self._members: list[Check] | None = None
        self._strange = 0  # runs with values of which no plan is made
        self._traffic, self._pace = admission.Traffic(), admission.Pace()
        self._lists = ListConversion()
        self._short = ShortRuns(site)
        self._attributes = AttributeValues(self.source) if self.source.attributes is not None else None
        needed, self._live = self.source.needed, self.source.live
        if self._attributes is not None:
            needed, self._live = self._attributes.needed, self._attributes.live
        self._names = (*needed, *self.source.others)
        self._bind_plan = partial(bound_plan, self.source, self._names, self._live)

    # ---- from the program -------------------------------------------------------------------------------
    def enter(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Do what `Site.ask` does."""
        found, entry = self._serve(values, None)
        if not found:
            if entry is not None and entry.plan is not None:  # it is Python's turn, for all iterations
                self.site.resuming = False
            self._running[get_ident()] = perf_counter(), entry
        return found

    def resume(self, start: Any, items: range | None, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Do what `Site.resume` does."""
        begun = perf_counter()
        if type(start) is not int or type(items) is not range:
            items = None
        if items is not None:
            self._pace.look(begun, start, items)
            if self._pace.is_slow() and not self.source.is_nested:
                self.site.resumable = self.site.resuming = False  # its statements have sites
                return ()
        found, entry = self._serve(values, start)
        if found and items is not None and not self._pace.is_faster(perf_counter() - begun, start, items):
            self._refuse("compiled code is not faster than NumPy", self.source.line)
        if found:
            self._done.add(get_ident())
        elif entry is None or entry.state is not PlanState.READY or entry.failures:
            self.site.resuming = False  # until there is a plan
            if entry is not None and entry.state is PlanState.UNASKED:
                self._request(entry)
            elif entry is not None and entry.state is PlanState.READY and not entry.failures:
                self.site.resuming = self.site.resumable  # it has just come
        return found

    def done(self) -> bool:
        """Do what `Site.done` does."""
        thread = get_ident()
        if thread in self._done:
            self._done.discard(thread)
            return True
        return False

    def leave(self) -> None:
        """Do what `Site.leave` does."""
        running = self._running.pop(get_ident(), None)
        if running is None:
            return
        start, entry = running
        took = perf_counter() - start
        if entry is None:
            return
        entry.gain.python(took)
        if entry.plan is not None:
            self.site.resuming = self.site.resumable
        if entry.state is PlanState.UNASKED and entry.gain.may_pay():
            self._request(entry)
        elif entry.state is PlanState.UNASKED and entry.gain.cannot_pay():
            entry.refuse()
            self._note_refusal(entry, "it takes less time than to ask for compiled code", self.source.line)
        if entry.state is PlanState.ASKED and entry.plan is None:
            counters.waiting += 1
        waits = entry.state is not PlanState.UNASKED and not self._is_ready()
        if waits and entry.gain.is_known() and config.current().jit != "eager":
            self.site.enabled = False  # until there is a plan
            if self._is_ready():  # it has just come
                self.site.enabled = True

    def _serve(self, values: tuple[Any, ...], start: Any) -> tuple[tuple[Any, ...], Entry | None]:
        """Return what `_serve_values` does, and bind the attributes of ``self``."""
        if self._attributes is None:
            return self._serve_values(values, start)
        given = self._attributes.read(values)
        if given is None:
            self._refuse(
                "it has attributes that are not plain values, or appends to what it reads", self.source.line
            )
            return (), None
        if self._short.run is not None and start is None and (served := self._short.run(*given)):
            return (self._attributes.bind(values, served[0]),), None
        found, entry = self._serve_values(given, start)
        return tuple([self._attributes.bind(values, one) for one in found]), entry

    def _serve_values(self, values: tuple[Any, ...], start: Any) -> tuple[tuple[Any, ...], Entry | None]:
        """Return the result of a plan for the values, or an empty tuple, and the entry of their key."""
        options = config.look_again()
        ranks = communicator() is not None
        if options.jit == "off" or (ranks and options.strict):  # it would gather arrays
            return (), None
        if watchers or (ranks and options.jit == "background"):  # ranks get plans at different times
            options = replace(options, jit="eager")
        for name in self.source.others:
            value = self.site.names.get(name, MISSING)
            values += (getattr(builtins, name, MISSING) if value is MISSING else value,)
        if self._members is None or not still_hold(self._members):
            self._members = watched_members(self.source.members, self.site.names)
            if self._members is None:
                self._refuse("something else is bound to a name of NumPy's", self.source.line)
                return (), None
            self._last = None
            self._entries.clear()
        if self._last is not None and not ranks and not watchers and start is None:
            served = self._try_last(self._last, values, options)
            if served is not None:
                return served, self._last
        if list in map(type, values):
            if self._lists.are_a_loss(self._entries.values()):
                self._refuse("to convert its lists takes longer than to run it", self.source.line)
                return (), None
            values = self._lists.elements(values)
        processors = None
        if knows_wrapped():
            from .processor_values import ProcessorValues

            processors = ProcessorValues.of(values)
            if processors is not None:
                values = processors.ordinary
        try:
            entry = self._entry(values, start, options)
            if entry is None:
                return (), None
            plan = self._plan_of(entry, options)
        except Exception as error:
            if options.debug:
                raise
            self._refuse(f"{type(error).__name__}: {error}", self.source.line)
            return (), None
        if plan is None or (start is None and options.jit != "eager" and entry.gain.is_pythons_turn()):
            return (), entry
        if plan.checks and start is None and not entry.gain.judged and options.jit != "eager":
            served, seconds = self._short.attempt(plan, values, entry.symbols, self._members or [])
            if served:
                self._judge(entry, seconds)
                return served, entry
        served = self._run_plan(entry, plan, values, start, options)
        if processors is not None:
            served = tuple(map(processors.back, served))
        return served, entry

    def _try_last(
        self, entry: Entry, values: tuple[Any, ...], options: config.Options
    ) -> tuple[Any, ...] | None:
        """Return the result of the last key's plan if the values pass its checks, else None."""
        plan = entry.plan
        if (
            plan is None
            or entry.key[0] != (options.target, options.fastmath)
            or entry.key[1] != watched_exceptions()
        ):
            return None
        with LOCK:
            addresses = plan.addresses(values)
            if addresses is None:
                return None
            self._traffic.hit()
            served = self._run_plan(entry, plan, values, None, options, addresses)
            if served:
                self._short.use(plan, values, entry.symbols, self._members or [])
            return served

    def _run_plan(
        self, entry: Entry, plan: LoopPlan, values: tuple[Any, ...], start: Any, options: config.Options,
        addresses: tuple[int, ...] | None = None,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Run a plan; returns the values of the live names in a tuple, or an empty tuple."""
        begun = perf_counter()
        try:
            with LOCK:
                if entry.symbols or start is not None:
                    symbols = tuple([values[k] for k in entry.symbols])
                    if not plan.serves(symbols if start is None else (*symbols, start)):
                        return ()
                found = plan.run(values, options, addresses)
        except MemoryError:  # a later run may have more memory
            return ()
        if found is None:
            entry.failures += 1
            if entry.failures >= admission.FAILURES:
                entry.refuse()
                if len(self._refused()) == 1:
                    reason = "it raises floating-point exceptions, or its arrays share memory"
                    note(shown(reason), kind="loop", where=(self.source.file, self.source.line))
            return ()
        entry.failures = 0
        took = perf_counter() - begun
        self.site.compiled += took
        self.site.runs += 1
        if start is None and options.jit != "eager":
            self._judge(entry, took)
        alone = len(entry.key) == 2 + len(values)  # no two names share an array
        # of lists there are no checks
        if addresses is None and start is None and alone and ListElements not in map(type, values):
            plan.remember(values, entry.key[2:])
            if entry.gain.judged or options.jit == "eager":
                self._last = entry
        return (found,)

    def _judge(self, entry: Entry, seconds: float) -> None:
        """Note how long compiled code took; it is given up if that is known not to be faster."""
        if entry.gain.compiled(seconds):
            entry.refuse()
            self._note_refusal(entry, "compiled code is not faster than NumPy", self.source.line)

    # ---- keys ---------------------------------------------------------------------------------------------
    def _plan_of(self, entry: Entry, options: config.Options) -> LoopPlan | None:
        """Return the plan of a key if it is ready; with ``jit="eager"`` it is made now."""
        if entry.plan is None and options.jit == "eager" and entry.state is not PlanState.REFUSED:
            entry.ask()
            self._plan(entry, options)
        elif self.site.known and entry.state is PlanState.UNASKED:
            found = provider.load_stored(entry.request)
            if found is None:
                self._request(entry)
            else:
                entry.fill(self._bind_plan(found, entry))
                entry.gain.judged = self.site.kept  # it was, in an earlier run
        if watchers and entry.plan is not None:
            for seen in watchers:
                seen(entry.request)
        plan: LoopPlan | None = entry.plan
        return plan

    def _entry(
        self, values: tuple[Any, ...], start: Any, options: config.Options, admitted: bool = False
    ) -> Entry | None:
        """Return the entry of the values' key; None if a value has no guard, or keys are too many."""
        watched = watched_exceptions()
        guards = guards_of(self._names, values, self._symbolic)
        if isinstance(guards, str):
            self._refuse_value(guards)
            return None
        resumed = type(start) is int
        first = (options.target, options.fastmath, *[True] * resumed)
        key = (first, watched, *guards)
        entry = self._entries.get(key)
        if entry is not None:
            self._traffic.hit()
            return entry
        if self._find_symbols(key, values):
            return self._entry(values, start, options, True)
        if not admitted and not self._traffic.admits(key, self._entries, options.jit == "eager"):
            if self._traffic.is_a_loss():
                self._refuse("its sizes or types change from one run to the next", self.source.line)
            return None
        return self._new_entry(key, guards, values, resumed, options)

    def _new_entry(
        self, key: tuple[Any, ...], guards: list[Any], values: tuple[Any, ...], resumed: bool,
        options: config.Options,
    ) -> Entry | None:  # fmt: skip
        there = {guard.device for guard in guards if isinstance(guard, DeviceGuard)}
        if there and (len(there) > 1 or any(type(v) in ARRAYS or type(v) is ListElements for v in values)):
            self._refuse("some of its arrays are on another device", self.source.line)
            return None
        device = there.pop() if there else None
        request = keys.request_of(
            self.source, self._names, self._live, values, guards, key[1], resumed, options
        )
        if device is not None:
            request = request._replace(target=device.target, undone=False)
        symbols = tuple([k for k, guard in enumerate(guards[: len(values)]) if guard is SYMBOLIC])
        entry = self._entries[key] = Entry(key, request, symbols, device)
        entry.wraps = knows_wrapped() and any(map(is_wrapped, values))
        return entry

    def _find_symbols(self, key: tuple[Any, ...], values: tuple[Any, ...]) -> bool:
        """Whether another key differs in nothing but ints, which are symbols from now on."""
        for other in self._entries:
            places = other_ints(key, other)
            names = {self._names[k - 2] for k in places} - self._exact
            if names and len(names) == len(places):
                self._symbolic |= names
                return True
        return False

    # ---- plans --------------------------------------------------------------------------------------------
    def _request(self, entry: Entry) -> None:
        """Request the plan of a key in the background."""
        if entry.ask():
            self.site.asked = True
            gain = self.site.seconds / len(self.source.source)  # small plans are there soon
            BACKGROUND.submit(partial(self._plan, entry, config.current()), gain, entry.request)

    def _plan(self, entry: Entry, options: config.Options) -> None:
        """Make the plan of a key."""

        def made() -> Any:
            return self._bind_plan(provider.obtain(entry.request, options, BACKGROUND), entry)

        try:
            entry.make(made)
        except MemoryError:  # later there may be more
            entry.failures += 1
            if entry.failures < admission.FAILURES:
                self.site.heat()
        except (Untraceable, PlanMismatch) as reason:
            line = reason.line if isinstance(reason, Untraceable) else self.source.line
            self._note_refusal(entry, str(reason), line)
        except Exception as error:
            if options.debug:
                raise
            from dcarray.plans import client  # which the planning thread has loaded

            if not client.CLIENT.is_stopping:  # else it is not known whether there would be a plan
                self._note_refusal(entry, f"{type(error).__name__}: {error}", self.source.line)
        else:
            self.site.heat()

    def requests(self) -> list[LoopRequest]:
        """Return the requests of the plans that are there."""
        return [entry.request for entry in [*self._entries.values()] if entry.plan is not None]

    def _is_ready(self) -> bool:
        return any(entry.plan is not None for entry in self._entries.values())

    def _refused(self) -> list[Entry]:
        return [entry for entry in self._entries.values() if entry.state is PlanState.REFUSED]

    def _note_refusal(self, entry: Entry, reason: str, line: int) -> None:
        """Report that a key has no plan; the site is left to Python if no key has one."""
        resumed = entry.request.loop.resumed  # a whole loop may have one
        names = set() if resumed else {self._names[k] for k in entry.symbols} - self.source.counters
        self._exact |= names  # perhaps they only have to be known
        self._symbolic -= names
        if resumed or names:
            self.site.resumable &= not resumed
            self.site.resuming &= not resumed
            self._entries.pop(entry.key, None)
            return
        if len(self._refused()) == len(self._entries):
            self._refuse(reason, line)
        else:
            note(shown(reason), kind="loop", where=(self.source.file, line))

    def _refuse_value(self, reason: str) -> None:
        """Leave the statements to Python since a value has no guard: for good if there are many of these."""
        if not self._strange:
            note(shown(reason), kind="loop", where=(self.source.file, self.source.line))
            self._heat_inner()
        self._strange += 1
        if self._strange >= admission.STRANGE and not self._is_ready():
            self.site.refuse(shown(reason))

    def _refuse(self, reason: str, line: int) -> None:
        """Leave the statements to Python from now on; sites inside of them may be hot instead."""
        if not self.site.refused:
            note(shown(reason), kind="loop", where=(self.source.file, line))
        self.site.refuse(shown(reason))
        self._heat_inner()

    def _heat_inner(self) -> None:
        """Have the sites inside of this one ask for plans, where the sampler does not decide that."""
        if config.current().jit == "eager" or watchers:
            for inner in self.site.inner:
                inner.heat()
