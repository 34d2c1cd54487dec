"""Sites: the places before loops, where it is decided each time whether compiled code serves them.

What a plan is made for is its *key*: the guards of the values that the loop reads.  A key that is worth its
while is planned as recordings are; until its plan is there, and for every other key, the loop runs as it is
written.
"""

from __future__ import annotations

import builtins
import time
from _thread import start_new_thread
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import get_ident
from typing import Any

import numpy as np

from dcarray.core import config, fp_state
from dcarray.core.counters import counters, note
from dcarray.core.errors import Untraceable
from dcarray.core.fp_attribution import RAISING
from dcarray.core.processes import communicator
from dcarray.execution.executor import EXECUTOR
from dcarray.lowering.runtime.memory import trim
from dcarray.plans import provider
from dcarray.plans.background import PATIENCE
from dcarray.plans.slot import PlanSlot, PlanState
from dcarray.recording.session import LOCK, session
from dcarray.tiering import eager_period, state
from dcarray.tiering.state import Tier, TierState

from . import backoff
from .entry_values import LoopDescription
from .guards import ARRAYS, entry_value, guard_of
from .requests import LoopRequest
from .run_loop import LoopPlan, PlanMismatch

SHORT = 50e-6  # seconds of the loop as written that its plan would hardly save
WORTH = 1e-3  # seconds of the loop as written that are worth a plan, if it comes again
LONG = 20e-3  # and that are worth one at once
LINGER = 0.3  # seconds after which the loops inside of one that still runs are looked at
KEYS = 8  # that a site looks after
_MISSING = object()
watchers: list[Callable[[LoopRequest], None]] = []
"""Who wants to see the loops that are served, which then are planned at once; see
`dcarray.explain`."""


@dataclass(frozen=True, slots=True)
class LoopSource:
    """A loop in the source.

    Attributes
    ----------
    source, file, line
        As in `LoopDescription`.
    needed, others : tuple of str
        The local names that are bound when it begins and whose values matter, and the names of the module
        that it reads.
    live : tuple of str
        The names that it binds and that may be read afterwards.
    """

    source: str
    file: str
    line: int
    needed: tuple[str, ...]
    others: tuple[str, ...]
    live: tuple[str, ...]


class _Entry(PlanSlot[LoopPlan]):
    """A key: how often it came, and its plan."""

    __slots__ = ("key", "plain", "request", "runs", "spent")

    def __init__(self, key: tuple[Any, ...], request: LoopRequest, plain: bool) -> None:
        super().__init__()
        self.key = key  # options and the exceptions that are watched, and guards
        self.request = request
        self.plain = plain  # are any of its arrays plain ones?
        self.runs = TierState(state.LOOP)
        self.spent = 0.0


def _watched() -> int:
    """The exceptions that are not ignored and of which a plan depends."""
    return fp_state.watched(fp_state.captured()) & RAISING


class DisabledSite:
    """A place before a loop where nobody answers."""

    open = False


class LoopSite:
    """The place before a loop.

    Attributes
    ----------
    place : LoopSource
    open : bool
        Is it to be asked?  Not as long as the loop around it may be served as a whole.
    """

    def __init__(self, place: LoopSource, names: dict[str, Any], outer: LoopSite | None) -> None:
        self.place = place
        self.open = outer is None
        self._names = names
        self._inner: list[LoopSite] = []
        self._entries: dict[Any, _Entry] = {}
        # by thread: when the loop began, what the program had worked without plans by then, the key, and
        # whether NumPy does everything at once
        self._begun: dict[int, tuple[float, float, _Entry | None, bool]] = {}
        self._runs, self._spent = TierState(state.LOOP_SITE), 0.0
        self._values = TierState(state.LOOP_SITE)
        self._last: _Entry | None = None  # whose plan has served
        if outer is not None:
            outer._inner.append(self)

    def __reduce__(self) -> tuple[type, tuple[()]]:
        """In another process, where the code of the function may be sent, the loop runs as it is written."""
        return DisabledSite, ()

    # ---- from the function ------------------------------------------------------------------------------
    def enter(self, *values: Any) -> tuple[tuple[Any, ...], ...]:
        """The loop begins: the values of ``place.live`` after it, or nothing if it has to run."""
        options = config.current()
        ranks = communicator() is not None
        if options.jit == "off" or (ranks and options.strict):  # it would have arrays gathered
            return ()
        if watchers or (ranks and options.jit == "background"):  # when a plan is ready differs between ranks
            options = replace(options, jit="eager")
        runs = self._runs
        if options.jit != "eager" and runs.observations and self._spent < SHORT * runs.observations:
            if runs.tier is Tier.OBSERVED:
                self._begin(None)
            else:
                runs.reset()
                self._spent = 0.0
                backoff.sleep(self)
            return ()
        for name in self.place.others:
            value = self._names.get(name, _MISSING)
            values += (getattr(builtins, name, _MISSING) if value is _MISSING else value,)
        if self._last is not None and not ranks and not watchers:
            served = self._again(self._last, values, options)
            if served is not None:
                return served
        try:
            entry = self._entry(values, options)
            plan = None if entry is None else self._ready(entry, options)
        except Exception as error:
            if options.debug:
                raise
            self._close(f"{type(error).__name__}: {error}", self.place.line)
            return ()
        if plan is None:
            if entry is not None and entry.state is not PlanState.REFUSED and options.jit == "background":
                self._begin(entry, self._outright(entry.runs.observations == 1))
            else:
                self._begin(entry)
            if (
                entry is not None
                and entry.runs.observations == 1
                and self._inner
                and options.jit == "background"
            ):
                self._see_later(entry, options)
            return ()
        assert entry is not None
        return self._served(entry, plan, values, options)

    def _again(
        self, entry: _Entry, values: tuple[Any, ...], options: config.Options
    ) -> tuple[tuple[Any, ...], ...] | None:
        """What `enter` gives for values that are those of a key; None if that is still to be found out."""
        plan = entry.plan
        if plan is None or entry.key[0] != (options.target, options.fastmath) or entry.key[1] != _watched():
            return None
        with LOCK:
            places = plan.addresses(values)
            if places is None:
                return None
            return self._served(entry, plan, values, options, places)

    def _served(
        self,
        entry: _Entry,
        plan: LoopPlan,
        values: tuple[Any, ...],
        options: config.Options,
        places: tuple[int, ...] | None = None,
    ) -> tuple[tuple[Any, ...], ...]:
        """Run a plan; what `enter` returns then, or if that comes to nothing."""
        try:
            found = plan.run(values, options, places)
        except MemoryError:  # later there may be more
            return ()
        if found is not None:
            if places is None and len(entry.key) == 2 + len(values):  # else one array has several names
                plan.remember(values, entry.key[2:])
                self._last = entry
            self._values.activate(1)
            entry.runs.activate()
            return (found,)
        if entry.runs.strike():
            entry.refuse()
            self._note("it raises floating-point exceptions, or its arrays share memory", self.place.line)
        return ()

    def left(self) -> None:
        """The loop has run as it is written."""
        now = time.perf_counter()
        begun = self._begun.pop(get_ident(), None)
        if begun is None:
            return
        start, before, entry, outright = begun
        if outright:
            eager_period.end(loop=True)
            session().realign()
        took = now - start
        self._runs.observe()
        self._spent += took
        background = EXECUTOR.background
        background.worked(max(0.0, took - (background.seconds - before)))  # recordings count their own
        if entry is None or entry.state is PlanState.REFUSED:
            return
        counters.waiting += entry.plan is None
        if entry.state is not PlanState.UNASKED:
            return
        entry.spent += took
        options = config.current()
        if took >= LONG or (entry.runs.observations > 1 and entry.spent >= WORTH):
            self._ask(entry, options)
        elif entry.runs.observations == 1 and took >= WORTH and options.cache_dir and not options.debug:
            background.submit(partial(self._look, entry))

    def _begin(self, entry: _Entry | None, outright: bool = False) -> None:
        """The loop runs as it is written."""
        self._begun[get_ident()] = time.perf_counter(), EXECUTOR.background.seconds, entry, outright

    def _outright(self, first: bool) -> bool:
        """Let NumPy do at once what the loop asks for, until it has taken so long that recordings are worth
        plans: what is recorded costs more as long as it has none, and the loop is to have one of its own.
        False if that is so already.  When the loop is met for the `first` time, NumPy gets the memory of what
        was before it; it makes what is made now."""
        if not eager_period.begin(PATIENCE, loop=True, new=first):
            return False
        now = session()
        now.flush(now.rec)  # nothing is to be pending: what meets it would be recorded
        if first:
            trim()
        return True

    def _see_later(self, entry: _Entry, options: config.Options) -> None:
        """If the loop still runs after a while, the loops inside of it may be served meanwhile."""
        thread = get_ident()
        begun = self._begun[thread]

        def look() -> None:
            time.sleep(LINGER)
            if self._begun.get(thread) is begun:
                self._open_inner()
                self._ask(entry, options)

        with suppress(RuntimeError):  # no thread is to be had
            start_new_thread(look, ())  # without waiting until it runs

    # ---- keys ---------------------------------------------------------------------------------------------
    def _ready(self, entry: _Entry, options: config.Options) -> LoopPlan | None:
        """The plan of a key, if it has one."""
        entry.runs.observe()
        if entry.plan is None and options.jit == "eager" and entry.state is not PlanState.REFUSED:
            entry.ask()
            self._plan(entry, options)
        if watchers and entry.plan is not None:
            for seen in watchers:
                seen(entry.request)
        return entry.plan

    def _entry(self, values: tuple[Any, ...], options: config.Options) -> _Entry | None:
        """What is known of these values; None if they are strange."""
        watched = _watched()
        guards: list[Any] = [(options.target, options.fastmath), watched]
        arrays = []
        for k, value in enumerate(values):
            guard = guard_of(value)
            if guard is None:
                self._odd((*self.place.needed, *self.place.others)[k], value)
                return None
            guards.append(guard)
            if type(value) in ARRAYS:
                arrays.append(id(value))
        if len(set(arrays)) < len(arrays):
            guards.append(tuple([arrays.index(a) for a in arrays]))
        key = tuple(guards)
        entry = self._entries.get(key)
        if entry is None:
            if len(self._entries) >= KEYS:
                if not self._values.strikes:
                    self._note("its sizes or types change from one run to the next", self.place.line)
                self._tire()
                return None
            entry = self._entries[key] = _Entry(
                key,
                self._request(values, guards[2:], watched, options),
                any(type(v) is np.ndarray for v in values),
            )
        return entry

    def _request(
        self, values: tuple[Any, ...], guards: list[Any], watched: int, options: config.Options
    ) -> LoopRequest:
        place = self.place
        first: dict[int, str] = {}
        names = []
        for name, value, guard in zip((*place.needed, *place.others), values, guards, strict=False):
            same = first.setdefault(id(value), name) if type(value) in ARRAYS else name
            names.append((name, entry_value(value, guard, None if same == name else same)))
        loop = LoopDescription(
            place.source, place.file, place.line, tuple(names), frozenset(place.live), watched
        )
        most = None if communicator() is None else max(1, options.distribute_above)
        return LoopRequest(loop, options.fastmath, options.threads, options.cache_dir, options.target, most)

    def _odd(self, name: str, value: Any) -> None:
        """The value of a name is nothing that a plan can be made for."""
        if not self._values.strikes:
            self._note(f"{name} is nothing that compiled code knows: {type(value).__name__}", self.place.line)
        self._open_inner()
        self._tire()

    def _tire(self) -> None:
        """Something has come that no plan will be made for; a loop to which little else comes is left."""
        served = any(entry.plan is not None for entry in self._entries.values())
        if self._values.strike() and (not served or self._values.strikes >= KEYS * KEYS):
            self.open = False
            self._open_inner()

    # ---- plans --------------------------------------------------------------------------------------------
    def _look(self, entry: _Entry) -> None:
        """Take the plan that another process has left."""
        try:
            found = provider.found(entry.request)
            if found is not None and entry.plan is None:
                entry.fill(self._serving(found, entry))
        except Exception:  # whatever is wrong with it, asking for the plan will tell
            return

    def _ask(self, entry: _Entry, options: config.Options) -> None:
        """Have the plan of a key made beside the program."""
        if entry.ask():
            EXECUTOR.background.later(partial(self._plan, entry, options))

    def _plan(self, entry: _Entry, options: config.Options) -> None:
        """Have the plan of a key made."""

        def made() -> LoopPlan:
            return self._serving(provider.obtained(entry.request, options, EXECUTOR.background), entry)

        try:
            entry.make(made)
        except MemoryError:
            pass
        except (Untraceable, PlanMismatch) as reason:
            line = reason.line if isinstance(reason, Untraceable) else self.place.line
            self._refused(str(reason), line)
        except Exception as error:
            if options.debug:
                raise
            self._refused(f"{type(error).__name__}: {error}", self.place.line)

    def _serving(self, parcel: Any, entry: _Entry) -> LoopPlan:
        place = self.place
        return LoopPlan(parcel, (*place.needed, *place.others), entry.plain, place.live)

    def _refused(self, reason: str, line: int) -> None:
        """There will be no plan for a key."""
        refused = [other for other in self._entries.values() if other.state is PlanState.REFUSED]
        self._open_inner()
        if len(refused) == 1:
            self._note(reason, line)
        elif len(refused) == len(self._entries):
            self.open = False

    def _close(self, reason: str, line: int) -> None:
        """Leave the loop alone from now on; those inside may be asked for."""
        self.open = False
        self._note(reason, line)
        self._open_inner()

    def _open_inner(self) -> None:
        """The loops inside are not served with this one."""
        while self._inner:
            self._inner.pop().open = True

    def _note(self, reason: str, line: int) -> None:
        note(reason, kind="loop", where=(self.place.file, line))
