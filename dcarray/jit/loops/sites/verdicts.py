"""The verdict on a script: whether its next run has sites, by the processor's time of earlier runs.

A script that gains nothing from compiled code runs without sites, on the floor alone.  What is remembered
belongs to its source and its arguments; one run in ten tries the other way once more.  With `DCARRAY_JIT` in
the environment there is no verdict.
"""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

from dcarray.core import config
from dcarray.core.unpatched import process_time
from dcarray.tiering import admission

if TYPE_CHECKING:
    from .site import Site

__all__ = ["OF_PROGRAM", "Verdict", "need_plans", "ran_once", "repeats"]

_KIND = "verdict"
_START = 0.06  # seconds of the processor's time that sites and the code that serves them take
_MOST_COST = 0.07  # of the time of a run, which they take at most
_PART = 0.5  # of Python's time, which compiled code is taken to need before both are measured
_LEAST_PART = 0.1  # and at least: it is measured for some values only
_GUESSES = 0.05, 0.4  # of Python's time, which statements and loops are taken to save before there are plans
_AGAIN = 10  # runs, one of which tries the other way
_NEAR = 1.5  # times the faster way's time, beyond which the other one is not tried any more
_LONGER, _LEAST = 2.0, 0.5  # a run that takes so many times as long, and seconds more, has other work


class Verdict:
    """What earlier runs of a script say about this one, and what this one says about the next.

    Parameters
    ----------
    source : str or bytes
        The script's source.
    file : str

    Attributes
    ----------
    has_sites : bool
        Whether this run has sites.
    """

    def __init__(self, source: str | bytes, file: str) -> None:
        self._folder, self._pid = config.current().cache_dir, os.getpid()
        text = source if isinstance(source, str) else source.decode("latin-1")
        self._key = "\0".join((str(sys.flags.optimize), file, *sys.argv[1:], text))
        stored = None
        if self._folder is not None and os.path.isdir(self._folder):
            from dcarray.plans import disk_store

            stored = disk_store.load_data(self._folder, _KIND, self._key, False)
        self._runs, self._with, self._without = map(float, (stored or b"0 0 0").split())
        self.has_sites = self._with <= self._without
        is_near = max(self._with, self._without) < _NEAR * min(self._with, self._without)
        if self._runs % _AGAIN == _AGAIN - 1 and is_near:
            self.has_sites = not self.has_sites

    def end(self) -> None:
        """Store the time of this run, at its end; nothing is stored in a child of a fork, or if it failed."""
        failed = hasattr(sys, "last_type")  # Python has shown its error
        if self._folder is not None and os.getpid() == self._pid and not failed:
            with nullcontext() if config.current().debug else suppress(Exception):
                from dcarray.plans import disk_store

                text = "{:.0f} {:.3f} {:.3f}".format(*self._after(process_time()))
                disk_store.save_data(self._folder, _KIND, self._key, text.encode(), False)

    def _after(self, took: float) -> tuple[float, float, float]:
        """Return the number of runs and the times with and without sites, after a run that took so long."""
        before = self._with if self.has_sites else self._without
        if before and took > _LONGER * before + _LEAST:
            return 0.0, 0.0, 0.0
        if not self.has_sites:
            return self._runs + 1, self._with, (took + self._without) / 2
        if self._runs >= 2:
            return self._runs + 1, (took + self._with) / 2, self._without
        cost = max(_START, _MOST_COST * took)  # the first run had to make all plans, and is not counted again
        expected = took - cost + _gain(not self._runs)  # without sites, until a run has been without
        return self._runs + 1, took, expected


OF_PROGRAM: list[Verdict] = []
"""The verdict on the program that runs, if there is one."""


def need_plans() -> bool:
    """Whether the program's next run will have sites, if this one ends now."""
    after = [verdict._after(process_time()) for verdict in OF_PROGRAM]
    return hasattr(sys, "last_type") or all(sited <= without for _, sited, without in after)


def repeats() -> bool:
    """Whether the program has run before, and this run need not try once more what gained nothing then."""
    return any(verdict._runs % _AGAIN for verdict in OF_PROGRAM)


def ran_once(site: Site) -> bool:
    """Whether a site's loop ran for long, or its plan was asked for meanwhile, and it did not begin again."""
    long = site.enabled and site.outer is None and site.seconds >= admission.HOT + admission.LONG_LOOP
    is_loop = site.source.source.startswith(("for ", "while "))
    return bool(site.foreseen or (is_loop and long and not site.asked)) and not (site.runs or site.refused)


def _gain(guesses: bool) -> float:
    """Return the seconds by which a run is shorter if compiled code runs from the beginning, by the times of
    this one, with guesses or without: of sites inside of each other, those of the outer one or of the inner
    ones, whichever saves more."""
    from dcarray.core.counters import settle

    from .sampler import SAMPLER

    def gain(site: Site) -> float:
        is_guessed = (guesses and site.waits) or ran_once(site)
        own = _of_site(site) or is_guessed * _GUESSES[site.source.is_loop] * site.seconds
        return max(own, sum(map(gain, site.inner)))

    settle()
    return sum([gain(site) for site in SAMPLER.sites() if site.outer is None])


def _of_site(site: Site) -> float:
    """Return the seconds that compiled code of one site saves; 0 if it is not faster."""
    part = max(site.part, _LEAST_PART) if site.part < 1.0 else _PART
    python = max(site.seconds - site.compiled, 0.0)
    return (1.0 - part) * (python + site.compiled / part) if site.kept else 0.0
