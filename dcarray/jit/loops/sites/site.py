"""Sites: places in the program's code where compiled code may take over.

A site is before a loop, in each iteration of one that has begun, or at a run of statements.  The program's
own code asks it (`dcarray.jit.loops.sites.emit`), which costs one look at an attribute as long as the site is
cold.  All that plans and runs compiled code is loaded when the first site is hot.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, SimpleNamespace
from typing import Any, NamedTuple

from dcarray.core import open_door
from dcarray.ir.records import record
from dcarray.tiering.admission import FADING

__all__ = [
    "Site", "SitePlace", "SiteSource", "Watch", "constant", "sites_at", "watch_constant", "with_constants",
]  # fmt: skip


@record(frozen=True, slots=True)
class SiteSource:
    """The source of a site's statements, and their names.

    Attributes
    ----------
    source : str
        A loop, or several other statements, without indentation.
    file : str
    line, last : int
        Its place in the program.
    needed, others : tuple of str
        The variables that it reads before it binds them, and the other global names that it reads.
    live : tuple of str
        The variables that it binds and that may be read afterwards.
    counters : frozenset of str
        Of those that are needed, the variables of loops around it: ints that change from run to run.
    is_loop : bool
    returns : bool
        Whether the last statement is a ``return``.
    is_nested : bool
        Whether there is a loop in a loop.
    members : tuple of tuple of str
        The attributes of names that it reads, as ``("np", "sqrt")``.
    lists : tuple of str
        The names of the lists that they let grow or shrink.
    shared : tuple of str
        Those of its variables that are global names.
    """

    source: str
    file: str
    line: int
    last: int
    needed: tuple[str, ...]
    others: tuple[str, ...]
    live: tuple[str, ...]
    counters: frozenset[str] = frozenset()
    is_loop: bool = True
    returns: bool = False
    is_nested: bool = False
    members: tuple[tuple[str, ...], ...] = ()
    lists: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()


class SitePlace(NamedTuple):
    """A site's source, and its place among the module's sites.

    Attributes
    ----------
    source : SiteSource
    outer : int
        The number of the site around it, or -1.
    resumable : bool
        Whether a loop asks it in each iteration.
    watch : int
        The number of the innermost loop that it is, or is in, or -1.
    """

    source: SiteSource
    outer: int
    resumable: bool
    watch: int = -1


def constant(number: int) -> str:
    """Return the constant that stands for a site in a syntax tree; `with_constants` puts the site there, once
    the tree has been compiled."""
    return f"dcarray's site {number}"


def sites_at(places: Sequence[SitePlace], names: dict[str, Any]) -> list[Site]:
    """Return the sites at some places in code with these global names."""
    sites: list[Site] = []
    for source, outer, resumable, _ in places:
        sites.append(Site(source, names, None if outer < 0 else sites[outer], resumable))
    return sites


def watch_constant(number: int) -> str:
    """Return the constant that stands for the watch of an innermost loop."""
    return f"dcarray's watch {number}"


def with_constants(code: CodeType, places: Sequence[SitePlace], sites: Sequence[Site]) -> CodeType:
    """Return a code object, and those inside of it, in which sites have the places of their constants."""
    known: dict[str, Any] = {constant(k): site for k, site in enumerate(sites)}
    for place, site in zip(places, sites, strict=True):
        if place.watch >= 0:
            known.setdefault(watch_constant(place.watch), Watch()).add(site)
    return _replaced(code, known)


def _replaced(code: CodeType, sites: Mapping[str, Any]) -> CodeType:
    found = [
        sites.get(c, c) if type(c) is str else _replaced(c, sites) if type(c) is CodeType else c
        for c in code.co_consts
    ]
    return code.replace(co_consts=tuple(found))


_CHANGES = threading.Lock()


class Watch:
    """Whether the code in an innermost loop asks any site: one look at an attribute in each iteration.

    Attributes
    ----------
    on : bool
    """

    __slots__ = ("_sites", "on")

    def __init__(self) -> None:
        self.on = False
        self._sites: list[Site] = []

    def add(self, site: Site) -> None:
        """Look at a site, too: the loop's own, or one in its body."""
        self._sites.append(site)
        site.watches += (self,)
        self.look()

    def look(self) -> None:
        """Find out anew, since a site has changed."""
        self.on = any(site.resuming or (site.enabled and not site.resumable) for site in self._sites)

    def __reduce__(self) -> Any:
        """Serialise as one that is off."""
        return SimpleNamespace, (), {"on": False}


class Site:
    """A place where compiled code may take over.

    Parameters
    ----------
    source : SiteSource
    names : dict
        The global names of its code.
    outer : Site or None
        The site whose statements it is among.
    resumable : bool
        Whether a loop asks it in each iteration.

    Attributes
    ----------
    asks, asks_again : bool
        Whether the code before its statements, and that in each iteration, asks it: what the program's code
        reads.
    enabled, resuming : bool
        The same, which are also set.
    watches : tuple of Watch
        Those of the innermost loop that it is, or is in.
    known : bool
        Whether an earlier run of the program asked for a plan of it.
    kept : bool
        Whether compiled code was faster, in this run or an earlier one.
    asked : bool
        Whether this run has asked for one.
    doubtful : bool
        Whether it had no plan for some values, or an earlier run left it to Python.
    refused : str
        Why it is left to Python for good; empty if it is not.
    seconds : float
        For how long the sampler has seen its statements run, also inside of what they call.
    due : float
        For how long they have to be seen running until it asks for plans, after `put_off`.
    recent : float
        And of late: what was seen longer ago counts less.
    compiled : float
        Seconds of its runs as compiled code.
    runs : int
        And their number.
    enter : callable
        What the program calls: `ask`, or what does the same for values like those of the last run
        (`dcarray.jit.loops.sites.short_runs`).
    """

    __slots__ = (
        "_seen",
        "_server",
        "asked",
        "asks",
        "asks_again",
        "compiled",
        "doubtful",
        "due",
        "enter",
        "inner",
        "kept",
        "known",
        "names",
        "outer",
        "recent",
        "refused",
        "resumable",
        "runs",
        "seconds",
        "source",
        "watches",
    )

    def __init__(
        self, source: SiteSource, names: dict[str, Any], outer: Site | None, resumable: bool
    ) -> None:
        self.source, self.names, self.outer, self.resumable = source, names, outer, resumable
        self.watches: tuple[Watch, ...] = ()
        self.asks = self.asks_again = self.known = self.kept = self.asked = self.doubtful = False
        self.inner: list[Site] = []
        self.refused = ""
        self.seconds = self.recent = self.compiled = self.due = self._seen = 0.0
        self.runs = 0
        self._server: Any = None
        self.enter: Callable[..., tuple[Any, ...]] = self.ask
        if outer is not None:
            outer.inner.append(self)

    def __reduce__(self) -> Any:
        """Serialise as a disabled site: in another process its statements run in Python."""
        return SimpleNamespace, (), {"asks": False, "asks_again": False}

    @property
    def enabled(self) -> bool:
        return self.asks

    @enabled.setter
    def enabled(self, value: bool) -> None:
        self.asks = value
        self._changed()

    @property
    def resuming(self) -> bool:
        return self.asks_again

    @resuming.setter
    def resuming(self, value: bool) -> None:
        self.asks_again = value
        self._changed()

    def _changed(self) -> None:
        with _CHANGES:  # of the sampler's thread, too
            for watch in self.watches:
                watch.look()

    @property
    def server(self) -> Any:
        """The `dcarray.jit.loops.sites.site_server.SiteServer` with its plans, made when first asked for."""
        if self._server is None:
            self._server = open_door("sites").SiteServer(self)
        return self._server

    # ---- from the program -------------------------------------------------------------------------------
    def ask(self, *values: Any) -> tuple[Any, ...]:
        """Return the values of ``source.live`` after the statements, as the only item of a tuple; an empty
        tuple if they have to run in Python."""
        found: tuple[Any, ...] = self.server.enter(values)
        return found

    def leave(self) -> None:
        """Note that the statements have run in Python after `ask`."""
        self.server.leave()

    def resume(self, start: Any, items: range | None, *values: Any) -> tuple[Any, ...]:
        """Return what `ask` does, of the remaining iterations of a loop over a range: from ``start`` on,
        which is the loop variable now.  Both are None of a ``while``."""
        found: tuple[Any, ...] = self.server.resume(start, items, values)
        return found

    def done(self) -> bool:
        """Return whether the last call of `resume` in this thread ran all remaining iterations; the answer is
        forgotten when it has been given."""
        found: bool = self.server.done()
        return found

    def every_inner(self) -> list[Site]:
        """Return the sites inside of it, and inside of those."""
        return [*self.inner, *(one for site in self.inner for one in site.every_inner())]

    @property
    def is_alternative(self) -> bool:
        """Whether its statements are a part of a run that may have a plan: then it needs none."""
        outer = self.outer
        return outer is not None and not (outer.source.is_loop or outer.refused or outer.doubtful)

    @property
    def leaves_to_inner(self) -> bool:
        """Whether the sites inside of a loop may each have a plan, so that a slow loop needs none."""
        return not (self.source.is_nested or any(one.refused or one.doubtful for one in self.inner))

    @property
    def may_begin(self) -> bool:
        """Whether it is disabled, and its statements are no part of another site's that may have a plan."""
        return not (self.enabled or self.refused) and (self.outer is None or bool(self.outer.refused))

    # ---- from others ------------------------------------------------------------------------------------
    def count(self, now: float, seconds: float) -> None:
        """Note that its statements have been seen running for so long."""
        self.recent = self.recency(now) + seconds
        self._seen = now
        self.seconds += seconds

    def recency(self, now: float) -> float:
        """Return `recent` as it is now, having faded since its statements were last seen."""
        return self.recent * math.exp((self._seen - now) / FADING)

    def heat(self) -> None:
        """Ask for a plan as soon as the program comes by."""
        self.enabled = True
        self.resuming = self.resumable

    def put_off(self, seconds: float) -> None:
        """Ask for no plan until the sampler has seen the statements run for so long."""
        self.due = seconds
        self.enabled = self.resuming = False

    def refuse(self, reason: str) -> None:
        """Leave the statements to Python for good."""
        self.enabled = self.resuming = False
        self.enter = self.ask
        self.refused = reason
