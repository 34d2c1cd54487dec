"""A communicator over threads that run one at a time, for tests, examples and runs without MPI.

It is stricter than MPI: a send completes only once its receive is posted, data arrives when the receiver
waits, sent memory must not change before the sender waits, and every message must be received and waited for.
Sizes, dtypes and the order of collective operations are compared, and deadlocks are reported.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from .call_location import Location, caller, caller_text, location_text
from .errors import CommError, LostRankError, MismatchError
from .protocol import (
    SHARED_BITS,
    Array,
    Communicator,
    Counts,
    PersistentMessages,
    Request,
    check_rank,
    check_tag,
    message_text,
    nbytes,
    reduction_ufunc,
    sendable,
    step_text,
    writable,
)
from .thread_scheduler import Scheduler

__all__ = ["ThreadCommunicator", "current", "rank_of_thread", "run", "single_rank"]

_Key = tuple[Any, int, int, int]

current: ContextVar[Communicator | None] = ContextVar("dcarray_rank", default=None)


def run(size: int, function: Callable[..., Any], *args: Any) -> list[Any]:
    """Run a function as `size` simulated ranks; `dcarray.comm.world` returns the communicator of each.

    Each rank begins with the caller's options and state of ``np.errstate``.

    Parameters
    ----------
    size : int
        The number of ranks.
    function : callable
        The function that each rank runs.
    *args
        Its arguments.

    Returns
    -------
    list
        The results of the ranks, in order.

    Raises
    ------
    DeadlockError
        When every rank waits for another one.
    MismatchError
        When the two ends of a message or the ranks' collective operations differ, or a message is never
        received or waited for.
    Exception
        The first exception that a rank raises, which ends the other ranks, too.
    """
    if size < 1:
        raise CommError(f"{size} ranks cannot run")
    scheduler = Scheduler(size)
    post = _Mailbox(scheduler)

    def run_rank(rank: int) -> Any:
        current.set(ThreadCommunicator(post, (), tuple(range(size)), rank))
        return function(*args)

    results = scheduler.run([lambda rank=rank: run_rank(rank) for rank in range(size)])  # type: ignore[misc]
    post.check_empty()
    return results


def rank_of_thread() -> Communicator:
    """Return the communicator of the simulated rank that runs in this thread; CommError if there is none."""
    comm = current.get()
    if comm is None:
        raise CommError("this thread is not a simulated rank")
    return comm


def single_rank() -> ThreadCommunicator:
    """Return a communicator of a single rank."""
    return ThreadCommunicator(_Mailbox(Scheduler(1)), (), (0,), 0)


class _Message:
    """One end, send or receive, of a message."""

    def __init__(
        self, comm: ThreadCommunicator, kind: str, parts: Sequence[Array], peer: int, tag: int
    ) -> None:
        self.comm, self.kind, self.parts, self.peer, self.tag = comm, kind, parts, peer, tag
        self.where = caller_text()
        self.data = _bytes(parts) if kind == "send" else b""
        self.other: _Message | None = None
        self.waited = False

    def wait(self) -> None:
        if self.waited:
            return
        self.comm._post.scheduler.wait(self.comm.world_rank, self.is_done, self.__str__)
        self.waited = True
        self.comm._post.open.discard(self)
        if self.other is None:
            raise LostRankError(f"rank {self.comm._ranks[self.peer]} is lost: {self} has no other end")
        if self.kind == "send":
            if _bytes(self.parts) != self.data:
                raise CommError(f"{self} was changed before it was waited for")
        else:
            _fill(self.parts, self.other.data)

    def is_done(self) -> bool:
        """Whether the other end has been posted, or its rank has died."""
        return self.other is not None or self.comm._post.scheduler.lost(self.comm._ranks[self.peer])

    def __str__(self) -> str:
        way = "to" if self.kind == "send" else "from"
        what, peer = message_text(self.parts), self.comm._ranks[self.peer]
        return f"the {self.kind} {way} rank {peer} of {what} with tag {self.tag} ({self.where})"


class _Collective:
    """A collective operation that not all ranks have begun."""

    def __init__(self, what: tuple[Any, ...], rank: int, where: str) -> None:
        self.what, self.rank, self.where = what, rank, where
        self.values: dict[int, Any] = {}
        self.left = 0


class _Mailbox:
    """The state that the ranks of a run share: unmatched messages and open collective operations."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.sends: defaultdict[_Key, deque[_Message]] = defaultdict(deque)
        self.receives: defaultdict[_Key, deque[_Message]] = defaultdict(deque)
        self.meetings: dict[tuple[Any, int], _Collective] = {}
        self.broken: dict[Any, str] = {}  # groups whose ranks do different things, with the reports
        self.open: set[_Message] = set()

    def match(self, key: _Key, message: _Message) -> None:
        """Match a message with its other end if that is posted, or else store it."""
        self.scheduler.check_thread(message.comm.world_rank)
        self.open.add(message)
        mine, others = self.sends, self.receives
        if message.kind == "receive":
            mine, others = others, mine
        if not others[key]:
            mine[key].append(message)
            return
        other = others[key].popleft()
        sent, received = (message, other) if message.kind == "send" else (other, message)
        if nbytes(sent.parts) != nbytes(received.parts) or _dtypes(sent.parts) != _dtypes(received.parts):
            raise MismatchError(
                f"rank {sent.comm.world_rank} sends {message_text(sent.parts)} ({sent.where}) where rank "
                f"{received.comm.world_rank} receives {message_text(received.parts)} ({received.where}), "
                f"tag {message.tag}"
            )
        message.other, other.other = other, message

    def forget(self, key: Any, meeting: _Collective, size: int) -> None:
        """Delete a collective operation once all ranks have left it."""
        if meeting.left == size:
            del self.meetings[key]

    def check_empty(self) -> None:
        """Raise `MismatchError` if a message has no other end or has not been waited for."""
        lost = self.scheduler.lost
        left = [m for m in self.open if not lost(m.comm.world_rank) and not lost(m.comm._ranks[m.peer])]
        for message in sorted(left, key=str):
            lacks = "has no other end" if message.other is None else "was not waited for"
            raise MismatchError(f"rank {message.comm.world_rank}: {message} {lacks}")


class ThreadCommunicator:
    """A group of simulated ranks; see `dcarray.comm.transport.protocol.Communicator`."""

    def __init__(self, post: _Mailbox, context: tuple[Any, ...], ranks: tuple[int, ...], rank: int) -> None:
        self.counts = Counts()  # of this rank in all groups
        self.rank, self.size, self.world_rank = rank, len(ranks), ranks[rank]
        self._post, self._context, self._ranks = post, context, ranks
        self._met = 0
        self._subs: dict[tuple[int, ...], ThreadCommunicator] = {}

    # ---- messages --------------------------------------------------------------------------------
    def isend(self, parts: Sequence[Array], dest: int, tag: int) -> Request:
        message = _Message(self, "send", sendable(parts), check_rank(dest, self.size), check_tag(tag))
        if dest != self.rank:
            self.counts.message(True, len(message.data))
        self._post.match((self._context, self.rank, dest, tag), message)
        return message

    def irecv(self, parts: Sequence[Array], source: int, tag: int) -> Request:
        message = _Message(self, "receive", writable(parts), check_rank(source, self.size), check_tag(tag))
        if source != self.rank:
            self.counts.message(False, nbytes(parts))
        self._post.match((self._context, source, self.rank, tag), message)
        return message

    def persistent_messages(
        self, sends: Sequence[tuple[int, Sequence[Array]]], receives: Sequence[tuple[int, Sequence[Array]]]
    ) -> PersistentMessages | None:
        return None

    def waitall(self, requests: Iterable[Request]) -> None:
        for request in requests:
            request.wait()

    def ready(self, requests: Sequence[Request], wait: bool) -> list[int]:
        held = [request for request in requests if isinstance(request, _Message)]
        if wait:
            self._post.scheduler.wait(
                self.world_rank,
                lambda: any(message.is_done() for message in held),
                lambda: " or ".join(map(str, held)),
            )
        else:
            self._post.scheduler.pause(self.world_rank)
        return [k for k, message in enumerate(held) if message.is_done()]

    # ---- collective operations -------------------------------------------------------------------
    def bcast(self, array: Array, root: int) -> None:
        sendable([array]) if self.rank == root else writable([array])
        check_rank(root, self.size)
        self.counts.collective(array.nbytes)
        data = self._synchronise(("bcast", root, array.nbytes, array.dtype), _bytes([array]))[root]
        if self.rank != root:
            _fill([array], data)

    def reduce(self, array: Array, out: Array | None, op: str, root: int) -> None:
        check_rank(root, self.size)
        brought = self._reduction(("reduce", root, op, array.shape, array.dtype), array, op)
        if self.rank == root:
            assert out is not None
            out[...] = brought()

    def allreduce(self, array: Array, out: Array, op: str) -> None:
        out[...] = self._reduction(("allreduce", op, array.shape, array.dtype), array, op)()

    def _reduction(self, what: tuple[Any, ...], array: Array, op: str) -> Callable[[], Array]:
        """Synchronise the ranks, and return a function that reduces their arrays in rank order."""
        ufunc = reduction_ufunc(op, array.dtype)
        self.counts.collective(array.nbytes)
        brought = self._synchronise(what, array.copy())

        def combine() -> Array:
            total: Array = brought[0].copy()
            for rank in range(1, self.size):
                ufunc(total, brought[rank], out=total)
            return total

        return combine

    def allgather(self, array: Array, out: Array) -> None:
        sendable([array])
        self.counts.collective(array.nbytes)
        brought = self._synchronise(("allgather", array.shape, array.dtype), array.copy())
        for rank in range(self.size):
            out[rank] = brought[rank]

    def alltoallw(self, sends: Sequence[Sequence[Array]], receives: Sequence[Sequence[Array]]) -> None:
        for rank in range(self.size):
            for sent, parts in ((True, sends[rank]), (False, receives[rank])):
                if nbytes(parts) and rank != self.rank:
                    self.counts.message(sent, nbytes(parts))
        brought = self._synchronise(("alltoallw",), [_bytes(sendable(parts)) for parts in sends])
        for rank, parts in enumerate(receives):
            data = brought[rank][self.rank]
            if len(data) != nbytes(writable(parts)):
                raise MismatchError(
                    f"rank {self._ranks[rank]} sends {len(data):,} bytes where rank {self.world_rank} "
                    f"receives {message_text(parts)}"
                )
            _fill(parts, data)

    def barrier(self) -> None:
        self._synchronise(("barrier",), None)

    def step(self, what: tuple[Any, ...], where: Location | None = None) -> None:
        key, meeting = self._enter(what, location_text(where or caller()))
        meeting.left += 1
        self._post.forget(key, meeting, self.size)

    def share(self, what: tuple[Any, ...], bits: int, where: Location | None = None) -> int:
        self.counts.collective(-(-SHARED_BITS // 8))
        combined = 0
        for brought in self._synchronise(what, bits, where).values():
            combined |= brought
        return combined

    def _enter(self, what: tuple[Any, ...], where: str) -> tuple[Any, _Collective]:
        """Begin this rank's next collective operation in the group; return its key and shared state."""
        self._post.scheduler.check_thread(self.world_rank)
        self._check()
        key = (self._context, self._met)
        self._met += 1
        meeting = self._post.meetings.get(key)
        if meeting is None:
            meeting = self._post.meetings[key] = _Collective(what, self.world_rank, where)
        if meeting.what != what:
            self._post.broken[self._context] = (
                f"rank {self.world_rank} calls {step_text(what)} ({where}) where rank {meeting.rank} calls "
                f"{step_text(meeting.what)} ({meeting.where})"
            )
            self._check()
        return key, meeting

    def _check(self) -> None:
        """Raise `MismatchError` if ranks of the group have called different operations."""
        if (text := self._post.broken.get(self._context)) is not None:
            raise MismatchError(text)

    def _synchronise(self, what: tuple[Any, ...], value: Any, at: Location | None = None) -> dict[int, Any]:
        """Wait until all ranks of the group have made this call, and return the values by rank."""
        where = caller_text() if at is None else location_text(at)
        key, meeting = self._enter(what, where)
        meeting.values[self.rank] = value

        def missing() -> str:
            late = [str(self._ranks[r]) for r in range(self.size) if r not in meeting.values]
            return f"rank {', '.join(late)} to call {step_text(what)} ({where})"

        self._post.scheduler.wait(
            self.world_rank,
            lambda: len(meeting.values) == self.size or self._context in self._post.broken,
            missing,
        )
        if len(meeting.values) < self.size:
            self._check()
        meeting.left += 1
        self._post.forget(key, meeting, self.size)
        return meeting.values

    # ---- groups ----------------------------------------------------------------------------------
    def sub(self, ranks: Sequence[int]) -> Communicator:
        group = tuple(check_rank(r, self.size) for r in ranks)
        if self.rank not in group or len(set(group)) != len(group):
            raise CommError(f"rank {self.rank} asks for a communicator of the ranks {group}")
        if group not in self._subs:
            within = tuple(self._ranks[r] for r in group)
            comm = ThreadCommunicator(self._post, (self._context, group), within, group.index(self.rank))
            comm.counts = self.counts
            self._subs[group] = comm
        return self._subs[group]

    def abort(self, code: int) -> None:
        raise CommError(f"rank {self.rank} ended all ranks with code {code}")


def _dtypes(parts: Sequence[Array]) -> set[np.dtype[Any]]:
    return {part.dtype for part in parts if part.size}


def _bytes(parts: Sequence[Array]) -> bytes:
    return b"".join(part.tobytes() for part in parts)


def _fill(parts: Sequence[Array], data: bytes) -> None:
    begin = 0
    for part in parts:
        if part.size:
            values: Array = np.frombuffer(data, part.dtype, part.size, begin)
            part[...] = values.reshape(part.shape)
            begin += part.nbytes
