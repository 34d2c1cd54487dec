"""Runs many programs in one process, with sites that begin to ask at random times; the fast way to judge.

A program runs twice in a process that has loaded all: as it is, and with sites.  The process is forked from
this one, and forked again after an end or a time-out.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import pickle
import random
import re
import signal
from collections import Counter
from collections.abc import Iterator
from functools import partial
from types import CodeType
from typing import Any

import dcarray as dc
from dcarray.core.tools import unseen
from dcarray.jit.loops.sites.modules import compile_module
from dcarray.jit.loops.sites.site import Site
from dcarray.lowering.cpu.llvm.object_code import engine

from .running import difference_of, limit_memory
from .writer import HEAD, program

__all__ = ["Together"]

Counts = tuple[int, ...]
KINDS = "programs", "runs", "ran", "asked", "sites"
LIMITS = 2, 15  # seconds of the processor: of a program as it is, and of it with sites
UNSTEADY = "not the same every time, or too long"
PROGRAMS = 300  # of one process: it keeps all plans


def _sites(code: CodeType) -> Iterator[Site]:
    for one in code.co_consts:
        if isinstance(one, Site):
            yield one
        elif isinstance(one, CodeType):
            yield from _sites(one)


class _Sometimes:
    """What is true in some iterations of loops, in threads that no tool sees."""

    def __init__(self, chosen: random.Random) -> None:
        self._chosen = chosen

    def __bool__(self) -> bool:
        return self._chosen.random() < 0.3 and bool(unseen())


def _output(source: str, compiled: bool) -> tuple[str, Counts]:
    """Run a program; return what it printed, and its numbers of compiled runs, of sites that ran compiled
    or are inside of one that did, of sites that asked, and of all sites."""
    head, _, rest = source.partition(HEAD)
    file = f"<{head.strip()}>"
    linecache.cache[file] = len(rest), None, rest.splitlines(True), file
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(_HEAD, names)
    signal.setitimer(signal.ITIMER_PROF, LIMITS[compiled])
    code = (
        compile_module(rest, file, names, True)
        if compiled
        else compile(rest, file, "exec", dont_inherit=True)
    )
    sites = list(dict.fromkeys(_sites(code)))
    chosen = random.Random(head)
    often = chosen.choice([0.3, 0.8, 1.0])
    sometimes = _Sometimes(chosen)
    engine.compile_object = _QUICKLY if chosen.random() < 0.7 else _OPTIMISED

    def settle() -> None:
        for site in sites:
            if not site.refused:
                site.enabled = chosen.random() < often
                site.resuming = site.resumable and chosen.random() < 0.8
                if site.resuming:
                    site.asks_again = sometimes

    names |= {"settle": settle, "hot": lambda n: range(min(n, 3))}  # sites need not be hot
    if chosen.random() < 0.5:
        settle()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(code, names)
        except BaseException as error:
            print("uncaught", type(error).__name__, error)
        for reason in {site.refused for site in sites}:
            if _FAULT.match(reason):
                print("a site is given up since", reason)
    ran = {site for site in sites if site.runs}
    for site in sites:  # the outer ones first
        if site.outer in ran:
            ran.add(site)
    asked = sum(site.asked or bool(site.refused) or site in ran for site in sites)
    return printed.getvalue(), (sum(site.runs for site in sites), len(ran), asked, len(sites))


_FAULT = re.compile(r"[A-Z]\w*(Error|Exception): ")  # an error of the package's own
_OPTIMISED = engine.compile_object
_QUICKLY = partial(_OPTIMISED, optimised=False)
_HEAD = compile(HEAD, "<the beginning of every program>", "exec", dont_inherit=True)


def _judged(source: str) -> Iterator[tuple[str | None, Counts]]:
    """Run a program in both ways; yield what is known after each: a difference, as a text or None, and the
    counts of `_output`."""
    want, none = _output(source, False)
    yield None, none
    got, counts = _output(source, True)
    if got != want and difference_of(want, _output(source, False)[0]) is not None:
        yield UNSTEADY, counts
    else:
        yield difference_of(want, got), counts


class Together:
    """The process that runs programs.

    Attributes
    ----------
    counts : Counter of str
        What ran, by kind.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._done = 0
        self._child: tuple[int, int, int] | None = None
        with dc.options(jit="eager", cache_dir=None):
            for seed in range(20):  # so that all modules are loaded
                _output(program(seed, "language"), True)
        signal.setitimer(signal.ITIMER_PROF, 0)

    def __str__(self) -> str:
        programs, runs, ran, asked, sites = (f"{self.counts[kind]:,}" for kind in KINDS)
        return (
            f"compiled code ran {runs} times, in {programs} programs; of {sites} sites {asked} asked"
            f" for plans, and {ran} ran compiled"
        )

    def _started(self) -> tuple[int, int, int]:
        (inner, to), (come, back) = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                os.setpgid(0, 0)  # with the processes that programs start
                os.close(to), os.close(come)
                os.register_at_fork(after_in_child=partial(os.close, back))
                os.dup2(os.open(os.devnull, os.O_RDWR), 2)
                limit_memory()
                with open(inner, "rb") as given, open(back, "wb") as found:
                    while True:
                        source = pickle.load(given)
                        signal.alarm(5 * sum(LIMITS))  # where it waits
                        with dc.options(jit="eager", cache_dir=None):
                            for part in _judged(source):
                                pickle.dump(part, found)
                                found.flush()
                        linecache.clearcache()
            os._exit(0)
        os.close(inner), os.close(back)
        return child, to, come

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            child, to, come = self._child
            os.close(to), os.close(come)
            self._child, self._done = None, 0
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)

    def differences(self, source: str, only: tuple[str, str] | None = None) -> Iterator[tuple[str, str, str]]:
        """Run a program, and yield ``("together", "eager", text)`` if it differs."""
        self._child = self._child or self._started()
        _, to, come = self._child
        text: str | None = UNSTEADY
        try:
            os.write(to, pickle.dumps(source))
            with open(come, "rb", closefd=False, buffering=0) as found:
                text, _ = pickle.load(found)
                text = text or "the process ended, or ran too long"
                text, counts = pickle.load(found)
            if only is None:
                self.counts.update(dict(zip(KINDS, (counts[0] > 0, *counts), strict=True)))
        except (EOFError, OSError, pickle.UnpicklingError):
            self.close()
        self._done += 1
        if self._done >= PROGRAMS:
            self.close()
        if text == UNSTEADY:
            raise ValueError(text)
        if text is not None:
            yield "together", "eager", text
