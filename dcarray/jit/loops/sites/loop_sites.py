"""Loop sites: before each loop of an accelerated function, the choice between compiled code and Python.

A plan is made for a guard key: the guards of the values that the loop reads.  A key that pays is planned as
recordings are; until its plan is ready, and for every other key, the loop runs in Python.
"""

from __future__ import annotations

import builtins
import time
from _thread import start_new_thread
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from threading import get_ident
from types import SimpleNamespace
from typing import Any

import numpy as np

from dcarray.core import config, fp_state
from dcarray.core.counters import counters, note
from dcarray.core.errors import Untraceable
from dcarray.core.fp_attribution import RAISING
from dcarray.core.processes import communicator
from dcarray.execution.executor import EXECUTOR
from dcarray.lowering.runtime.buffer_pool import trim
from dcarray.plans import provider
from dcarray.plans.slot import PlanSlot, PlanState
from dcarray.recording.session import LOCK, session
from dcarray.tiering import eager_period, state
from dcarray.tiering.state import Tier, TierState

from ..entry.entry_values import LoopDescription
from ..entry.guards import ARRAYS, DeviceGuard, entry_value, guard_of
from ..entry.lists import ListElements
from . import backoff
from .key_turnover import KeyTurnover
from .list_conversion import ListConversion
from .loop_source import LoopSource
from .processor_values import ProcessorValues
from .requests import LoopRequest
from .run_loop import LoopPlan, PlanMismatch

SHORT = 50e-6  # seconds of a loop in Python that a plan could hardly save
WORTH = 1e-3  # seconds of a loop in Python that are worth a plan, if it is repeated
LONG = 20e-3  # and that are worth one after a single run
PATIENCE = 0.1  # seconds until a loop's recordings are asked for, if its own plan is not there
INNER_DELAY = 0.3  # seconds after which the sites inside of a loop that still runs are enabled
MAX_KEYS = 8  # of a site
_MISSING = object()
_ON_HOST = (*ARRAYS, ListElements)
watchers: list[Callable[[LoopRequest], None]] = []
"""Callbacks that get the request of each compiled loop, then planned eagerly, for `dcarray.explain`."""


class _Entry(PlanSlot[Any]):
    """A guard key: its plan, and how often it was entered."""

    __slots__ = ("device", "key", "plain", "request", "runs", "spent", "used")

    def __init__(self, key: tuple[Any, ...], request: LoopRequest, plain: bool, device: Any) -> None:
        super().__init__()
        self.device = device  # that its arrays are on
        self.key = key  # options, watched floating-point exceptions, and guards
        self.request = request
        self.plain = plain  # whether some of its arrays are plain
        self.runs = TierState(state.LOOP)
        self.spent, self.used = 0.0, 0  # seconds in Python, and the site's last run with the key


def _watched_exceptions() -> int:
    """Return the floating-point exceptions that are not ignored, of those that plans depend on."""
    return fp_state.watched_flags(fp_state.current_state()) & RAISING


class LoopSite:
    """The site before a loop.

    Attributes
    ----------
    loop : LoopSource
    enabled : bool
        Whether the function asks it.  Not as long as the loop around it may be compiled as a whole.
    """

    def __init__(self, loop: LoopSource, names: dict[str, Any], outer: LoopSite | None) -> None:
        self.loop = loop
        self.enabled = outer is None
        self._names = names
        self._inner: list[LoopSite] = []
        self._entries: dict[Any, _Entry] = {}
        # by thread: the start of the loop, the seconds that the program had run without plans by then, the
        # key, and whether the loop runs in an eager period
        self._running: dict[int, tuple[float, float, _Entry | None, bool]] = {}
        self._runs, self._spent = TierState(state.LOOP_SITE), 0.0
        self._values = TierState(state.LOOP_SITE)
        self._lists, self._turnover = ListConversion(), KeyTurnover()
        self._last: _Entry | None = None  # the key whose plan ran last
        if outer is not None:
            outer._inner.append(self)

    def __reduce__(self) -> Any:
        """Serialise as a disabled site: in another process the loop runs in Python."""
        return SimpleNamespace, (), {"enabled": False}

    # ---- from the function ------------------------------------------------------------------------------
    def enter(self, *values: Any) -> tuple[tuple[Any, ...], ...]:
        """Return the values of ``loop.live`` after the loop, or nothing if the loop has to run in Python."""
        options = config.current()
        ranks = communicator() is not None
        if options.jit == "off" or (ranks and options.strict):  # it would gather arrays
            return ()
        if watchers or (ranks and options.jit == "background"):  # ranks get plans at different times
            options = replace(options, jit="eager")
        runs = self._runs
        if options.jit != "eager" and runs.observations and self._spent < SHORT * runs.observations:
            if runs.tier is Tier.OBSERVED:
                self._run_in_python(None)
            else:
                runs.reset()
                self._spent = 0.0
                backoff.disable_for_a_while(self)
            return ()
        for name in self.loop.others:
            value = self._names.get(name, _MISSING)
            values += (getattr(builtins, name, _MISSING) if value is _MISSING else value,)
        if self._last is not None and not ranks and not watchers:
            served = self._try_last(self._last, values, options)
            if served is not None:
                return served
        if list in map(type, values):
            seconds = self._spent / runs.observations if runs.observations else 0.0
            if options.jit != "eager" and seconds and self._lists.are_a_loss(seconds, self._entries.values()):
                self._disable("to convert its lists takes longer than to run it")
                return ()
            values = self._lists.elements(values)
        processors = ProcessorValues.of(values)
        if processors is not None:
            values = processors.ordinary
        try:
            entry = self._entry(values, options)
            plan = None if entry is None else self._plan_of(entry, options)
        except Exception as error:
            if options.debug:
                raise
            self._disable(f"{type(error).__name__}: {error}")
            return ()
        if plan is None:
            if entry is None or options.jit != "background":
                self._run_in_python(entry)
                return ()
            first = entry.runs.observations == 1
            refused = entry.state is PlanState.REFUSED
            eager = not refused and entry.device is None and self._begin_eager_period(first)
            self._run_in_python(entry, eager)
            if first and self._inner:
                self._watch_inner_loops(entry, options)
            return ()
        assert entry is not None
        served = self._run_plan(entry, plan, values, options)
        return served if processors is None else tuple(map(processors.back, served))

    def _try_last(
        self, entry: _Entry, values: tuple[Any, ...], options: config.Options
    ) -> tuple[tuple[Any, ...], ...] | None:
        """Return the result of `enter` if the values pass the checks of the last key, else None."""
        plan = entry.plan
        if (
            plan is None
            or entry.key[0] != (options.target, options.fastmath)
            or entry.key[1] != _watched_exceptions()
        ):
            return None
        with LOCK:
            addresses = plan.addresses(values)
            if addresses is None:
                return None
            self._turnover.mark(entry)
            return self._run_plan(entry, plan, values, options, addresses)

    def _run_plan(
        self,
        entry: _Entry,
        plan: LoopPlan,
        values: tuple[Any, ...],
        options: config.Options,
        addresses: tuple[int, ...] | None = None,
    ) -> tuple[tuple[Any, ...], ...]:
        """Run a plan and return the result of `enter`."""
        try:
            found = plan.run(values, options, addresses)
        except MemoryError:  # a later run may have more memory
            return ()
        if found is not None:
            lists = ListElements in map(type, values)  # of which there are no checks
            if (
                addresses is None and len(entry.key) == 2 + len(values) and not lists
            ):  # else names share an array
                plan.remember(values, entry.key[2:])
                self._last = entry
            if self._values.strikes:
                self._values.activate(1)
            if entry.runs.strikes:
                entry.runs.activate()
            return (found,)
        if entry.runs.strike():
            entry.refuse()
            self._note("it raises floating-point exceptions, or its arrays share memory", self.loop.line)
        return ()

    def leave(self) -> None:
        """Note that the loop has run in Python, which its code says at the end."""
        now = time.perf_counter()
        running = self._running.pop(get_ident(), None)
        if running is None:
            return
        start, before, entry, eager = running
        if eager:
            eager_period.end(loop=True)
            session().realign()
        took = now - start
        self._runs.observe()
        self._spent += took
        background = EXECUTOR.background
        background.add_unplanned_work(
            max(0.0, took - (background.seconds - before))
        )  # recordings count their own
        if entry is None or entry.state is PlanState.REFUSED:
            return
        counters.waiting += entry.plan is None
        if entry.state is not PlanState.UNASKED:
            return
        entry.spent += took
        options = config.current()
        if took >= LONG or (entry.runs.observations > 1 and entry.spent >= WORTH):
            self._request_plan(entry, options)
        elif entry.runs.observations == 1 and took >= WORTH and options.cache_dir and not options.debug:
            background.submit(partial(self._load_stored_plan, entry))

    def _run_in_python(self, entry: _Entry | None, eager: bool = False) -> None:
        """Note that the loop starts to run in Python."""
        self._running[get_ident()] = time.perf_counter(), EXECUTOR.background.seconds, entry, eager

    def _begin_eager_period(self, first: bool) -> bool:
        """Begin an eager period, which lasts until recordings are worth plans: without a plan a recording
        costs more, and the loop is to get a plan of its own.  False if there is one already.  At the
        ``first`` run of a loop, cached memory is freed for NumPy, which makes the arrays now."""
        if not eager_period.begin(PATIENCE, loop=True, new=first):
            return False
        now = session()
        now.flush(now.rec)  # operations on pending arrays would be recorded
        if first:
            trim()
        return True

    def _watch_inner_loops(self, entry: _Entry, options: config.Options) -> None:
        """If the loop still runs after a while, request its plan and enable the sites inside of it."""
        thread = get_ident()
        running = self._running[thread]

        def look() -> None:
            time.sleep(INNER_DELAY)
            if self._running.get(thread) is running:
                self._enable_inner()
                self._request_plan(entry, options)

        with suppress(RuntimeError):  # no thread can be started
            start_new_thread(look, ())  # without waiting until it runs

    # ---- keys ---------------------------------------------------------------------------------------------
    def _plan_of(self, entry: _Entry, options: config.Options) -> LoopPlan | None:
        """Return the plan of a key if it is ready; with ``jit="eager"`` it is made now."""
        entry.runs.observe()
        if entry.plan is None and options.jit == "eager" and entry.state is not PlanState.REFUSED:
            entry.ask()
            self._plan(entry, options)
        if watchers and entry.plan is not None:
            for seen in watchers:
                seen(entry.request)
        return entry.plan

    def _entry(self, values: tuple[Any, ...], options: config.Options) -> _Entry | None:
        """Return the entry of the values' guard key; None if a value has no guard, or keys are too many."""
        watched = _watched_exceptions()
        guards: list[Any] = [(options.target, options.fastmath), watched]
        arrays = []
        for k, value in enumerate(values):
            guard = guard_of(value)
            if guard is None:
                self._unsupported_value((*self.loop.needed, *self.loop.others)[k], value)
                return None
            guards.append(guard)
            if type(value) in ARRAYS or isinstance(guard, DeviceGuard):
                arrays.append(id(value))
        if len(set(arrays)) < len(arrays):
            guards.append(tuple([arrays.index(a) for a in arrays]))
        key = tuple(guards)
        entry = self._entries.get(key)
        if entry is None:
            if len(self._entries) >= MAX_KEYS and not self._turnover.has_made_room(key, self._entries):
                if not self._values.strikes:
                    self._note("its sizes or types change from one run to the next", self.loop.line)
                self._count_unplannable()
                return None
            plain = any(type(v) is np.ndarray for v in values)
            there = {guard.device for guard in guards if isinstance(guard, DeviceGuard)}
            if there and (len(there) > 1 or any(type(v) in _ON_HOST for v in values)):
                self._note("some of its arrays are on another device", self.loop.line)
                self._count_unplannable()
                return None
            device = there.pop() if there else None
            request = self._request(values, guards[2:], watched, options)
            if device is not None:
                request = request._replace(target=device.target, undone=False)
            entry = self._entries[key] = _Entry(key, request, plain, device)
        self._turnover.mark(entry)
        return entry

    def _request(
        self, values: tuple[Any, ...], guards: list[Any], watched: int, options: config.Options
    ) -> LoopRequest:
        source = self.loop
        first: dict[int, str] = {}
        names = []
        for name, value, guard in zip((*source.needed, *source.others), values, guards, strict=False):
            is_array = type(value) in ARRAYS or isinstance(guard, DeviceGuard)
            same = first.setdefault(id(value), name) if is_array else name
            names.append((name, entry_value(value, guard, None if same == name else same)))
        loop = LoopDescription(
            source.source, source.file, source.line, tuple(names), frozenset(source.live), watched
        )
        max_elements = None if communicator() is None else max(1, options.distribute_above)
        return LoopRequest(
            loop, options.fastmath, options.threads, options.cache_dir, options.target, max_elements
        )

    def _unsupported_value(self, name: str, value: Any) -> None:
        """Note that a name has a value without a guard."""
        if not self._values.strikes:
            device = getattr(value, "_device", None)
            known = "nothing that compiled code knows" if device is None else f"an array on {device.name}"
            if type(value) is list:
                known = "no list of equally long lists of floats, or of ints, or has one of them twice"
            self._note(f"{name} is {known}: {type(value).__name__}", self.loop.line)
        self._enable_inner()
        self._count_unplannable()

    def _count_unplannable(self) -> None:
        """Count a run for which no plan will be made; after many of them the site is disabled."""
        served = any(entry.plan is not None for entry in self._entries.values())
        if self._values.strike() and (not served or self._values.strikes >= MAX_KEYS * MAX_KEYS):
            self.enabled = False
            self._enable_inner()

    # ---- plans --------------------------------------------------------------------------------------------
    def _load_stored_plan(self, entry: _Entry) -> None:
        """Take the plan from the disk store, if it is there."""
        try:
            found = provider.load_stored(entry.request)
            if found is not None and entry.plan is None:
                entry.fill(self._bind_plan(found, entry))
        except Exception:  # planning will raise it again
            return

    def _request_plan(self, entry: _Entry, options: config.Options) -> None:
        """Request the plan of a key in the background."""
        if entry.ask():
            EXECUTOR.background.submit_later(partial(self._plan, entry, options), entry.spent)

    def _plan(self, entry: _Entry, options: config.Options) -> None:
        """Make the plan of a key."""

        def made() -> Any:
            return self._bind_plan(provider.obtain(entry.request, options, EXECUTOR.background), entry)

        try:
            entry.make(made)
        except MemoryError:
            pass
        except (Untraceable, PlanMismatch) as reason:
            line = reason.line if isinstance(reason, Untraceable) else self.loop.line
            self._note_refusal(str(reason), line)
        except Exception as error:
            if options.debug:
                raise
            self._note_refusal(f"{type(error).__name__}: {error}", self.loop.line)

    def _bind_plan(self, loaded: Any, entry: _Entry) -> Any:
        source = self.loop
        names = (*source.needed, *source.others)
        if entry.device is None:
            return LoopPlan(loaded, names, entry.plain, source.live)
        from .device_loop_plan import DeviceLoopPlan  # only programs with devices load their package

        return DeviceLoopPlan(loaded, names, entry.device, source.live)

    def _note_refusal(self, reason: str, line: int) -> None:
        """Report that a key has no plan; the site is disabled if no key has one."""
        refused = [other for other in self._entries.values() if other.state is PlanState.REFUSED]
        self._enable_inner()
        if len(refused) == 1:
            self._note(reason, line)
        elif len(refused) == len(self._entries):
            self.enabled = False

    def _enable_inner(self) -> None:
        """Enable the sites inside the loop, which is not compiled as a whole."""
        while self._inner:
            self._inner.pop().enabled = True

    def _disable(self, reason: str) -> None:
        """Leave the loop to Python from now on."""
        self.enabled = False
        self._note(reason, self.loop.line)
        self._enable_inner()

    def _note(self, reason: str, line: int) -> None:
        note(reason, kind="loop", where=(self.loop.file, line))
