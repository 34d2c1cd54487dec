"""MPI requests: waits that check message sizes, and references to memory that MPI may still write to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from mpi4py import MPI

from .deadlock import MessageEnd
from .errors import MismatchError
from .mpi_service import Job

__all__ = ["keep_until_done", "release_done", "wait_all"]

_orphans: list[tuple[list[MPI.Request], Any]] = []


class Message(Protocol):
    """One end of a message, with the attributes that `wait_all` needs."""

    peer: int
    sent: bool

    @property
    def nbytes(self) -> int: ...

    @property
    def what(self) -> str: ...


def wait_all(
    job: Job | None,
    messages: Sequence[Message],
    requests: list[MPI.Request],
    needs: Callable[[], Sequence[MessageEnd]],
) -> None:
    """Wait until all requests of some messages are complete.

    Parameters
    ----------
    job : Job or None
        The job whose control messages are handled during the wait; None: wait inside MPI.
    messages, requests : sequence
        One request for each message.
    needs : callable
        Returns the ends that are not complete, for the detection of deadlocks.

    Raises
    ------
    MismatchError
        When a message is longer or shorter than the memory to receive it.
    """
    statuses = [MPI.Status() for _ in requests]
    # A request that has been waited for before is MPI's null request: it ends at once, without a count.
    fresh = [request != MPI.REQUEST_NULL for request in requests]
    release_done()
    try:
        if job is None:
            MPI.Request.Waitall(requests, statuses)
        else:
            job.wait(lambda: MPI.Request.Testall(requests, statuses), needs)
    except MPI.Exception as error:
        ends = "; ".join(f"{m.what} from rank {m.peer}" for m in messages if not m.sent)
        raise MismatchError(f"{error}: a message is longer than what is to receive it ({ends})") from error
    for message, status, new in zip(messages, statuses, fresh, strict=True):
        if new and not message.sent and status.Get_count(MPI.BYTE) != message.nbytes:
            raise MismatchError(
                f"rank {message.peer} sends {status.Get_count(MPI.BYTE):,} bytes where "
                f"{message.what} are received"
            )


def keep_until_done(
    requests: Sequence[MPI.Request],
    memory: Any,
    orphans: list[tuple[list[MPI.Request], Any]] = _orphans,
    null: MPI.Request = MPI.REQUEST_NULL,
) -> None:
    """Keep references to the memory of messages without a waiting caller until MPI has completed them.

    Parameters
    ----------
    requests : sequence of MPI.Request
        The requests of the messages; null requests are complete.
    memory : object
        An object with references to the messages' arrays.
    orphans, null
        Never passed by callers: defaults, as the module's globals may be deleted at the program's end.
    """
    if open_requests := [request for request in requests if request != null]:
        orphans.append((open_requests, memory))


def release_done() -> None:
    """Drop the references to memory whose messages are complete."""
    if _orphans:
        _orphans[:] = [one for one in _orphans if not MPI.Request.Testall(one[0])]
