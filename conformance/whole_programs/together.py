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
from collections.abc import Iterator
from types import CodeType
from typing import Any

import dcarray as dc
from dcarray.jit.loops.sites.modules import compile_module
from dcarray.jit.loops.sites.site import Site

from .running import difference_of, limit_memory
from .writer import HEAD

__all__ = ["Together"]

LIMIT = 15  # seconds of the processor of a program in both ways
UNSTEADY = "not the same every time, or too long"
PROGRAMS = 300  # of one process: it keeps all plans


def _sites(code: CodeType) -> Iterator[Site]:
    for one in code.co_consts:
        if isinstance(one, Site):
            yield one
        elif isinstance(one, CodeType):
            yield from _sites(one)


def _output(source: str, compiled: bool) -> tuple[str, int]:
    """Run a program, and return what it printed, and how many compiled runs it had."""
    head, _, rest = source.partition(HEAD)
    file = f"<{head.strip()}>"
    linecache.cache[file] = len(rest), None, rest.splitlines(True), file
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(_HEAD, names)
    code = (
        compile_module(rest, file, names, True)
        if compiled
        else compile(rest, file, "exec", dont_inherit=True)
    )
    sites = list(dict.fromkeys(_sites(code)))
    chosen = random.Random(head)
    often = chosen.choice([0.4, 1.0, 1.0])

    def settle() -> None:
        for site in sites:
            if not site.refused:
                site.enabled = chosen.random() < often
                site.resuming = site.resumable and chosen.random() < often

    names["settle"] = settle
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
    return printed.getvalue(), sum(site.runs for site in sites)


_FAULT = re.compile(r"[A-Z]\w*(Error|Exception): ")  # an error of the package's own
_HEAD = compile(HEAD, "<the beginning of every program>", "exec", dont_inherit=True)


def _judged(source: str) -> Iterator[tuple[str | None, int]]:
    """Run a program in both ways; yield what is known after each: a difference, as a text or None, and how
    many compiled runs there were."""
    want, _ = _output(source, False)
    yield None, 0
    got, runs = _output(source, True)
    if got != want and difference_of(want, _output(source, False)[0]) is not None:
        yield UNSTEADY, runs
    else:
        yield difference_of(want, got), runs


class Together:
    """The process that runs programs, and how many compiled runs they had.

    Attributes
    ----------
    runs : int
    """

    def __init__(self) -> None:
        self.runs = self._done = 0
        self._child: tuple[int, int, int] | None = None
        with dc.options(jit="eager", cache_dir=None):
            _judged(
                f"# warm{HEAD}\ndef f(n):\n    s = 0\n    for i in range(n): s += i\nf(9); settle(); f(9)"
            )

    def _started(self) -> tuple[int, int, int]:
        (inner, to), (come, back) = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                os.close(to), os.close(come)
                os.dup2(os.open(os.devnull, os.O_RDWR), 2)
                limit_memory()
                with open(inner, "rb") as given, open(back, "wb") as found:
                    while True:
                        source = pickle.load(given)
                        signal.setitimer(signal.ITIMER_PROF, LIMIT)
                        signal.alarm(10 * LIMIT)  # where it waits
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
            os.waitpid(child, 0)

    def differences(self, source: str, only: tuple[str, str] | None = None) -> Iterator[tuple[str, str, str]]:
        """Run a program, and yield ``("together", "eager", text)`` if it differs."""
        self._child = self._child or self._started()
        _, to, come = self._child
        text: str | None = UNSTEADY
        try:
            os.write(to, pickle.dumps(source))
            with open(come, "rb", closefd=False, buffering=0) as found:
                text, runs = pickle.load(found)
                if text is None:
                    text = "the process ended, or ran too long"
                    text, runs = pickle.load(found)
            self.runs += runs
        except (EOFError, OSError, pickle.UnpicklingError):
            self.close()
        self._done += 1
        if self._done >= PROGRAMS:
            self.close()
        if text == UNSTEADY:
            raise ValueError(text)
        if text is not None:
            yield "together", "eager", text
