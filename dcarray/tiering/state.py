"""Tier states: one state machine for everything that switches calls between two implementations.

A subject is observed; after some observations it is a candidate for the other way; it is active while it goes
that way; after some failures, its strikes, it is deoptimised: it goes the way that it came, for good or until
it is tried again (`Backoff`).

============  ======================  =======================  ==========================================
subject       observation             active                   strike
============  ======================  =======================  ==========================================
call site     a recording that NumPy  NumPy works at once      its result is an operand in a recording
              does sooner
selection                             is recorded              it is gathered all the same
plan                                  runs                     its run is repeated op by op
============  ======================  =======================  ==========================================

The C module has the states of call sites (`call_sites.h`), with the same constants.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

__all__ = [
    "BLOCKED_HITS",
    "CALL_SITE",
    "OFTEN",
    "OP_BY_OP",
    "PLAN",
    "RECORDING",
    "SELECTION",
    "STRIKES",
    "Backoff",
    "Limits",
    "Tier",
    "TierState",
]


class Tier(IntEnum):
    """How far something has come on the way from its first implementation to its second, and back."""

    OBSERVED = 0
    CANDIDATE = 1
    ACTIVE = 2
    DEOPTIMISED = 3


class Limits(NamedTuple):
    """The numbers of observations that make a candidate, and of strikes that deoptimise."""

    observations: int
    strikes: int


STRIKES = 3
BLOCKED_HITS = 8
"""Promotions of a blocked call site that are refused; the next one is for good."""

RECORDING = Limits(2, STRIKES)
"""Recordings that are planned, or that NumPy does sooner, when they come again."""
CALL_SITE = Limits(2, STRIKES)
PLAN = Limits(0, STRIKES)
OFTEN = 8
"""Runs of a plan, one of which has to be repeated op by op, so that this counts as often."""
OP_BY_OP = 8, 512
"""Runs that are op by op at once after that, at first and at most."""
SELECTION = Limits(0, STRIKES)


class TierState:
    """The tier of one call site, selection or plan, with the counts that change it.

    Attributes
    ----------
    tier : Tier
    observations, strikes : int
        So far.
    """

    __slots__ = ("_limits", "observations", "strikes", "tier")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.reset()

    def reset(self) -> None:
        """Return to the first state."""
        self.tier = Tier.OBSERVED
        self.observations = self.strikes = 0

    def observe(self) -> bool:
        """Count an observation; returns whether it is the one that makes this a candidate."""
        self.observations += 1
        if self.observations != self._limits.observations or self.tier is not Tier.OBSERVED:
            return False
        self.tier = Tier.CANDIDATE
        return True

    def strike(self, weight: int = 1) -> bool:
        """Count a failure; returns whether the subject is deoptimised."""
        self.strikes += weight
        if self.strikes >= self._limits.strikes:
            self.tier = Tier.DEOPTIMISED
        return self.tier is Tier.DEOPTIMISED

    def activate(self, strikes: int = STRIKES) -> None:
        """Go the other way, since it went well; so many strikes are taken back."""
        self.strikes = max(0, self.strikes - strikes)
        if self.strikes < self._limits.strikes:
            self.tier = Tier.ACTIVE

    def retry(self) -> None:
        """Make the subject a candidate again."""
        self.tier, self.strikes = Tier.CANDIDATE, 0


class Backoff:
    """A waiting time, in calls, that doubles with each failed trial (exponential backoff), up to a longest.

    Parameters
    ----------
    first, longest : int
        In calls.
    """

    __slots__ = ("_first", "_longest", "_next")

    def __init__(self, first: int, longest: int) -> None:
        self._first = self._next = first
        self._longest = longest

    def next(self) -> int:
        """Return the interval until the next trial."""
        length, self._next = self._next, min(2 * self._next, self._longest)
        return length

    def reset(self) -> None:
        """Begin with the first interval again."""
        self._next = self._first
