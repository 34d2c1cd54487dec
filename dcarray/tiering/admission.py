"""The policy of compiled code: when code counts as hot, when a plan is requested, and when a plan is kept.

All thresholds for plans are here: for sites (`dcarray.jit.loops.sites`) and for recordings
(`dcarray.execution.executor`).
`docs/policy.md` explains them.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any

from dcarray.core.unpatched import perf_counter

__all__ = [
    "CALL", "FADING", "FAILURES", "GIVEN_PLANNING", "GIVEN_RUNS", "GIVEN_SECONDS", "HOT", "HOT_AGAIN",
    "LONGER", "LONG_LOOP", "NANOSECOND", "NEAR", "PATIENCE", "PERIOD", "PLANNED_AT_ONCE", "PRUNED",
    "QUESTION", "RESTING", "SEEN", "SLOWER", "STRANGE", "SUSPECT", "YOUNG", "YOUNG_ALONE", "InARow",
    "KindCounts", "Measured", "Pace",
    "due_after", "operations_may_pay", "priority",
]  # fmt: skip

PERIOD = 0.005
"""Seconds between two looks of the sampler at what runs."""
RESTING = 0.05
"""And at most, once nothing new has been seen for a while."""
SLOWER = 1.1
"""The length of each rest between two looks without anything new, in terms of the last one: a look costs the
program 0.2 ms."""
HOT = 0.04
"""Seconds for which statements have been seen running until they are hot: plans of others cost more."""
YOUNG = 0.1
"""Seconds from the start of a program, or from its import of NumPy, in which nothing becomes hot: to ask for
the first plan takes nearly as long, for imports, and many programs end soon."""
YOUNG_ALONE = 1.0
"""And with one processor, where a first plan takes some seconds, and a thirteenth of the program's time."""
HOT_AGAIN = 1.0
"""And where an earlier run left them to Python: other values may do better, but most are of the same kind."""
SEEN = 0.02
"""The most seconds that one look counts: code is hot that was seen twice at least."""
NEAR = 0.25
"""The part of its time that a line without a site counts for the sites near it."""
CALL = 0.6e-6
"""Seconds from the program to a short run of compiled code and back, besides the seconds of the run."""
LONG_LOOP = 0.1
"""Seconds for which a loop that began once is seen running, after which it gets a plan in the next run."""
PRUNED = 0.2
"""Seconds for which a function has been seen at refused sites until it gets code without them, which takes a
tenth of that; code without any site costs nothing."""
FADING = 0.1
"""Seconds in which what was seen running comes to count a third."""
FAILURES = 3
"""Runs in a row that came to nothing, after which a plan is given up."""
BRIEF = 1.0
"""Seconds in Python of a run of which compiled code takes a small part: nobody waits for its end."""
FARTHER = 4
"""How many times as large a run may be as one that was brief."""
STRANGE = 8
"""Runs with values that no plan is made for, after which a site without plans is left to Python."""
GIVEN_RUNS, GIVEN_SECONDS = 16, 0.1
"""The runs of compiled code that a site has with ``jit="eager"`` in any case, and the seconds that they take
in all, until times decide as they do without this option."""
GIVEN_PLANNING = 5.0
"""And the seconds of this thread's time for plans, after which times decide, too."""

SUSPECT = 0.03
"""Seconds of recordings without plans from which on a planning process is started: it gets ready on another
core until plans are asked for."""
PATIENCE = 0.1
"""Seconds of recordings without plans from which on planning pays.  The first plans take a fifth of a second
of another core, which programs whose threads share the work (BLAS, the floor) miss, and most
programs that run so long go on for some time."""
NANOSECOND = 1e-9
"""Seconds of NumPy for an element of a recording, at least: a long one is known before it has run."""
PLANNED_AT_ONCE = 1 << 20
"""Elements of a recording from which on a plan is asked for when it is first seen."""

_MOST_SHORT = 500  # characters to plan which takes as long as any plan does at least
_SOON = 0.05  # seconds that a loop still takes, in which its plan would hardly come
_LEAST_PYTHON = 4e-6  # seconds in Python from which compiled code can be faster, with 1 us of measuring
_OPERATION = 100e-9  # seconds of Python for an operation on numbers, at most
_ROW = 12  # measurements of Python in a row
_SURE = 3  # measurements of a short time in Python
_LONG_RUN = 1e-3  # seconds in Python of which one measurement is enough until there is a plan
_TRIALS = 5  # measurements of compiled code, and of Python in turn, until compiled code is judged
_SLOW_ITERATION = 100e-6  # seconds of an iteration, of which to ask a site is a small part
_TRIALS_OF_LONG = 2  # and of what takes long
LONGER = 20e-3
"""Seconds of what takes long: to run it in Python once more, only to measure that, would be felt."""
_CHECKED = 32  # runs of compiled code until Python's time is measured once more
_CHECKED_AGAIN = 4  # times as many until the next check
_RUNS_BETWEEN_TRIALS = 8  # runs of compiled code for each in Python where it was faster in an earlier run
_CLEAR = 0.5  # of the time in Python: compiled code that takes less needs no trial
_FASTER = 0.9  # of the time in Python, which compiled code has to take at most
_MAX_KEYS = 8  # kinds of values with a plan each, of one site
_MOST_PLANS = 40  # of one site, in all
_REMEMBERED = 64  # kinds of values that are counted
_COMES_BACK = 2  # runs with a kind of values until it may get a plan
_UNUSED = 16  # runs of a site without a kind of values after which another one may take its place
_LOSS = 64  # runs with new kinds of values until these are judged
_ALLOWED, _EAGERLY = 4e-3, 0.1  # seconds of questions in vain that a site has at first, also if it is eager
QUESTION = 1e-3
"""Seconds of one question in vain that count: what a first one loads and finds out is not needed again."""
_PART = 0.02  # and of the time for which its statements are seen


def operations_may_pay(count: int) -> bool:
    """Whether compiled code may be faster than Python for ``count`` operations on numbers."""
    return count * _OPERATION >= _LEAST_PYTHON


class Measured:
    """The times of statements in Python and as compiled code.

    If compiled code is not clearly faster, both run in turn for a while, so that other load on the machine
    slows both down alike.

    Attributes
    ----------
    seconds : float
        The least time in Python.
    recent : float
        The median of the last times in Python.
    runs : int
        The number of runs in Python that were measured.
    judged : bool
        Whether compiled code is known to be faster, or not to be.
    kept : bool
        Whether compiled code was faster in an earlier run of the program: then Python is seldom timed again.
    """

    __slots__ = (
        "_compiled", "_due", "_lasts", "_python", "_rows", "_served", "judged", "kept", "runs", "seconds",
    )  # fmt: skip

    def __init__(self) -> None:
        self.seconds, self.runs = 0.0, 0
        self._rows = 0  # times in Python that are medians of runs in a row
        self.judged = self.kept = False
        self._compiled: list[float] = []
        self._python: list[float] = []  # since there is compiled code
        self._lasts: tuple[float, ...] = ()
        # runs since compiled code was judged, and that of the next check
        self._served, self._due = 0, _CHECKED

    @property
    def recent(self) -> float:
        return _typical(self._lasts) if self._lasts else 0.0

    @property
    def both(self) -> tuple[float, float]:
        """The typical seconds of compiled code and of Python, once it is judged which is faster."""
        return _typical(self._compiled), _typical(self._python or self._lasts)

    def python(self, seconds: float, in_a_row: bool = False) -> None:
        """Note a run in Python, or the median of several ones in a row."""
        self._rows += in_a_row
        self.seconds = seconds if not self.runs else min(self.seconds, seconds)
        self.runs += 1
        self._lasts = (*self._lasts[1 - _SURE :], seconds)
        if self.judged and self._served >= self._due:
            self._due *= _CHECKED_AGAIN
            if seconds < _typical(self._compiled):
                self.judged = self.kept = False
                self._compiled, self._python = [], []
        if self._compiled:
            self._python.append(seconds)

    def is_short(self) -> bool:
        """Whether a run in Python is so short that several in a row have to be measured.  Before a single
        one, other code has emptied the processor's caches."""
        if not self.runs:
            return bool(self._compiled) and self._compiled[-1] < _LONG_RUN
        return self.seconds < _LONG_RUN

    def is_known(self) -> bool:
        """Whether the time in Python is known well enough to wait for a plan."""
        return self.runs >= _SURE or self.seconds >= _LONG_RUN

    def may_pay(self) -> bool:
        """Whether compiled code may be faster than Python, by the times in Python so far."""
        return self.seconds >= _LEAST_PYTHON and self.runs >= (1 if self.seconds >= _LONG_RUN else _SURE)

    def cannot_pay(self) -> bool:
        """Whether the times in Python already show that compiled code cannot be faster."""
        return self.runs >= 8 and self.seconds < _LEAST_PYTHON

    def is_pythons_turn(self) -> bool:
        """Whether Python is to run the statements next, to be timed, although there is compiled code.

        Compiled code that was judged to be faster is now and then compared once more: when Python was
        measured, another program may have had the processor.
        """
        if self.judged and self._compiled and _typical(self._compiled) < LONGER:
            self._served += 1
            return self._served >= self._due
        if self.judged or not self._compiled or (self.kept and self._compiled[-1] >= LONGER):
            return False
        return len(self._compiled) // (_RUNS_BETWEEN_TRIALS if self.kept else 1) > len(self._python)

    def compiled(self, seconds: float) -> bool:
        """Note a run of compiled code; returns whether it is now known not to be faster than Python.

        If an earlier run of the program kept compiled code, Python's time is not known yet and is measured
        later.
        """
        if self.judged:
            return False
        self._compiled.append(seconds)
        enough = 1 if seconds >= _LONG_RUN else _SURE
        known = self.runs and (seconds >= _LONG_RUN or self._rows)
        if known and len(self._compiled) >= enough and _typical(self._compiled) < _CLEAR * self.seconds:
            self.judged = True
            return False
        trials = _TRIALS_OF_LONG if self.seconds >= LONGER else _TRIALS
        if len(self._python) < trials - (not self.kept) or len(self._compiled) < trials:
            return False
        self.judged = True
        best = 1.0 if self.kept else _FASTER
        return _typical(self._compiled) > best * _typical(self._python)


def _typical(seconds: Sequence[float]) -> float:
    """Return the median of some times: now and then one is longer, or a lucky one is shorter."""
    return sorted(seconds)[(len(seconds) - 1) // 2]


class Pace:
    """The seconds that an iteration of a running loop takes, in Python and as compiled code."""

    __slots__ = ("_from", "seconds")

    def __init__(self) -> None:
        self._from: tuple[float, int] | None = None  # a time, and the loop variable then
        self.seconds = 0.0  # of an iteration in Python; 0 as long as that is not known

    def look(self, now: float, start: int, items: range) -> None:
        """Note that an iteration of a loop over a range begins."""
        begun = self._from
        if begun is None or not items.step or (start - begun[1]) // items.step < 1:
            self._from = now, start
        else:
            self.seconds = (now - begun[0]) / ((start - begun[1]) // items.step)

    def ends_soon(self, start: int, items: range) -> bool:
        """Whether the remaining iterations will take less time than making a plan; also true while the time
        of an iteration is unknown."""
        return self.seconds * len(range(start, items.stop, items.step)) < _SOON

    def is_slow(self) -> bool:
        """Whether an iteration takes so long that each may ask its own sites."""
        return self.seconds > _SLOW_ITERATION

    def is_faster(self, seconds: float, start: int, items: range) -> bool:
        """Whether compiled code that ran the remaining iterations in ``seconds`` beat Python."""
        remaining = len(range(start, items.stop, items.step))
        return not self.seconds or seconds < _FASTER * self.seconds * remaining


def priority(recent: float, length: int) -> float:
    """Return a plan's urgency: the seconds that it would lately have served, by those that making it takes.

    Parameters
    ----------
    recent : float
        Seconds for which its statements have been seen running of late.
    length : int
        The number of characters in the text of the plan's request, with the source of functions.
    """
    return recent / (_MOST_SHORT + length)


class InARow:
    """The times of consecutive runs in Python, between which the site is not asked for compiled code."""

    __slots__ = ("_begun", "_seconds")

    def __init__(self) -> None:
        self._begun = 0.0
        self._seconds: list[float] = []

    def begin(self) -> None:
        """Note that a run begins."""
        self._begun = perf_counter()

    def end(self, now: float) -> float:
        """Note that a run has ended at the time ``now``; return the median time if it is known (one long run
        is enough), else 0.  Nothing ends if none has begun."""
        if not self._begun:
            return 0.0
        self._seconds.append(now - self._begun)
        self._begun = 0.0
        enough = len(self._seconds) >= _ROW or self._seconds[-1] >= _LONG_RUN
        return _typical(self._seconds) if enough else 0.0


def due_after(spent: float, seen: float, eagerly: bool) -> float:
    """Return for how many seconds a site's statements have to be seen running until it is asked again, given
    the seconds of questions that led to no plan, and those for which the statements have been seen; 0 if it
    may be asked at once.  ``eagerly``: whether the program waits for plans, as with ``jit="eager"``."""
    return spent / _PART if spent > (_EAGERLY if eagerly else _ALLOWED) + _PART * seen else 0.0


class KindCounts:
    """Counts of a site's runs with known and new kinds of values, which decide on plans for new kinds."""

    __slots__ = ("_admitted", "_hits", "_misses", "_new")

    def __init__(self) -> None:
        self._hits = self._misses = self._admitted = 0
        self._new: dict[Any, int] = {}

    def hit(self) -> None:
        """Count a run with a known kind of values."""
        self._hits += 1

    def admits_general(self) -> bool:
        """Whether a plan with symbolic sizes may be made for a kind that has a plan for other sizes."""
        if self._admitted >= _MOST_PLANS:
            return False
        self._admitted += 1
        return True

    def admits(self, key: Any, entries: MutableMapping[Any, Any], eagerly: bool = False) -> bool:
        """Whether a new kind of values may get a plan, at once if ``eagerly``.  An unused kind in ``entries``
        is dropped to make room."""
        if not entries:
            return True
        self._misses += 1
        if len(self._new) >= _REMEMBERED:
            self._new.clear()
        seen = self._new[key] = self._new.get(key, 0) + 1
        if (seen < _COMES_BACK and not eagerly) or self._admitted >= _MOST_PLANS:
            return False
        if len(entries) >= _MAX_KEYS:
            if self._hits + self._misses < _UNUSED * len(entries):
                return False
            entries.pop(next(iter(dict(entries))), None)
        self._new.pop(key, None)
        self._admitted += 1
        return True

    def is_a_loss(self) -> bool:
        """Whether most runs have new kinds of values, so that plans are of no use."""
        return self._misses >= _LOSS and self._misses > 4 * self._hits
