"""Repeated messages between the same memory: ranks, MPI datatypes and sizes are computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from .deadlock import Channel, MessageEnd
from .mpi_requests import keep_until_done, wait_all
from .mpi_types import buffer_of
from .protocol import INTERNAL_TAG, Array, message_text, nbytes, sendable, writable

if TYPE_CHECKING:
    from .mpi import MpiCommunicator

__all__ = ["MessageGroup", "MpiPersistentMessages"]

Ends = Sequence[tuple[int, Sequence[Array]]]


class _Message:
    """A message of a plan, without references to the arrays."""

    def __init__(self, group: MpiCommunicator, peer: int, parts: Sequence[Array], sent: bool) -> None:
        self.peer, self.sent = peer, sent
        self.nbytes, self.what = nbytes(parts), message_text(parts)
        start, count, kind = buffer_of(parts)
        self.kind = None if kind == MPI.BYTE else kind.Dup()  # cached types may be freed
        self.buffer = (start, count, self.kind or kind)
        mine, other = group.ranks[group.rank], group.ranks[peer]
        ends = (mine, other) if sent else (other, mine)
        self.channel: Channel = (group.name, *ends, INTERNAL_TAG)

    def free(self) -> None:
        if self.kind is not None:
            self.kind.Free()
            self.kind = None


class MpiPersistentMessages:
    """The MPI implementation of `dcarray.comm.transport.protocol.PersistentMessages`."""

    def __init__(self, group: MpiCommunicator, comm: MPI.Intracomm, sends: Ends, receives: Ends) -> None:
        self.group, self.comm = group, comm
        self.messages: list[_Message] = []
        self.messages += [
            *(_Message(group, peer, writable(parts), False) for peer, parts in receives),
            *(_Message(group, peer, sendable(parts), True) for peer, parts in sends),
        ]
        self._inside = [message for message in self.messages if message.peer != group.rank]

    def begin(self, memory: object) -> MessageGroup:
        self.group.check_order()
        comm, counts = self.comm, self.group.counts
        for message in self._inside:
            counts.message(message.sent, message.nbytes)
        requests = [
            (comm.Isend if one.sent else comm.Irecv)(one.buffer, one.peer, INTERNAL_TAG)
            for one in self.messages
        ]
        return MessageGroup(self, requests, memory)

    def __del__(self, finalized: Callable[[], bool] = MPI.Is_finalized) -> None:
        if not finalized():  # at the end of the program the module's names may be gone already
            for message in self.messages:
                message.free()


class MessageGroup:
    """A group of pending messages with one common wait."""

    def __init__(self, starter: MpiPersistentMessages, requests: list[MPI.Request], memory: object) -> None:
        self.persistent_messages, self.requests, self.memory = starter, requests, memory
        self.job: Any = starter.group.job
        self.numbers: list[int] = []
        if self.job is not None:
            for one in starter.messages:
                begun = self.job.sent if one.sent else self.job.received
                begun[one.channel] += 1
                self.numbers.append(begun[one.channel])

    def wait(self) -> None:
        if not self.requests:
            return
        wait_all(self.job, self.persistent_messages.messages, self.requests, self.needs)
        self.requests = []

    def __del__(self, keep: Callable[..., None] = keep_until_done) -> None:
        keep(self.requests, (self.persistent_messages, self.memory))

    def needs(self) -> list[MessageEnd]:
        """Return the ends of the messages that are not complete, for the detection of deadlocks."""
        every = zip(self.persistent_messages.messages, self.numbers, self.requests, strict=True)
        return [
            MessageEnd(one.channel, number, one.sent, one.what)
            for one, number, request in every
            if request != MPI.REQUEST_NULL
        ]
