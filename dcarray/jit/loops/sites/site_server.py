"""The server of a site: it finds the version of the statements for the current values, has that run them, and
measures how long Python's runs take.

A plan that is not faster than Python is not used again.
"""

from __future__ import annotations

from threading import get_ident
from typing import Any

from dcarray.core import config
from dcarray.core.counters import counters
from dcarray.core.unpatched import perf_counter
from dcarray.plans.slot import PlanState
from dcarray.tiering import admission

from .keys import Entry
from .loop_items import LoopItems
from .loop_requests import TOO_SHORT, LoopRequest
from .outcome import Outcome
from .path_values import PathValues
from .pruning import prune_soon
from .sampler import SAMPLER
from .site import Site
from .version import Version, not_faster, ranks_may_differ

SAMPLER.prune = prune_soon  # no site is refused before it has a server


_MOST_VERSIONS = 4


class SiteServer:
    """The server of one site, with a version of its statements for each combination of classes of objects and
    of functions among the values.

    Attributes
    ----------
    versions : list of Version
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self._running: dict[int, tuple[float, Version | None, Entry | None]] = {}  # by thread: Python's runs
        self._shared: set[int] = set()  # threads in which compiled code has done part of the iterations
        self._pace = admission.Pace()
        self._spent = 0.0  # seconds of questions in vain
        self._row: tuple[Version, Entry, admission.InARow] | None = None  # Python's runs that are measured
        self._items: LoopItems | None = None
        self._resting, self._unnamed = 0, ""  # runs in which the reason stands for which parts are no names
        self._plain = Version(site, None, self._give_up)
        self.versions: list[Version] = []

    def requests(self) -> list[LoopRequest]:
        """Return the requests of all plans that are ready."""
        return [request for version in self.versions for request in version.plans.requests()]

    def _another(self, values: tuple[Any, ...]) -> Version | None:
        """Return a new version for values that no version serves; None if there can be none."""
        if self._resting or self._plain.is_refused or len(self.versions) == _MOST_VERSIONS:
            self._resting = max(0, self._resting - 1)
            self._plain.plans.refuse_value(self._unnamed or self.versions[-1].unread)
            return None
        paths: PathValues | str | None = PathValues.of(self.site.source, values, self.site.names)
        if not isinstance(paths, str):
            version = self._plain if paths is None else Version(self.site, paths, self._give_up)
            if version.read(values) is not None:
                self.versions.append(version)
                return version
            paths = version.unread
        self._resting, self._unnamed = 2, paths  # to look takes a while
        self._plain.plans.refuse_value(self._unnamed)
        return None

    def _give_up(self, version: Version, reason: str) -> None:
        """Leave a version's values to Python for good; the whole site, if no version is left."""
        version.is_refused = True
        if all(one.is_refused for one in self.versions):
            self.site.refuse(reason)

    def refuse(self, reason: str) -> None:
        """Leave the statements to Python for good."""
        self._plain.refuse(reason)

    @property
    def waits(self) -> bool:
        """Whether plans have been asked for, of which none has been judged."""
        entries = [entry for version in self.versions for entry in version.plans.entries.values()]
        known = any(entry.state is PlanState.REFUSED or entry.gain.judged for entry in entries)
        return not known and any(entry.state is not PlanState.UNASKED for entry in entries)

    def _is_ready(self) -> bool:
        return any(version.plans.is_ready() for version in self.versions)

    # ---- from the program -------------------------------------------------------------------------------
    def enter(self, outcome: Outcome, values: tuple[Any, ...]) -> None:
        """Do what `Site.ask` does."""
        begun = perf_counter()
        version, entry = self._serve(outcome, values, None)
        results = outcome.results
        if version and results and entry and not entry.gain.judged and not version.short.in_trial:
            version.judge(entry, perf_counter() - begun)  # with what it takes to find and to begin the run
        if version and results and version.short.in_trial:
            version.short.ran(perf_counter() - begun)
        if version and results and 0.0 < self.site.foreseen < perf_counter() - begun:
            version.refuse(not_faster(perf_counter() - begun, self.site.foreseen), "slower")
        if not results:
            self._note_vain(version, entry, perf_counter() - begun)
            if version and entry and entry.plan is not None:  # it is Python's turn, for all iterations
                self.site.resuming = False
                if not entry.gain.judged and entry.gain.is_short() and version.is_timed:
                    self._row = version, entry, admission.InARow()
                    self.site.enter = self._enter_in_a_row
            self._running[get_ident()] = perf_counter(), version, entry

    def _note_vain(self, version: Version | None, entry: Entry | None, took: float) -> None:
        """Note that the site was asked, for ``took`` seconds, and there was no plan.  If that takes too much
        of the statements' time, have it asked later, or never again if none is awaited.  Ranks have to do the
        same at the same time: for them the number of questions decides."""
        alone, version = ranks_may_differ(), version or self._plain
        if entry is not None and entry.state in (PlanState.UNASKED, PlanState.READY):
            return  # Python's run is timed
        self._spent += min(took, admission.QUESTION) if alone else admission.QUESTION
        eagerly = not alone or config.current().jit == "eager"
        due = admission.due_after(self._spent, self.site.seconds * alone, eagerly)
        if due and not (self.site.kept or version.is_refused or version.plans.are_awaited()):
            version.refuse("no compiled code is faster for the values of most of its runs")
        if due and alone and not self.site.refused:  # there are versions for other values
            self.site.put_off(due)

    def _enter_in_a_row(self, *values: Any) -> tuple[Any, ...]:
        """Leave this run to Python; the next runs, too, are measured together."""
        if self._row is not None:
            self._row[2].begin()
        return ()

    def _leave_in_a_row(self, now: float, entry: Entry, row: admission.InARow) -> None:
        seconds = row.end(now)
        if seconds:
            self._row, self.site.enter = None, self.site.asking("enter")
            self.site.resuming = self.site.resumable
            entry.gain.python(seconds, True)

    def resume(self, outcome: Outcome, start: Any, items: Any, values: tuple[Any, ...]) -> None:
        """Do what `Site.ask` does for the rest of a loop."""
        begun = perf_counter()
        if not self.site.resumable:  # by what was known when its module was read
            self.site.resuming = False
            return
        if items is not None:
            self._items = self._items or LoopItems(self.site.source, self.site.names)
            items = self._items.as_range(items, values)
            if items is None or type(start) is not int:
                self.site.resumable = self.site.resuming = False
                return
        if not ranks_may_differ():
            items = None
        if items is not None:
            self._pace.look(begun, start, items)
            if self._pace.is_slow() and self.site.leaves_to_inner:
                self.site.resuming = False
                return
        version, entry = self._serve(outcome, values, start)
        results = outcome.results
        if version and results and items is not None:
            took = perf_counter() - begun
            python = self._pace.seconds * len(range(start, items.stop, items.step))
            self.site.kept = self._pace.is_faster(took, start, items)
            self.site.part = took / python if python else self.site.part
            if not self.site.kept and entry and self._pace.is_faster(0.5 * took, start, items):
                version.plans.refuse_slow(entry, not_faster(took, python), "slower")  # one time may be wrong
            elif not self.site.kept:
                version.refuse(not_faster(took, python), "slower")
        if results:
            self._shared.add(get_ident())
        elif entry is None or entry.state is not PlanState.READY or entry.failures:
            self.site.resuming = False  # until there is a plan
            if version and entry and entry.state is PlanState.UNASKED:
                if items is not None and self._pace.ends_soon(start, items):
                    self.site.resuming = not self._pace.seconds  # it may take long: look again
                else:
                    version.plans.request(entry)
            elif entry is not None and entry.state is PlanState.READY and not entry.failures:
                self.site.resuming = self.site.resumable  # it has just come
        if not results:
            self._note_vain(version, entry, perf_counter() - begun)

    def leave(self, _: Outcome, now: float) -> None:
        """Do what `Site.leave` does, at the time ``now``."""
        thread = get_ident()
        running = self._running.pop(thread, None)
        shared = thread in self._shared
        self._shared.discard(thread)
        if running is None:
            if self._row is not None:
                self._leave_in_a_row(now, *self._row[1:])
            return
        start, version, entry = running
        took = now - start
        if version is None or entry is None:
            return
        if self._row is None and not shared:
            entry.gain.python(took)
            entry.ended(took)
        if entry.plan is not None and self._row is None:
            self.site.resuming = self.site.enabled and self.site.resumable
        if entry.state is PlanState.UNASKED and (shared or entry.gain.may_pay()):
            version.plans.request(entry)
        elif entry.state is PlanState.UNASKED and entry.gain.cannot_pay():
            entry.refuse()
            version.plans.refuse_slow(entry, TOO_SHORT)
        if entry.state is PlanState.ASKED and entry.plan is None:
            counters.waiting += 1
        waits = entry.state is PlanState.ASKED and not self._is_ready()
        if waits and entry.gain.is_known() and version.is_timed:
            self.site.enabled = False  # until there is a plan
            if self._is_ready():  # it has just come
                self.site.enabled = True

    def _serve(
        self, outcome: Outcome, values: tuple[Any, ...], start: Any
    ) -> tuple[Version | None, Entry | None]:
        """Return the version for the values (None: there is none), and the result of its `Version.serve`."""
        for version in self.versions:
            read = version.read(values)
            if read is not None:
                return version, version.serve(outcome, values, *read, start)
        another = self._another(values)
        read = None if another is None else another.read(values)
        if another is None or read is None:
            return None, None
        return another, another.serve(outcome, values, *read, start)
