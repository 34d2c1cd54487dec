"""Variants of a call of an accelerated function: accelerated, or as the function is written.

Where all call sites of a function are promoted (`dcarray.tiering.call_sites`), an accelerated call gives what
the function gives as it is written, to the bit, and takes longer: for its entry and exit, and for each call
that asks what its arrays are.  Not always: products and operators on small arrays take less than NumPy's.  So
calls of which nothing was recorded, and no loop compiled, several times in a row are run as both variants in
turns, and as the shorter one from then on.  After a while both are tried again.

This is decided by a clock, as no count says which variant is shorter, and for the kind of a call: the types
of its arguments, their dtypes and, roughly, their sizes.  No result depends on it, since both are NumPy's.
It is not for calls with wrapped arrays among the arguments, or with objects that might hold some, for arrays
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
from dcarray.jit.loops.entry.globals import original
from dcarray.tiering import state
from dcarray.tiering.cost_model import tally
from dcarray.tiering.state import Backoff, Tier, TierState

FAR = 1.5  # times as long: it counts twice
LIMIT = 1.0  # what regions have saved of a call's time, at most, for both variants to be tried
SPAN, SPANS = 64, 8192  # calls until both are tried again, at first and at most
RESTS = 128  # calls that are not looked at, at most, after some that have recorded something
MOST = 64  # kinds of calls of a function
# Attributes of wrapped arrays that NumPy's arrays have not.
_OURS = frozenset(("dcarray", "gather", "layout", "local"))


def call_signature(args: tuple[Any, ...], kwargs: dict[str, Any], /) -> int | None:
    """Return a number for the kind of a call; None if an argument is of another kind, or options say that all
    is to be recorded."""
    return None


if BUILT:  # else all calls are accelerated
    from dcarray._native.extension import call_signature


def work() -> tuple[tuple[int, int, int, int], float]:
    """Return the work so far that NumPy may not do as well, loops and regions that wait for a plan among it;
    and the nanoseconds that NumPy would have taken for the regions that ran."""
    return (counters.loops, counters.waiting, tally.rounded, tally.unplanned), tally.numpy


class Variant:
    """The choice between the variants for one kind of call.

    Attributes
    ----------
    plain : bool
        Whether it is the function as it is written.
    remaining_calls : int
        Calls for which that stands, without a look at the clock.
    """

    __slots__ = ("_accelerated", "_rest", "_span", "_state", "_won", "plain", "remaining_calls")

    def __init__(self) -> None:
        self.plain = False
        self.remaining_calls = self._won = 0
        self._accelerated = -1.0  # seconds of the last accelerated call, while both are tried
        self._state = TierState(state.VARIANT)
        self._rest, self._span = Backoff(1, RESTS), Backoff(SPAN, SPANS)

    def is_trial(self) -> bool:
        """Whether the next call is to be tried as the function is written."""
        return self._accelerated >= 0.0

    def record_call(self, seconds: float, before: Any, plain: bool = False, may: bool = True) -> None:
        """Count a call that has ended.

        Parameters
        ----------
        seconds : float
        before : tuple
            `work`, when it began.
        plain : bool, optional
            Whether it ran as the function is written.
        may : bool, optional
            Whether calls may.
        """
        accelerated, self._accelerated = self._accelerated, -1.0
        done, numpy = work()
        if done != before[0] or not may or 1e-9 * (numpy - before[1]) > LIMIT * seconds:
            self.remaining_calls, self.plain, self._won = self._rest.next(), False, 0
            self._state.reset()
            self._span.reset()
        elif not plain and self._state.tier is Tier.OBSERVED:
            self._state.observe()
        elif not plain:
            self._accelerated = seconds
            self._rest.reset()
        elif accelerated >= 0.0:  # else another thread's call has come in between
            if seconds < accelerated:
                self._won += 1
            lost = 0 if seconds < accelerated else 1 + (seconds >= FAR * accelerated)
            if self._state.strike(lost):
                self.plain = False
            elif self._won >= state.STRIKES:
                self.plain = True
            else:
                return
            self.remaining_calls, self._won = self._span.next(), 0
            self._state.retry()


class Variants:
    """Cache of one function: by call signature, whether the accelerated or the plain version runs."""

    def __init__(self, function: FunctionType) -> None:
        self._function = function
        self._known: dict[int, Variant] = {}
        self._code: CodeType | None = None
        self._may = False

    def kind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Variant | None:
        """Return the variant of such calls; None if they may not run as the function is written."""
        signature = call_signature(args, kwargs)
        if signature is None:
            return None
        variant = self._known.get(signature)
        if variant is None:
            if len(self._known) >= MOST:
                self._known.clear()
            variant = self._known[signature] = Variant()
        return variant

    def may_run_plain(self) -> bool:
        """Whether the function, as far as names tell, asks for nothing that NumPy's arrays do not have."""
        code = original(self._function)
        if code is not self._code:
            self._may = communicator() is None and not _uses_dcarray(self._function, set())
            self._code = code
        return self._may


def _uses_dcarray(function: FunctionType, seen: set[FunctionType]) -> bool:
    """Whether a function, or one of its module that it calls by name, asks for something of dcarray's."""
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
        same_module = type(value) is FunctionType and value.__globals__ is names
        if same_module and value not in seen and _uses_dcarray(value, seen):
            return True
    return False


def _all_names(code: CodeType) -> set[str]:
    """Return the names that code and what is defined in it ask for."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _all_names(constant)
    return found
