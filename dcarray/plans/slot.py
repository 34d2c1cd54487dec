"""The life of a plan: unasked, asked for, ready or refused."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Generic, TypeVar

__all__ = ["PlanSlot", "PlanState"]

P = TypeVar("P")


class PlanState(Enum):
    """The states; a plan that was asked for is being made, or waits for that."""

    UNASKED = 0
    ASKED = 1
    READY = 2
    REFUSED = 3


class PlanSlot(Generic[P]):
    """A plan that is made once it is asked for.

    Attributes
    ----------
    plan : object or None
        Once it is ready.
    state : PlanState
    """

    __slots__ = ("plan", "state")

    def __init__(self) -> None:
        self.plan: P | None = None
        self.state = PlanState.UNASKED

    def ask(self) -> bool:
        """Ask for the plan; whether nobody has done so before, and it is to be made."""
        first = self.state is PlanState.UNASKED
        if first:
            self.state = PlanState.ASKED
        return first

    def fill(self, plan: P) -> None:
        """Let this be the plan."""
        self.plan, self.state = plan, PlanState.READY

    def refuse(self) -> None:
        """There is no plan, and will not be one."""
        self.plan, self.state = None, PlanState.REFUSED

    def make(self, maker: Callable[[], P]) -> None:
        """Have the plan made, unless it is there.

        Raises
        ------
        MemoryError
            It may be asked for again: later there may be more.
        Exception
            It is refused.
        """
        if self.plan is not None:
            return
        try:
            self.fill(maker())
        except MemoryError:
            self.state = PlanState.UNASKED
            raise
        except Exception:
            self.refuse()
            raise
