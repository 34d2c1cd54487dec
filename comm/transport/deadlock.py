"""Deadlock detection from the states that ranks report.

A waiting rank reports the messages and collective operations that it waits for, and how many of each it has
begun itself.  The n-th receive on a channel can complete once the n-th send has begun.  There is a deadlock
if every rank waits for an operation that its partners have not begun.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["AnyOf", "Blocker", "Channel", "CollectiveCall", "MessageEnd", "RankState", "find_deadlock"]

Channel = tuple[object, int, int, int]  # name of the group, sender and receiver as ranks of the world, tag


@dataclass(frozen=True)
class MessageEnd:
    """One end, send or receive, of an incomplete message: the `number`-th on its channel."""

    channel: Channel
    number: int
    sent: bool
    what: str

    def is_ready(self, states: Sequence[RankState]) -> bool:
        """Whether the other end has been begun."""
        _, sender, receiver, _ = self.channel
        there = states[receiver].received if self.sent else states[sender].sent
        return there.get(self.channel, 0) >= self.number

    def __str__(self) -> str:
        _, sender, receiver, tag = self.channel
        way, peer = ("send to", receiver) if self.sent else ("receive from", sender)
        return f"the {way} rank {peer} of {self.what} with tag {tag}"


@dataclass(frozen=True)
class CollectiveCall:
    """A collective operation that a rank waits for: the `number`-th of its group of ranks."""

    group: object
    ranks: Sequence[int]
    number: int
    what: str

    def is_ready(self, states: Sequence[RankState]) -> bool:
        """Whether all ranks of the group have begun it."""
        return all(states[rank].collectives.get(self.group, 0) >= self.number for rank in self.ranks)

    def __str__(self) -> str:
        return f"the other ranks to call {self.what}"


@dataclass(frozen=True)
class AnyOf:
    """A wait that ends when any one of several messages is complete."""

    ends: Sequence[MessageEnd]

    def is_ready(self, states: Sequence[RankState]) -> bool:
        """Whether the other end of one of the messages has been begun."""
        return any(end.is_ready(states) for end in self.ends)

    def __str__(self) -> str:
        return " or ".join(map(str, self.ends))


Blocker = MessageEnd | CollectiveCall | AnyOf


@dataclass(frozen=True)
class RankState:
    """The reported state of a rank that waits or has ended.

    Parameters
    ----------
    waits_ended : int
        How many waits the rank has completed; the same number in two reports means no progress.
    ended : bool
        Whether the rank's program has ended.
    where : str
        The line of the user's code at which the rank waits, or at which it last communicated.
    needs : sequence of Blocker
        Everything that the rank waits for.
    sent, received : mapping
        How many messages the rank has begun to send, and to receive, on each channel.
    collectives : mapping
        How many collective operations the rank has begun in each group.
    """

    waits_ended: int
    ended: bool
    where: str
    needs: Sequence[Blocker]
    sent: Mapping[Channel, int]
    received: Mapping[Channel, int]
    collectives: Mapping[object, int]


def find_deadlock(states: Sequence[RankState]) -> str:
    """Return the report of a deadlock, with a line for each rank that says what it waits for, or "".

    It is empty if a rank can go on, or if all ranks have ended after the same operations.
    """
    lines, waiting, missed = [], False, False
    for rank, state in enumerate(states):
        missing = [need for need in state.needs if not need.is_ready(states)]
        missed = missed or bool(missing)
        waiting = waiting or not state.ended
        if not state.ended and not missing:
            return ""
        if not state.ended:
            lines.append(f"  rank {rank} waits for {missing[0]} ({state.where})")
        elif missing:
            lines.append(f"  rank {rank} has ended and would wait for {missing[0]} ({state.where})")
        else:
            last = f"; its last call was at {state.where}" if state.where else ""
            lines.append(f"  rank {rank} has ended{last}")
    if not missed:
        return ""
    head = "every rank waits for another one" if waiting else "the ranks have ended at different steps"
    return f"{head}:\n" + "\n".join(lines)
