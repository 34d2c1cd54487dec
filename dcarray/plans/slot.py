"""Slots for plans that are made later: each is unasked, asked, ready or refused."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Generic, TypeVar

__all__ = ["PlanSlot", "PlanState"]

P = TypeVar("P")


class PlanState(Enum):
    """The states of a plan slot; ASKED means that the plan is being made, or waits for that."""

    UNASKED = 0
    ASKED = 1
    READY = 2
    REFUSED = 3


class PlanSlot(Generic[P]):
    """A place for a plan, or for other code, that is made after it has been requested.

    Attributes
    ----------
    plan : object or None
        The plan once it is ready, else None.
    state : PlanState
    """

    __slots__ = ("plan", "state")

    def __init__(self) -> None:
        self.plan: P | None = None
        self.state = PlanState.UNASKED

    def ask(self) -> bool:
        """Request the plan; return whether this is the first request, so that the plan has to be made."""
        first = self.state is PlanState.UNASKED
        if first:
            self.state = PlanState.ASKED
        return first

    def fill(self, plan: P) -> None:
        """Put the plan into the slot."""
        self.plan, self.state = plan, PlanState.READY

    def refuse(self) -> None:
        """Note that no plan can be made."""
        self.plan, self.state = None, PlanState.REFUSED

    def make(self, maker: Callable[[], P]) -> None:
        """Call ``maker`` and put the plan that it returns into the slot, unless the slot has a plan.

        Raises
        ------
        MemoryError, SystemError
            If memory is too small, or other threads were in the way; the plan may be asked for again.
        Exception
            If no plan can be made; the slot is refused.
        """
        if self.plan is not None:
            return
        try:
            self.fill(maker())
        except (MemoryError, SystemError):
            self.state = PlanState.UNASKED
            raise
        except Exception:
            self.refuse()
            raise
