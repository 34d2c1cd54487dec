"""Calls of accelerated functions that are left to NumPy, since nothing is to be had from them.

Where all that a function asks for is learned to be NumPy's (`alone`), an accelerated call gives what the
function gives as it is written, to the bit, and takes longer: for its entry and exit, and for each call that
asks what its arrays are.  Not always: products and operators on small arrays take less than NumPy's.  So a
call of which nothing has been recorded, and no loop compiled, several times in a row is tried both ways in
turns, and goes the shorter one from then on.  After a while it is tried again.

This is decided by a clock, as no count says which way is shorter, and for the kind of a call: the types of
its arguments, their dtypes and, roughly, their sizes.  No result depends on it, since both ways are NumPy's.
It is not for calls with arrays of ours among the arguments, or with objects that might hold some, for arrays
on whose memory something is pending, inside of other accelerated calls, under ``eager_below=0`` or
``strict``, and not where several ranks run a program.
"""

from __future__ import annotations

from contextlib import suppress
from types import CodeType, FunctionType, ModuleType
from typing import Any

from dcarray.core.counters import counters
from dcarray.core.native import BUILT
from dcarray.core.processes import communicator
from dcarray.jit.loops.globals import original
from dcarray.tiering.call_sites import tally

__all__ = ["Variant", "Variants", "work"]

CALM = 5  # calls in a row of which little is to be had
ROUNDS = 7  # in which both ways are tried, at most
FAR = 1.5  # times as long: it counts twice
LIMIT = 1.0  # what regions have saved of a call's time, at most, for both ways to be tried
SPAN, SPANS = 64, 8192  # calls until they are tried again, at first and at most
RESTS = 128  # calls that are not looked at, at most, after so many that have recorded something
MOST = 64  # kinds of calls of a function
# What arrays of ours have, and NumPy's have not.
_OURS = frozenset(("dcarray", "gather", "layout", "local"))


def call_signature(args: tuple[Any, ...], kwargs: dict[str, Any], /) -> int | None:
    """A number that tells calls apart by what their arguments are; None if one is of another kind, or options
    say that all is to be recorded."""
    return None


if BUILT:  # else all calls are ours
    from dcarray._native.extension import call_signature


def work() -> tuple[tuple[int, int, int, int], float]:
    """What has been done so far that NumPy may not do as well, loops and regions that wait for a plan among
    it; and nanoseconds that it would have taken for what regions have done."""
    return (counters.loops, counters.waiting, tally.rounded, tally.unplanned), tally.theirs


class Variant:
    """A kind of call, and which way it goes.

    Attributes
    ----------
    plain : bool
        Is it NumPy's, as the function is written?
    left : int
        For so many calls, without looking.
    """

    __slots__ = ("_calm", "_lost", "_ours", "_rest", "_span", "_won", "left", "plain")

    def __init__(self) -> None:
        self.plain = False
        self.left = 0
        self._calm = self._won = self._lost = 0
        self._ours = -1.0  # seconds of the last call that was ours, while both are tried
        self._rest, self._span = 1, SPAN

    def tries(self) -> bool:
        """Is the next call one to be tried NumPy's way?"""
        return self._ours >= 0.0

    def took(self, seconds: float, before: Any, plain: bool = False, may: bool = True) -> None:
        """A call is over.

        Parameters
        ----------
        seconds : float
        before : tuple
            `work`, when it began.
        plain : bool, optional
            Did it go NumPy's way?
        may : bool, optional
            May calls go that way?
        """
        ours, self._ours = self._ours, -1.0
        done, theirs = work()
        if done != before[0] or not may or 1e-9 * (theirs - before[1]) > LIMIT * seconds:
            self.left, self.plain = self._rest, False
            self._rest = min(2 * self._rest, RESTS)
            self._calm = self._won = self._lost = 0
            self._span = SPAN
        elif not plain and self._calm < CALM:
            self._calm += 1
        elif not plain:
            self._ours, self._rest = seconds, 1
        elif ours >= 0.0:  # else another thread's call has come in between
            self._won += seconds < ours
            self._lost += (seconds >= ours) + (seconds >= FAR * ours)
            if max(self._won, self._lost) > ROUNDS // 2:
                self.plain, self.left = self._won > self._lost, self._span
                self._span = min(2 * self._span, SPANS)
                self._won = self._lost = 0


class Variants:
    """The kinds of calls of a function."""

    def __init__(self, function: FunctionType) -> None:
        self._function = function
        self._known: dict[int, Variant] = {}
        self._code: CodeType | None = None
        self._may = False

    def kind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Variant | None:
        """What is known of such calls; None if they may not go NumPy's way."""
        mark = call_signature(args, kwargs)
        if mark is None:
            return None
        way = self._known.get(mark)
        if way is None:
            if len(self._known) >= MOST:
                self._known.clear()
            way = self._known[mark] = Variant()
        return way

    def may(self) -> bool:
        """Does the function, as far as names tell, ask for nothing that arrays of NumPy's do not have?"""
        code = original(self._function)
        if code is not self._code:
            self._may = communicator() is None and not _asks(self._function, set())
            self._code = code
        return self._may


def _asks(function: FunctionType, seen: set[FunctionType]) -> bool:
    """Does a function, or one of its module that it calls by name, ask for something of dcarray's?"""
    seen.add(function)
    code, names = original(function), function.__globals__
    asked = _all_names(code)
    values = [names[name] for name in asked if name in names]
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # it is empty
            values.append(cell.cell_contents)
    if not asked.isdisjoint(_OURS) or asked >= {"random", "block"}:
        return True
    for value in values:
        where = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(where, str) and where.partition(".")[0] == "dcarray":
            return True
        if (
            type(value) is FunctionType
            and value.__globals__ is names
            and value not in seen
            and _asks(value, seen)
        ):
            return True
    return False


def _all_names(code: CodeType) -> set[str]:
    """The names that code and what is defined in it ask for."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _all_names(constant)
    return found
