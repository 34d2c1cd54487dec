"""Messages between the same places in memory, begun again and again under MPI: their ends, types and sizes
are worked out once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from .deadlock import Channel, End
from .errors import MismatchError
from .mpi_orphans import left, sweep
from .mpi_types import buffer_of
from .protocol import INTERNAL_TAG, Array, describe, nbytes, sendable, writable

if TYPE_CHECKING:
    from .mpi import MpiCommunicator

__all__ = ["MpiStarter", "Together"]

Ends = Sequence[tuple[int, Sequence[Array]]]


class _Message:
    """One message; it does not hold its windows."""

    def __init__(self, group: MpiCommunicator, peer: int, parts: Sequence[Array], sent: bool) -> None:
        self.peer, self.sent = peer, sent
        self.nbytes, self.what = nbytes(parts), describe(parts)
        start, count, kind = buffer_of(parts)
        self.kind = None if kind == MPI.BYTE else kind.Dup()  # those that are kept for all may go
        self.buffer = (start, count, self.kind or kind)
        mine, other = group.ranks[group.rank], group.ranks[peer]
        ends = (mine, other) if sent else (other, mine)
        self.channel: Channel = (group.name, *ends, INTERNAL_TAG)

    def free(self) -> None:
        if self.kind is not None:
            self.kind.Free()
            self.kind = None


class MpiStarter:
    """See `dcarray.comm.transport.protocol.Starter`."""

    def __init__(self, group: MpiCommunicator, comm: MPI.Intracomm, sends: Ends, receives: Ends) -> None:
        self.group, self.comm = group, comm
        self.messages: list[_Message] = []
        self.messages += [
            *(_Message(group, peer, writable(parts), False) for peer, parts in receives),
            *(_Message(group, peer, sendable(parts), True) for peer, parts in sends),
        ]
        self._inside = [message for message in self.messages if message.peer != group.rank]

    def begin(self, memory: object) -> Together:
        self.group.may_begin()
        comm, counts = self.comm, self.group.counts
        for message in self._inside:
            counts.message(message.sent, message.nbytes)
        requests = [
            (comm.Isend if one.sent else comm.Irecv)(one.buffer, one.peer, INTERNAL_TAG)
            for one in self.messages
        ]
        return Together(self, requests, memory)

    def __del__(self, finalized: Callable[[], bool] = MPI.Is_finalized) -> None:
        if not finalized():  # at the end of the program the module's names may be gone already
            for message in self.messages:
                message.free()


class Together:
    """Messages under way that end together."""

    def __init__(self, starter: MpiStarter, requests: list[MPI.Request], memory: object) -> None:
        self.starter, self.requests, self.memory = starter, requests, memory
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
        messages, requests = self.starter.messages, self.requests
        statuses = [MPI.Status() for _ in requests]
        sweep()
        try:
            if self.job is None:
                MPI.Request.Waitall(requests, statuses)
            else:
                self.job.wait(lambda: MPI.Request.Testall(requests, statuses), self.needs)
        except MPI.Exception as error:
            ends = "; ".join(f"{m.what} from rank {m.peer}" for m in messages if not m.sent)
            raise MismatchError(
                f"{error}: a message is longer than what is to receive it ({ends})"
            ) from error
        self.requests = []
        for message, status in zip(messages, statuses, strict=True):
            if not message.sent and status.Get_count(MPI.BYTE) != message.nbytes:
                raise MismatchError(
                    f"rank {message.peer} sends {status.Get_count(MPI.BYTE):,} bytes where "
                    f"{message.what} are received"
                )

    def __del__(self, keep: Callable[..., None] = left) -> None:
        keep(self.requests, (self.starter, self.memory))

    def needs(self) -> list[End]:
        """The messages that are not through."""
        every = zip(self.starter.messages, self.numbers, self.requests, strict=True)
        return [
            End(one.channel, number, one.sent, one.what)
            for one, number, request in every
            if request != MPI.REQUEST_NULL
        ]
