"""A version of a site: its statements for objects of certain classes, with their plans and runs."""

from __future__ import annotations

import builtins
import sys
from collections import ChainMap
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Any

from dcarray.core import config
from dcarray.core.counters import note
from dcarray.core.processes import LOCK, communicator
from dcarray.core.unpatched import perf_counter
from dcarray.ir.records import replaced
from dcarray.tiering import admission

from ..entry.guards import knows_wrapped
from ..entry.lists import ListElements
from ..entry.members import Check, still_hold, watched_members
from ..entry.texts import Texts
from ..syntax.path_names import shown
from .keys import MISSING, Entry, is_wrapped, watched_exceptions
from .list_conversion import ListConversion
from .loop_items import is_plain
from .outcome import Outcome
from .path_values import PathValues
from .run_loop import LoopPlan
from .short_runs import ShortRuns
from .site import Site
from .site_plans import SitePlans, watchers

__all__ = ["Version", "not_faster", "ranks_may_differ"]

_GAIN = 20  # of compiled code, in terms of which a run is brief


class Version:
    """A version of a site's statements: it serves values whose objects have certain classes.

    Parameters
    ----------
    site : Site
    paths : PathValues or None
        The parts of objects that the statements use; None if plans get the values as they are.
    give_up : callable
        ``give_up(version, reason)`` leaves the version's values to Python for good.

    Attributes
    ----------
    plans : SitePlans
    short : ShortRuns
    is_refused : bool
        Whether the values that it serves are left to Python.
    is_timed : bool
        Whether times decide, at present, if compiled code is used: with ``jit="eager"`` not at first.
    """

    def __init__(self, site: Site, paths: PathValues | None, give_up: Callable[[Version, str], None]) -> None:
        self.site, self._paths = site, paths
        self.source = site.source if paths is None else paths.source
        self.plans = SitePlans(site, self.source, lambda reason: give_up(self, reason))
        self.short = ShortRuns(site, self.source, paths)
        self.is_refused, self.is_timed = False, True
        self._last: Entry | None = None  # the key whose plan ran last
        # whether the values of its first run may lie in blocks over ranks
        self._in_blocks: bool | None = None
        self._members: list[Check] | None = None
        self._modules: dict[str, ModuleType] = {}  # by their names, of which `_members` has the members
        self._lists = ListConversion()
        self._texts = Texts(self.source.source, (*self.source.needed, *self.source.others), site.names)

    def read(self, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Any]] | None:
        """Return the values that plans get, and the objects whose parts are assigned afterwards; None if the
        version does not serve these values."""
        return (values, []) if self._paths is None else self._paths.read(values)

    @property
    def unread(self) -> str:
        """The reason for the report when `read` returns None."""
        return "" if self._paths is None else self._paths.unread

    def serve(
        self, outcome: Outcome, values: tuple[Any, ...], given: tuple[Any, ...], owners: list[Any], start: Any
    ) -> Entry | None:
        """Run the statements by a plan, if Python does not have to run them; return the entry of the values'
        key, if that is known.

        Parameters
        ----------
        outcome : Outcome
            It takes the results.
        values, given, owners
            The site's values, and the two results of `read` for them.
        start : int or None
            The loop variable at which a loop is resumed; None: the statements run from their beginning.
        """
        if self.is_refused:
            return None
        if self._paths is None:
            return self._serve(outcome, given, start)
        outcome.steps.append(partial(self._paths.bind, values, owners, outcome.undo))
        if self.short.run is not None and start is None and self.short.run(*given, outcome.take):
            return None
        self.short.values = values
        try:
            return self._serve(outcome, given, start)
        finally:
            self.short.values = ()

    def refuse(self, reason: str, kind: str = "loop") -> None:
        """Leave the version's values to Python from now on; report the reason as a line of this kind."""
        self.plans.refuse(reason, self.source.line, kind)

    def judge(self, entry: Entry, seconds: float) -> None:
        """Note that a run of compiled code took ``seconds``; give its plan up if it is not faster."""
        if not self.is_timed:
            return
        known = entry.gain.judged
        refused = entry.gain.compiled(seconds)
        if not known and entry.gain.judged:
            compiled, python = entry.gain.both
            self.site.kept, self.site.part = not refused, compiled / python if python else self.site.part
        if refused:
            entry.refuse()
            self.plans.refuse_slow(entry, not_faster(*entry.gain.both), "slower")

    def _serve(self, outcome: Outcome, values: tuple[Any, ...], start: Any) -> Entry | None:
        """Do what `serve` does, for the values that plans get."""
        ended = self.short.end_trial()
        if ended is not None:
            self.judge(*ended)
        options = config.look_again()
        ranks = communicator() is not None
        if options.jit == "off" or (ranks and options.strict and any(map(is_wrapped, values))):
            return None  # it would gather arrays
        if watchers or (ranks and options.jit == "background"):  # ranks get plans at different times
            options = replaced(options, jit="eager")
        for name in self.source.others:
            value = self.site.names.get(name, MISSING)
            values += (getattr(builtins, name, MISSING) if value is MISSING else value,)
        named = zip((*self.source.needed, *self.source.others), values, strict=False)
        modules = {n: v for n, v in named if type(v) is ModuleType} if self.source.members else {}
        is_new = not modules.items() <= self._modules.items()  # or the name was another object's
        if self._members is None or is_new or not still_hold(self._members):
            self._modules |= modules
            self._members = watched_members(self.source.members, ChainMap(self._modules, self.site.names))
            if self._members is None:
                self.refuse("the program has replaced a NumPy function")
                return None
            self._last = None
            self.plans.entries.clear()
        own = not ranks or options.distribute_above == sys.maxsize  # each rank's arrays are its own
        if not own:
            in_blocks = any(map(_may_lie_in_blocks, values))
            self._in_blocks = in_blocks if self._in_blocks is None else self._in_blocks
            if in_blocks and not self._in_blocks:
                return None  # by its own times, a rank may have given up what another one runs
        if options.jit == "eager" and self.site.was_tried and not (self._in_blocks or watchers):
            options = replaced(options, jit="background")
            for inner in self.site.every_inner():  # Python is measured without them
                inner.enabled = inner.resuming = False
        self.is_timed = options.jit != "eager"
        last = self._last if own and not watchers and start is None else None
        if last is not None and self._try_last(outcome, last, values, options):
            return last
        values = self._texts.elements(values)
        has_lists = list in map(type, values)
        if has_lists:
            if self._lists.are_a_loss(self.plans.entries.values()):
                kind = "slower" if self.plans.is_ready() else "loop"
                self.refuse("converting its lists takes longer than running it", kind)
                return None
            expected = self._lists.expected(values)
            if expected > self.site.seconds + self.site.foreseen and self.is_timed:  # the loop may take less
                self.site.put_off(expected)
                return None
            values = self._lists.elements(values)
        processors = None
        if knows_wrapped():
            from .processor_values import ProcessorValues

            processors = ProcessorValues.of(values, options.device)
            if processors is not None:
                values = processors.ordinary
                outcome.steps.insert(0, processors.back)
        entry = self.plans.find(values, start, options)
        if entry is None:
            return None
        plan = self.plans.plan_of(entry, options)
        outcome.is_brief = entry.is_brief(values, start)
        if plan is None or not self._may_run(outcome, plan):
            return entry
        may_wait = start is None and self.is_timed
        if may_wait and (entry.gain.is_pythons_turn() or (has_lists and self._lists.is_pythons_turn())):
            return entry
        if plan.checks and may_wait and not entry.gain.judged:
            self.short.begin_trial(outcome, plan, values, entry, self._members or [])
            if outcome.results:
                return entry
        begun = perf_counter()
        self._run_plan(outcome, entry, plan, values, start, options)
        if has_lists:
            self.site.compiled += self._lists.ran(perf_counter() - begun)
        if processors is not None:
            self._last = None  # a run of the same plan has its results placed, too
        elif outcome.results and own and start is None and not (has_lists or watchers):
            with LOCK:
                if plan.checks and plan.addresses(values) is not None and entry.has_sizes_of(values):
                    self._shorten(entry, plan, values)
        return entry

    @staticmethod
    def _may_run(outcome: Outcome, plan: LoopPlan) -> bool:
        """Whether no other thread has to change memory during a run, and Python's stack has room for its
        calls.  A handler of a signal may have to change memory, and the signal stops the run."""
        if plan.polls:
            outcome.is_brief = False
        if plan.frames:
            # calls of C functions count, too, up to Python 3.11: not more than there are frames
            with suppress(ValueError):  # the stack is less deep
                sys._getframe(max((sys.getrecursionlimit() - plan.frames) // 2, 0))
                return False
        return outcome.is_alone or not plan.polls

    def _shorten(self, entry: Entry, plan: LoopPlan, values: tuple[Any, ...]) -> None:
        """Have the next runs of a plan that has proved to be faster be short ones, if possible."""
        if entry.gain.judged or not self.is_timed:
            self.short.use(plan, values, entry, self._members or [])

    def _try_last(
        self, outcome: Outcome, entry: Entry, values: tuple[Any, ...], options: config.Options
    ) -> bool:
        """Run the plan that ran last and return True, if the values pass its checks."""
        plan = entry.plan
        if (
            plan is None
            or not plan.checks
            or entry.kind[0] != self.plans.surroundings(options)
            or entry.kind[1] != watched_exceptions()
        ):
            return False
        if self.is_timed and (
            entry.gain.is_pythons_turn() or (not entry.gain.judged and self.short.may_have_one(plan))
        ):
            return False  # a short run has a trial
        with LOCK:
            addresses = plan.addresses(values)
            if addresses is None or not entry.has_sizes_of(values) or not entry.serves(values, None):
                return False
            outcome.is_brief = entry.is_brief(values, None)
            if not self._may_run(outcome, plan):
                return False
            self.plans.counts.hit()
            self._run_plan(outcome, entry, plan, values, None, options, addresses)
            if outcome.results:
                self._shorten(entry, plan, values)
            return True

    def _run_plan(
        self, outcome: Outcome, entry: Entry, plan: LoopPlan, values: tuple[Any, ...], start: Any,
        options: config.Options, addresses: tuple[int, ...] | None = None,
    ) -> None:  # fmt: skip
        """Run a plan; there are no results if it fails or does not serve these sizes."""
        begun = perf_counter()
        with LOCK:
            sizes = None
            if entry.symbols or start is not None:
                sizes = plan.sizes(entry.symbols_of(values, start))
                if sizes is None:
                    return
            results = plan.run(values, options, addresses, sizes, outcome)
        if outcome.was_stopped:  # by the next time, such signals may have become rare
            self.site.put_off(0.05 + 2.0 * self.site.seconds)
            return
        if results is None:
            entry.failures += 1
            if entry.failures >= admission.FAILURES:
                entry.refuse()
                if len(self.plans.refused()) == 1:
                    reason = "it raises floating-point exceptions, or its arrays share memory"
                    note(shown(reason), kind="loop", where=(self.source.file, self.source.line))
            return
        entry.failures = 0
        took = perf_counter() - begun
        entry.ended(took * _GAIN)
        self.site.compiled += took
        self.site.runs += 1
        guards = entry.guards
        alone = guards is not None and len(guards) == len(values)  # no two names share an array
        # of lists there are no checks
        if addresses is None and start is None and alone and ListElements not in map(type, values):
            plan.remember(values, guards or ())
            self._last = entry


def ranks_may_differ() -> bool:
    """Whether each rank may choose by its own measured times what it runs: there is one rank, or no array is
    distributed in blocks.  On such arrays all ranks have to run the same."""
    return communicator() is None or config.current().distribute_above == sys.maxsize


def _may_lie_in_blocks(value: Any) -> bool:
    """Whether statements with this value may use arrays in blocks.  Lists that are compiled hold numbers."""
    if type(value) is tuple:
        return any(map(_may_lie_in_blocks, value))
    if type(value) is ModuleType:
        return is_wrapped(value)
    return type(value) in {dict, set} or not is_plain(value)


def not_faster(compiled: float, python: float) -> str:
    """Return the reason not to use compiled code, with the seconds that it and Python take, as a text."""
    times = f"{1e6 * compiled:,.1f} us compiled, {1e6 * python:,.1f} us as it is written"
    return f"compiled code is not faster than NumPy: {times}"
