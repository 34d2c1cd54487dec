"""What serves a site: it finds the plan for the values that come (`site_plans`), runs it, and measures it.

A plan that is not faster than NumPy is not used again.
"""

from __future__ import annotations

import builtins
from threading import get_ident
from time import perf_counter
from typing import Any

from dcarray.core import config
from dcarray.core.counters import counters, note
from dcarray.core.processes import LOCK, communicator
from dcarray.ir.records import replaced
from dcarray.plans.slot import PlanState
from dcarray.tiering import admission

from ..entry.guards import knows_wrapped
from ..entry.lists import ListElements
from ..entry.members import Check, still_hold, watched_members
from ..syntax.path_names import shown
from .keys import MISSING, Entry, watched_exceptions
from .list_conversion import ListConversion
from .path_values import PathValues
from .pruning import prune
from .requests import TOO_SHORT
from .run_loop import LoopPlan
from .sampler import SAMPLER
from .short_runs import ShortRuns
from .site import Site, SiteSource
from .site_plans import SitePlans, watchers

SAMPLER.prune = prune  # no site is refused before it has a server


class SiteServer:
    """What serves one site."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._last: Entry | None = None  # the key whose plan ran last
        self._running: dict[int, tuple[float, Entry | None]] = {}  # by thread: what runs in Python since when
        self._done: set[int] = set()  # threads in which all iterations have been done
        self._members: list[Check] | None = None
        self._pace = admission.Pace()
        self._vain = admission.Vain()
        self._row: tuple[Entry, admission.InARow] | None = None  # runs in Python that are being measured
        self._lists = ListConversion()
        self._begun = False
        self._resting, self._unnamed = 0, ""  # runs in which the reason stands for which parts are no names
        self._paths: PathValues | None = None
        self._plan(site.source)

    def _plan(self, source: SiteSource) -> None:
        """Have a site's statements planned as they are given."""
        self.source = source
        self._short, self._plans = ShortRuns(self.site, source), SitePlans(self.site, source)
        self.requests = self._plans.requests

    def _begin(self, values: tuple[Any, ...]) -> None:
        """Find out from the values of the first run which of them are objects."""
        if self._resting:  # to look takes a while
            self._resting -= 1
            self._plans.refuse_value(self._unnamed)
            return
        self._begun = True
        try:
            found = PathValues.of(self.source, values, self.site.names)
        except Exception as error:
            if config.current().debug:
                raise
            found = f"{type(error).__name__}: {error}"
        if isinstance(found, PathValues):
            self._paths = found
            self._plan(found.source)
        elif found is not None:
            self._begun = False
            self._resting, self._unnamed = 2, found
            self._plans.refuse_value(found)

    # ---- from the program -------------------------------------------------------------------------------
    def enter(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Do what `Site.ask` does."""
        begun = perf_counter()
        found, entry = self._serve(values, None)
        if found and entry is not None and not entry.gain.judged and not self._short.in_trial:
            self._judge(entry, perf_counter() - begun)  # with what it takes to find and to begin the run
        if self._vain.is_a_loss(bool(found), entry is None or entry.state is PlanState.REFUSED):
            self._plans.refuse("most of its runs have values of which no plan is faster", self.source.line)
        if not found:
            if entry is not None and entry.plan is not None:  # it is Python's turn, for all iterations
                self.site.resuming = False
                if not entry.gain.judged and entry.gain.is_short() and config.current().jit != "eager":
                    self._row = entry, admission.InARow()
                    self.site.enter = self._enter_in_a_row
            self._running[get_ident()] = perf_counter(), entry
        return found

    def _enter_in_a_row(self, *values: Any) -> tuple[Any, ...]:
        """Leave a run to Python, as one of several whose time is measured."""
        if self._row is not None:
            self._row[1].begin()
        return ()

    def _leave_in_a_row(self, entry: Entry, row: admission.InARow) -> None:
        seconds = row.end()
        if seconds:
            self._row, self.site.enter = None, self.site.ask
            self.site.resuming = self.site.resumable
            entry.gain.python(seconds, True)

    def resume(self, start: Any, items: range | None, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Do what `Site.resume` does."""
        begun = perf_counter()
        if type(start) is not int or type(items) is not range:
            items = None
        if items is not None:
            self._pace.look(begun, start, items)
            if self._pace.is_slow() and self.site.leaves_to_inner:
                self.site.resuming = False
                return ()
        found, entry = self._serve(values, start)
        if found and items is not None:
            self.site.kept = self._pace.is_faster(perf_counter() - begun, start, items)
            if not self.site.kept:
                self._plans.refuse("compiled code is not faster than NumPy", self.source.line)
        if found:
            self._done.add(get_ident())
        elif entry is None or entry.state is not PlanState.READY or entry.failures:
            self.site.resuming = False  # until there is a plan
            if entry is not None and entry.state is PlanState.UNASKED:
                if items is not None and self._pace.ends_soon(start, items):
                    self.site.resuming = not self._pace.seconds  # it may take long: look again
                else:
                    self._plans.request(entry)
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
            if self._row is not None:
                self._leave_in_a_row(*self._row)
            return
        start, entry = running
        took = perf_counter() - start
        if entry is None:
            return
        if self._row is None:
            entry.gain.python(took)
        if entry.plan is not None and self._row is None:
            self.site.resuming = self.site.resumable
        if entry.state is PlanState.UNASKED and entry.gain.may_pay():
            self._plans.request(entry)
        elif entry.state is PlanState.UNASKED and entry.gain.cannot_pay():
            entry.refuse()
            self._plans.refuse_slow(entry, TOO_SHORT)
        if entry.state is PlanState.ASKED and entry.plan is None:
            counters.waiting += 1
        waits = entry.state is PlanState.ASKED and not self._plans.is_ready()
        if waits and entry.gain.is_known() and config.current().jit != "eager":
            self.site.enabled = False  # until there is a plan
            if self._plans.is_ready():  # it has just come
                self.site.enabled = True

    def _serve(self, values: tuple[Any, ...], start: Any) -> tuple[tuple[Any, ...], Entry | None]:
        """Return what `_serve_values` does, and bind parts of objects."""
        if not self._begun:
            self._begin(values)
            if not self._begun:
                return (), None
        if self._paths is None:
            return self._serve_values(values, start)
        read = self._paths.read(values)
        if read is None:
            self._plans.refuse_value(self._paths.unread)
            return (), None
        given, owners = read
        if self._short.run is not None and start is None and (served := self._short.run(*given)):
            return (self._paths.bind(values, owners, served[0]),), None
        found, entry = self._serve_values(given, start)
        return tuple([self._paths.bind(values, owners, one) for one in found]), entry

    def _serve_values(self, values: tuple[Any, ...], start: Any) -> tuple[tuple[Any, ...], Entry | None]:
        """Return the result of a plan for the values, or an empty tuple, and the entry of their key."""
        ended = self._short.end_trial()
        if ended is not None:
            self._judge(*ended)
        options = config.look_again()
        ranks = communicator() is not None
        if options.jit == "off" or (ranks and options.strict):  # it would gather arrays
            return (), None
        if watchers or (ranks and options.jit == "background"):  # ranks get plans at different times
            options = replaced(options, jit="eager")
        for name in self.source.others:
            value = self.site.names.get(name, MISSING)
            values += (getattr(builtins, name, MISSING) if value is MISSING else value,)
        if self._members is None or not still_hold(self._members):
            self._members = watched_members(self.source.members, self.site.names)
            if self._members is None:
                self._plans.refuse("something else is bound to a name of NumPy's", self.source.line)
                return (), None
            self._last = None
            self._plans.entries.clear()
        if self._last is not None and not ranks and not watchers and start is None:
            served = self._try_last(self._last, values, options)
            if served is not None:
                return served, self._last
        if list in map(type, values):
            if self._lists.are_a_loss(self._plans.entries.values()):
                self._plans.refuse("to convert its lists takes longer than to run it", self.source.line)
                return (), None
            values = self._lists.elements(values)
        processors = None
        if knows_wrapped():
            from .processor_values import ProcessorValues

            processors = ProcessorValues.of(values)
            if processors is not None:
                values = processors.ordinary
        try:
            entry = self._plans.find(values, start, options)
            if entry is None:
                return (), None
            plan = self._plans.plan_of(entry, options)
        except Exception as error:
            if options.debug:
                raise
            self._plans.refuse(f"{type(error).__name__}: {error}", self.source.line)
            return (), None
        if plan is None or (start is None and options.jit != "eager" and entry.gain.is_pythons_turn()):
            return (), entry
        if plan.checks and start is None and not entry.gain.judged and options.jit != "eager":
            served = self._short.begin_trial(plan, values, entry, self._members or [])
            if served:
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
            or not plan.checks
            or entry.kind[0] != (options.target, options.fastmath)
            or entry.kind[1] != watched_exceptions()
        ):
            return None
        unjudged = not entry.gain.judged and options.jit != "eager"
        if unjudged and (entry.gain.is_pythons_turn() or self._short.may_have_one(plan)):
            return None  # a short run has a trial
        with LOCK:
            addresses = plan.addresses(values)
            if addresses is None or not entry.has_sizes_of(values) or not entry.serves(values, None):
                return None
            self._plans.traffic.hit()
            served = self._run_plan(entry, plan, values, None, options, addresses)
            if served and (entry.gain.judged or options.jit == "eager"):
                self._short.use(plan, values, entry, self._members or [])
            return served

    def _run_plan(
        self, entry: Entry, plan: LoopPlan, values: tuple[Any, ...], start: Any, options: config.Options,
        addresses: tuple[int, ...] | None = None,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Run a plan; returns the values of the live names in a tuple, or an empty tuple."""
        begun = perf_counter()
        try:
            with LOCK:
                sized = bool(entry.symbols) or start is not None
                if sized and not plan.serves(entry.symbols_of(values, start)):
                    return ()
                found = plan.run(values, options, addresses)
        except MemoryError:  # a later run may have more memory
            return ()
        if found is None:
            entry.failures += 1
            if entry.failures >= admission.FAILURES:
                entry.refuse()
                if len(self._plans.refused()) == 1:
                    reason = "it raises floating-point exceptions, or its arrays share memory"
                    note(shown(reason), kind="loop", where=(self.source.file, self.source.line))
            return ()
        entry.failures = 0
        took = perf_counter() - begun
        self.site.compiled += took
        self.site.runs += 1
        guards = entry.guards
        alone = guards is not None and len(guards) == len(values)  # no two names share an array
        # of lists there are no checks
        if addresses is None and start is None and alone and ListElements not in map(type, values):
            plan.remember(values, guards or ())
            self._last = entry
        return (found,)

    def _judge(self, entry: Entry, seconds: float) -> None:
        """Note how long compiled code took; it is given up if that is known not to be faster."""
        if config.current().jit == "eager":
            return
        known = entry.gain.judged
        refused = entry.gain.compiled(seconds)
        if not known and entry.gain.judged:
            self.site.kept = not refused
        if refused:
            entry.refuse()
            self._plans.refuse_slow(entry, "compiled code is not faster than NumPy")
