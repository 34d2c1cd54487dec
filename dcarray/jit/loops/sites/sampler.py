"""The sampler: a thread that looks every few milliseconds at what the program runs, and heats its sites.

Code that it never sees running gets no plans.  Time seen in a statement counts for all sites around it, also
those in the calling functions: a plan of a small part is ready sooner, one of a whole loop gains most.
"""

from __future__ import annotations

import atexit
import os
import sys
from _thread import get_ident
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any

from dcarray.core import cores, unpatched
from dcarray.core.uncollected import start_thread, thread_without_collections, uncollected, waiting
from dcarray.core.when_imported import when_imported
from dcarray.tiering import admission

from .site import Site

__all__ = ["SAMPLER", "Sampler", "tools"]

Chain = list[tuple[CodeType, int, int]]  # of a frame and its callers: code, line, place of the instruction
Chains = Callable[[Mapping[int, Any] | None, int, int], dict[int, Chain]]
_DEPTH = 60  # frames of a thread that are looked at
_ASLEEP = 1.0  # seconds between two looks, beyond which the process has been stopped


class Sampler:
    """The sampler's state: the code objects that have sites, and the times seen so far.

    Attributes
    ----------
    lines : dict
        Seconds for which each (file, line) was the innermost line of the program's own code.
    prune : callable or None
        Function that removes the refused sites of a code object (`dcarray.jit.loops.sites.pruning`).
    """

    def __init__(self) -> None:
        # by identity: the hash of a code object is that of all it contains
        self._sites: dict[int, tuple[CodeType, list[Site]]] = {}
        self._nearby: dict[int, list[Site]] = {}
        self.lines: dict[tuple[str, int], float] = {}
        self.prune: Callable[[CodeType, list[Site]], None] | None = None
        self._vain: dict[int, tuple[float, float]] = {}  # see `_note_refused`
        self._pid = 0
        self._pause = admission.PERIOD  # until the next look
        self._begin()
        when_imported("numpy", self._begin)

    def _begin(self) -> None:
        self._begun = unpatched.perf_counter()

    def add(self, code: CodeType, sites: Iterable[Site]) -> None:
        """Watch a code object with its sites, outer ones first."""
        self._sites[id(code)] = code, [*sites]
        self._nearby.clear()
        self._pause = admission.PERIOD
        if self._pid != os.getpid():  # threads do not survive a fork
            self._pid = os.getpid()
            with suppress(RuntimeError):  # no thread can be started
                start_thread(self._watch, *tools())

    def add_copy(self, copy: CodeType, code: CodeType) -> None:
        """Watch ``copy``, a copy of ``code``, for the same sites; do nothing if ``code`` has none."""
        if id(code) in self._sites:
            self.add(copy, self._sites[id(code)][1])

    def sites(self) -> list[Site]:
        """Return all sites that are watched."""
        return list(dict.fromkeys(site for _, sites in list(self._sites.values()) for site in sites))

    @thread_without_collections
    def _watch(self, rest: Callable[[float], None], chains: Chains) -> None:
        own = get_ident()
        young = admission.YOUNG if cores.available() > 1 else admission.YOUNG_ALONE
        last = unpatched.perf_counter()
        while True:
            waiting(rest, self._pause)
            now = unpatched.perf_counter()
            took, last = now - last, now
            self._pause = min(self._pause * admission.SLOWER, admission.RESTING)
            for chain in chains(self._sites, own, _DEPTH).values():
                self._note_line(*chain[0][:2], min(took, _ASLEEP))
                if now - self._begun >= young:
                    self._look(chain, min(took, admission.SEEN))
                    self._note_refused(chain[0][0], min(took, _ASLEEP))

    def _look(self, chain: Chain, seconds: float) -> None:
        """Add the time that one thread was seen running to the sites around its current lines."""
        now = unpatched.perf_counter()
        code, line, _ = chain[0]
        if not any(
            s.source.line <= line <= s.source.last
            for s in self._sites[id(code)][1]
            if not (s.source.is_loop or s.refused or s.doubtful or s.is_alternative)
        ):
            for site in self._near(code):
                self._count(site, now, seconds * admission.NEAR)
        around = [
            site
            for code, line, _ in reversed(chain)
            for site in self._sites[id(code)][1]
            if site.source.line <= line <= site.source.last and not (site.refused or site.is_alternative)
        ]
        for site in dict.fromkeys(around):  # those of a function that calls itself count once
            self._count(site, now, seconds)

    def _note_refused(self, code: CodeType, seconds: float) -> None:
        """Have refused sites removed from a code object that is often seen: soon at first, then less
        often."""
        sites = self._sites[id(code)][1]
        if self.prune is None or not any(site.refused for site in sites):
            return
        seen, limit = self._vain.get(id(code), (0.0, admission.PRUNED))
        self._vain[id(code)] = seen + seconds, limit
        if seen + seconds >= limit:
            self._vain[id(code)] = 0.0, 2 * limit
            self.prune(code, sites)

    def _note_line(self, code: CodeType, line: int, seconds: float) -> None:
        where = (code.co_filename, line)
        self.lines[where] = self.lines.get(where, 0.0) + seconds

    def _near(self, code: CodeType) -> list[Site]:
        """Return the sites at runs of statements, not loops, in a code object and in its possible callees.

        The sampler mostly gets the interpreter's lock where the program releases it, such as in a call of a
        random number generator, and seldom sees the statements before and after that.
        """
        nearby = self._nearby.get(id(code))
        if nearby is None:
            names = {*code.co_names, code.co_name}
            every = [c for c, _ in list(self._sites.values())]  # at once: imports of other threads add some
            codes = [c for c in every if c.co_name in names and c.co_filename == code.co_filename]
            nearby = [site for c in codes for site in self._sites[id(c)][1] if not site.source.is_loop]
            self._nearby[id(code)] = nearby
        return [site for site in nearby if not (site.refused or site.is_alternative)]

    def _count(self, site: Site, now: float, seconds: float) -> None:
        before = site.seconds
        site.count(now, seconds)
        hot = admission.HOT_AGAIN if site.doubtful else admission.HOT
        if before < hot <= site.seconds:
            self._pause = max(self._pause / 2, admission.PERIOD)
            site.heat()
        elif before < site.due <= site.seconds:
            site.heat()


def tools() -> tuple[Callable[[float], None], Chains]:
    """Return the function that waits for given seconds between two looks, and the one that looks."""
    from dcarray.core import native

    if not native.BUILT:
        return unpatched.sleep, chains_of_threads
    from dcarray._native.extension import chains, end_rest, rest

    atexit.register(end_rest)
    return rest, chains


def chains_of_threads(sites: Mapping[int, Any] | None, own: int, depth: int) -> dict[int, Chain]:
    """Return what `chain_of` gives for each thread but ``own`` that has frames with ``sites``.

    No reference to a frame is kept: it would keep all variables of the function alive after its return, and
    so memory that the program means to free.  The C module lets no other thread run in between.
    """
    # Before Python 3.12 an allocation may collect garbage, and so run code and let other threads go on: one
    # that returns from a function while its frame object is being made leaves that with memory that is no
    # frame.
    with uncollected():
        frames = sys._current_frames().items()
        return {one: c for one, top in frames if one != own and (c := chain_of(top, sites, depth))}


def chain_of(top: FrameType, sites: Mapping[int, Any] | None, depth: int) -> Chain:
    """Return the code objects with sites, or all, of a frame and its callers, innermost first."""
    chain: Chain = []
    frame: FrameType | None = top
    while frame is not None and depth > 0:
        if sites is None or id(frame.f_code) in sites:
            chain.append((frame.f_code, frame.f_lineno or _line_before(frame), frame.f_lasti))
        frame = frame.f_back
        depth -= 1
    return chain


def _line_before(frame: FrameType) -> int:
    """Return the last line before a frame's current instruction, such as a jump back, that has no line."""
    lines = [line for start, _, line in frame.f_code.co_lines() if line and start <= frame.f_lasti]
    return lines[-1] if lines else 0


SAMPLER = Sampler()
if hasattr(os, "register_at_fork"):

    def _restart() -> None:
        if SAMPLER._pid and SAMPLER._sites:
            SAMPLER.add(*next(iter(SAMPLER._sites.values())))

    os.register_at_fork(after_in_child=_restart)
