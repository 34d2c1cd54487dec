"""Sites: places in the program's code where compiled code may take over.

A site is before a loop, in each iteration of a loop, or before a run of statements.  The program's
own code asks it (`dcarray.jit.loops.sites.emit`), which costs one look at an attribute as long as the site is
cold.  The modules that plan and run compiled code are imported when the first site is hot.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from sys import _getframe
from threading import get_ident
from types import MethodType, SimpleNamespace
from typing import Any

from dcarray.core import config, open_door
from dcarray.core.faults import passed_over
from dcarray.core.interrupts import hold
from dcarray.core.tools import unseen
from dcarray.core.unpatched import perf_counter
from dcarray.lowering.runtime.forks import HELD, held_in_forks
from dcarray.tiering.admission import FADING, GIVEN_PLANNING, GIVEN_RUNS, GIVEN_SECONDS

from .asking import asking_for, has_numpy
from .headers import Headers
from .outcome import Outcome
from .site_source import SitePlace, SiteSource
from .watch import Watch

__all__ = ["Site", "sites_at"]


def sites_at(places: Sequence[SitePlace], names: dict[str, Any]) -> list[Site]:
    """Return new sites for these places, in code with the global names ``names``."""
    sites: list[Site] = []
    for source, outer, resumable, _ in places:
        sites.append(Site(source, names, None if outer < 0 else sites[outer], resumable))
    return sites


_CHANGES = held_in_forks(threading.RLock())
_SERVED: set[int] = set()  # threads in which a server finds a plan: it may call accelerated code itself
_MOST_COPIES = 1000  # questions by copies of a site's code that run with other global names
_KINDS = 6  # of values, which the program calls short runs for without asking


class Site:
    """A place where compiled code may take over.

    Parameters
    ----------
    source : SiteSource
    names : dict
        The global names of its code.
    outer : Site or None
        The site whose statements contain it; None: there is no such site.
    resumable : bool
        See `SitePlace`.

    Attributes
    ----------
    asks, asks_again : object
        Whether the program's code is to call `enter` before the statements, and `resume` in each iteration;
        the program's code reads these.  They are `False`, or what is true in threads that no tool sees.
    enabled, resuming : bool
        The same without regard to tools, as properties that can be set.
    watches : tuple of Watch
        The watches of the innermost loop that it is at or in.
    known : bool
        Whether an earlier run of the program asked for a plan of the site.
    kept : bool
        Whether compiled code was faster, in this run or an earlier one.
    part : float
        The time of compiled code in terms of Python's, once both have been measured.
    asked : bool
        Whether this run of the program has asked for a plan.
    foreseen : float
        Seconds for which an earlier run of the program saw a loop running that did not begin again.
    doubtful : bool
        Whether there was no plan for some values, or an earlier run of the program left the site to Python.
    refused : str
        The reason why its statements are left to Python for good; empty if they are not.
    seconds : float
        For how many seconds the sampler has seen the statements run, with the functions that they call.
    due : float
        The value of ``seconds`` at which the site asks for plans, after `put_off`.
    recent : float
        Like ``seconds``, but time seen longer ago counts less.
    compiled, planned : float
        Seconds of all runs of compiled code, with the conversion of their lists, and of all plans for which
        the program has waited.
    runs : int
        The number of these runs.
    notes : set of int
        The threads that `note` was called in, until `noted` is.
    resume : callable
        The function that the program calls in each iteration, with its loop variable and range first.
    enter : callable
        The function that the program calls before the statements: `asking`, or a short run for values like
        those of the last run (`dcarray.jit.loops.sites.short_runs`).
    """

    __slots__ = (
        "_copies", "_done", "_held", "_seen", "_server", "_short", "asked", "asks", "asks_again", "compiled",
        "doubtful", "due", "enter", "foreseen", "header", "inner", "kept", "known", "names", "notes", "outer",
        "part", "planned", "range", "recent", "refused", "resumable", "resume", "runs", "seconds", "source",
        "watches",
    )  # fmt: skip

    Unbound = NameError  # the program may have another thing of this name

    def __init__(
        self, source: SiteSource, names: dict[str, Any], outer: Site | None, resumable: bool
    ) -> None:
        self.source, self.names, self.outer, self.resumable = source, names, outer, resumable
        self.watches: tuple[Watch, ...] = ()
        self.asks: object = False
        self.asks_again: object = False
        self.known = self.kept = self.asked = self.doubtful = False
        self.inner: list[Site] = []
        self.notes: set[int] = set()
        self.header = Headers()
        self._held: dict[int, Any] = {}
        self.seconds = self.recent = self.compiled = self.planned = self.due = self._seen = 0.0
        self.foreseen = 0.0
        self.refused, self.runs, self.part, self._copies = "", 0, 1.0, 0
        self._server: Any = None
        self._done: set[int] = set()  # threads in which `resume` has done all iterations
        self.enter: Callable[..., tuple[Any, ...]] = self.ask
        self.resume = self.enter
        self._short: list[Any] = []  # the functions of `prefer`, the last one first
        if outer is not None:
            outer.inner.append(self)

    def __reduce__(self) -> Any:
        """Pickle as a disabled site, so that in another process its statements run in Python."""
        return SimpleNamespace, (), {"asks": False, "asks_again": False, "notes": (), "header": ()}

    @property
    def enabled(self) -> bool:
        return self.asks is not False

    @enabled.setter
    def enabled(self, value: bool) -> None:
        self.asks = unseen() if value and not self.refused and has_numpy(self.heat) else False
        if self.asks is not False and self.enter == self.ask:
            self.enter = self.asking("enter")
        self._changed()

    @property
    def resuming(self) -> bool:
        return self.asks_again is not False

    @resuming.setter
    def resuming(self, value: bool) -> None:
        self.asks_again = unseen() if value and not self.refused and has_numpy(self.heat) else False
        if self.asks_again is not False:
            self.resume = self.asking("resume")
        self._changed()

    def _changed(self) -> None:
        with _CHANGES:  # of the sampler's thread, too
            for watch in self.watches:
                watch.look()

    @property
    def server(self) -> Any:
        """The site's server (`dcarray.jit.loops.sites.site_server.SiteServer`), made at the first access."""
        if self._server is None:
            if not self.known and config.current().jit == "background":
                from dcarray.plans.client import CLIENT

                CLIENT.start()  # it needs longer to get ready than these modules need to load
            self._server = open_door("sites").SiteServer(self)
        return self._server

    # ---- from the program -------------------------------------------------------------------------------
    def ask(self, *values: Any) -> tuple[Any, ...]:
        """Run the statements by compiled code if possible.  Return ``(results,)``, where ``results`` are the
        values of ``source.live`` after them; an empty tuple if the statements have to run in Python: also
        where their code object runs with other global names than its module's."""
        held = hold(True)
        try:
            return self._guarded("enter", (values,))
        finally:
            del held

    def asking(self, step: str) -> Callable[..., tuple[Any, ...]]:
        """Return what the program calls for a step that takes its values: it may have finalizers."""
        return MethodType(asking_for(step, len(self.source.needed)), self)

    def leave(self) -> None:
        """Note that the statements have run in Python, after `ask` returned an empty tuple."""
        now, held = perf_counter(), hold(True)
        try:
            self._guarded("leave", (now,))
        finally:
            del held

    def done(self) -> bool:
        """Return whether the last `resume` in this thread ran all remaining iterations; then False again."""
        was = get_ident() in self._done
        self._done.discard(get_ident())
        return was

    def _guarded(self, step: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Have the server do a step, and return its results.  This is the border between the program and
        compiled code: no error of this package's own goes through.  The program has called the caller, which
        holds signals and collections: no handler and no finalizer runs while values have been read and
        results are not stored.  In a fork nothing is done, nor by what the server itself calls."""
        thread = get_ident()
        is_copy = _getframe(2).f_globals is not self.names
        if HELD or thread in _SERVED or is_copy:
            self._copies += is_copy
            if self._copies > _MOST_COPIES:  # each takes as long as a few statements
                self.refuse("its code runs with other global names, too")
            return ()
        _SERVED.add(thread)
        outcome = Outcome()
        try:
            getattr(self.server, step)(outcome, *args)
        except Exception as error:
            if outcome.is_final and not outcome.results:
                raise
            self.failed(error)
        finally:
            _SERVED.discard(thread)
            if outcome.results and step == "resume":
                self._done.add(thread)
        return outcome.results

    def failed(self, error: Exception) -> tuple[()]:
        """Leave the statements to Python for good after an error in compiled code, or in what prepares it;
        raise it if it is the program's, or for debugging.  Later runs may have more memory, or no other
        thread that makes a syntax tree at the same time: CPython 3.11 fails there."""
        if not isinstance(error, MemoryError | SystemError):
            reason = passed_over(error, (self.source.file, self.source.line))
            self.refuse(reason)
            with suppress(Exception):
                self.server.refuse(reason)
        return ()

    def note(self) -> None:
        """Note that compiled code ended a loop as its condition does, or that a name is not bound."""
        self.notes.add(get_ident())

    def noted(self) -> bool:
        """Return whether `note` was called in this thread; then False again."""
        was_noted = get_ident() in self.notes
        self.notes.discard(get_ident())
        return was_noted

    def unbound(self) -> None:
        """Note that a name is not bound, and ask the site less often."""
        self.note()
        self.put_off(1.0 + 2.0 * self.seconds)

    def hold(self, results: tuple[Any, ...]) -> tuple[Any, ...]:
        """Hold what compiled code returned until `held` is called, and return the ``results``."""
        if results:
            self._held[get_ident()] = results[0][-1]
        return results

    def held(self) -> Any:
        """Return what `hold` holds for this thread."""
        return self._held.pop(get_ident())

    def every_inner(self) -> list[Site]:
        """Return all sites in the site's statements, at any depth."""
        return [*self.inner, *(one for site in self.inner for one in site.every_inner())]

    @property
    def is_alternative(self) -> bool:
        """Whether its statements are part of a longer run that may have a plan, so that it needs none."""
        outer = self.outer
        return outer is not None and not (outer.source.is_loop or outer.refused or outer.doubtful)

    @property
    def leaves_to_inner(self) -> bool:
        """Whether all loops directly inside may still be compiled by themselves, so that it need not be."""
        return not (self.source.is_nested or any(one.refused or one.doubtful for one in self.inner))

    @property
    def was_tried(self) -> bool:
        """Whether it has had what each site has with ``jit="eager"``, so that times decide from now on."""
        return (self.runs >= GIVEN_RUNS and self.compiled >= GIVEN_SECONDS) or self.planned >= GIVEN_PLANNING

    @property
    def may_begin(self) -> bool:
        """Whether it is disabled but not put off, and its statements are not part of another site's that may
        have a plan."""
        idle = not (self.enabled or self.refused or self.due > self.seconds)
        return idle and (self.outer is None or bool(self.outer.refused))

    # ---- from others ------------------------------------------------------------------------------------
    def count(self, now: float, seconds: float) -> None:
        """Note that the statements have been seen running for ``seconds`` more, at the time ``now``."""
        self.recent = self.recency(now) + seconds
        self._seen = now
        self.seconds += seconds

    def recency(self, now: float) -> float:
        """Return `recent` at the time ``now``: it decays while the statements are not seen running."""
        return self.recent * math.exp((self._seen - now) / FADING)

    def heat(self) -> None:
        """Activate the site: it asks for a plan when the program reaches it next."""
        self.enabled = True
        self.resuming = self.resumable

    def prefer(self, run: Any) -> None:
        """Have the program call a short run, then those for the kinds of values that came before, and `ask`
        if none has a result.  The caller holds `dcarray.core.processes.LOCK`."""
        runs = [run, *[one for one in self._short if one is not run][: _KINDS - 1]]
        for one, after in zip(runs, [*runs[1:], self.ask], strict=True):
            one.otherwise(after)
        self._short = runs
        self.enter = run

    @property
    def waits(self) -> bool:
        """Whether plans have been asked for, of which it is not known whether they are faster."""
        return not self.kept and self._server is not None and self._server.waits

    def release(self) -> None:
        """Leave the statements to Python at the program's end, and keep none of its objects alive."""
        self.enabled = self.resuming = False
        self.names, self._server, self.enter, self._short, self._held = {}, None, self.ask, [], {}

    def put_off(self, seconds: float) -> None:
        """Have the site ask for no plan until its statements were seen running for ``seconds`` in all."""
        self.due = seconds
        self.enabled = self.resuming = False

    def refuse(self, reason: str) -> None:
        """Leave the statements to Python for good, for the reason ``reason``."""
        self.refused = reason
        self.enabled = self.resuming = False
        self.enter = self.ask
