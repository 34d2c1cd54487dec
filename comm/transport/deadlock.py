"""Do all ranks wait for each other?  Judged from what each one says of itself.

A rank that waits says which ends of messages and which collective operations it waits for, and how many it
has begun itself.  The n-th receive on a channel can go on when there has been an n-th send.  When every rank
waits for something that nobody has begun, nobody ever will.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["AnyOf", "Channel", "CollectiveCall", "MessageEnd", "Need", "RankState", "find_deadlock"]

Channel = tuple[object, int, int, int]  # a group's name, from and to which rank of the world, tag


@dataclass(frozen=True)
class MessageEnd:
    """One end of a message that is not through: the how-manieth on its channel."""

    channel: Channel
    number: int
    sent: bool
    what: str

    def is_ready(self, states: Sequence[RankState]) -> bool:
        """Has the other end been begun?"""
        _, sender, receiver, _ = self.channel
        there = states[receiver].received if self.sent else states[sender].sent
        return there.get(self.channel, 0) >= self.number

    def __str__(self) -> str:
        _, sender, receiver, tag = self.channel
        way, peer = ("send to", receiver) if self.sent else ("receive from", sender)
        return f"the {way} rank {peer} of {self.what} with tag {tag}"


@dataclass(frozen=True)
class CollectiveCall:
    """A collective operation that not all ranks of a group have come to: the how-manieth of the group."""

    group: object
    ranks: Sequence[int]
    number: int
    what: str

    def is_ready(self, states: Sequence[RankState]) -> bool:
        """Have all come?"""
        return all(states[rank].collectives.get(self.group, 0) >= self.number for rank in self.ranks)

    def __str__(self) -> str:
        return f"the other ranks to call {self.what}"


@dataclass(frozen=True)
class AnyOf:
    """One of some messages, whichever."""

    ends: Sequence[MessageEnd]

    def is_ready(self, states: Sequence[RankState]) -> bool:
        """Has the other end of one been begun?"""
        return any(end.is_ready(states) for end in self.ends)

    def __str__(self) -> str:
        return " or ".join(map(str, self.ends))


Need = MessageEnd | CollectiveCall | AnyOf


@dataclass(frozen=True)
class RankState:
    """A rank that waits, or has ended.

    Parameters
    ----------
    waits_ended : int
        How often it has waited and gone on: the same number twice means that it has not moved.
    ended : bool
        Is it past its last line?
    where : str
        Its line, or the last one at which it took part in anything.
    needs : sequence of Need
        What it waits for, all of it.
    sent, received : mapping
        Messages begun on each channel.
    collectives : mapping
        Collective operations begun in each group.
    """

    waits_ended: int
    ended: bool
    where: str
    needs: Sequence[Need]
    sent: Mapping[Channel, int]
    received: Mapping[Channel, int]
    collectives: Mapping[object, int]


def find_deadlock(states: Sequence[RankState]) -> str:
    """What every rank waits for, when none can go on; empty when one can, or all have done the same."""
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
