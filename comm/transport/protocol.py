"""The interface of a communicator, whose ranks are processes under MPI or threads in one process.

A message is a sequence of array windows (arrays of any strides), which are sent without a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .call_location import Location
from .errors import CommError

__all__ = [
    "INTERNAL_TAG", "OPERATORS", "SHARED_BITS", "Array", "Communicator", "Counts", "PersistentMessages",
    "Request", "check_rank", "check_tag", "message_text", "nbytes", "reduction_ufunc", "sendable",
    "step_text", "writable",
]  # fmt: skip

Array = NDArray[Any]

# MPI guarantees tags up to 32767.  The highest is for messages of plans; messages between two ranks with
# one tag arrive in the order in which they are sent, so one serves all.
INTERNAL_TAG = 32767

SHARED_BITS = 124
"""The number of bits that `Communicator.share` combines."""

OPERATORS: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "land": np.logical_and,
    "lor": np.logical_or,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
}


@dataclass
class Counts:
    """The numbers of messages and bytes of one rank.

    Collective operations other than `Communicator.alltoallw` are counted as calls, with the bytes of this
    rank's operand, since the number of their messages depends on the MPI library.
    """

    messages_sent: int = 0
    bytes_sent: int = 0
    messages_received: int = 0
    bytes_received: int = 0
    collectives: int = 0
    collective_bytes: int = 0

    def message(self, sent: bool, size: int) -> None:
        """Count one message, sent or received."""
        if sent:
            self.messages_sent += 1
            self.bytes_sent += size
        else:
            self.messages_received += 1
            self.bytes_received += size

    def collective(self, size: int) -> None:
        """Count one collective operation with an operand of `size` bytes."""
        self.collectives += 1
        self.collective_bytes += size

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


class Request(Protocol):
    """A nonblocking message that has been begun."""

    def wait(self) -> None:
        """Wait until a receive has its data, or a send's memory may be overwritten; may be called again."""


class PersistentMessages(Protocol):
    """Messages that are sent repeatedly between the same memory, as with MPI's persistent requests."""

    def begin(self, memory: object) -> Request:
        """Begin all messages; the caller must wait for the returned request before it begins them again.

        `memory` is an object with references to the messages' arrays.
        """


class Communicator(Protocol):
    """A group of ranks, numbered from 0."""

    counts: Counts
    rank: int
    size: int

    def isend(self, parts: Sequence[Array], dest: int, tag: int) -> Request:
        """Begin to send windows as one message."""

    def irecv(self, parts: Sequence[Array], source: int, tag: int) -> Request:
        """Begin to receive a message into windows, which must have exactly as many bytes."""

    def persistent_messages(
        self, sends: Sequence[tuple[int, Sequence[Array]]], receives: Sequence[tuple[int, Sequence[Array]]]
    ) -> PersistentMessages | None:
        """Return messages that can be begun repeatedly; each is a pair of the peer's rank and the windows.

        The caller keeps the memory of the windows alive.  None is returned if this is no faster than
        beginning each message anew.
        """

    def waitall(self, requests: Iterable[Request]) -> None:
        """Wait until all of some requests are complete."""

    def ready(self, requests: Sequence[Request], wait: bool) -> list[int]:
        """Return the indices of the requests that are complete; `waitall` must still be called for them.

        If `wait` is true, first wait until one is complete.  Messages with a dead rank count as complete;
        `waitall` raises `LostRankError` for them.
        """

    def step(self, what: tuple[Any, ...], where: Location | None = None) -> None:
        """Declare an operation that all ranks of the group perform in the same order.

        No rank waits.  If ranks declare different operations, `MismatchError` is raised on all of them, in
        this call or a later one.  `what` is a name and the values whose ``repr`` must be equal on all ranks;
        `where` is the line of the user's code, if it is not the innermost caller outside dcarray.
        """

    def share(self, what: tuple[Any, ...], bits: int, where: Location | None = None) -> int:
        """Declare an operation as `step` does, wait for all ranks, and return the bitwise or of their `bits`.

        Parameters
        ----------
        what : tuple
            The operation: a name and the values whose ``repr`` must be equal on all ranks.
        bits : int
            This rank's bits, an integer in ``0 <= bits < 1 << SHARED``.
        where : callable, optional
            The line of the user's code, if it is not the innermost caller outside dcarray.
        """

    def bcast(self, array: Array, root: int) -> None:
        """Copy the root's elements to every rank."""

    def reduce(self, array: Array, out: Array | None, op: str, root: int) -> None:
        """Reduce the ranks' arrays element by element, and store the result in the root's `out`."""

    def allreduce(self, array: Array, out: Array, op: str) -> None:
        """Reduce the ranks' arrays element by element, and store the result in every rank's `out`."""

    def allgather(self, array: Array, out: Array) -> None:
        """Copy the elements of all ranks to every rank: those of rank `k` to ``out[k]``."""

    def alltoallw(self, sends: Sequence[Sequence[Array]], receives: Sequence[Sequence[Array]]) -> None:
        """Exchange messages with every rank: one entry for each rank, which may be empty."""

    def barrier(self) -> None:
        """Wait until all ranks have made this call."""

    def sub(self, ranks: Sequence[int]) -> Communicator:
        """Return the communicator of some ranks, numbered in the given order; all of them call this.

        The same ranks give the same communicator again.
        """

    def abort(self, code: int) -> None:
        """End all ranks with an exit status."""


def reduction_ufunc(name: str, dtype: np.dtype[Any]) -> np.ufunc:
    """Return the ufunc of a reduction's name.

    Raises `CommError` if there is no such reduction, and TypeError if its result does not have the dtype.
    """
    if name not in OPERATORS:
        raise CommError(f"{name!r} is not a reduction; the reductions are {', '.join(OPERATORS)}")
    ufunc = OPERATORS[name]
    *_, result = ufunc.resolve_dtypes((dtype, dtype, None))  # a TypeError of NumPy's where there is no loop
    if not np.can_cast(result, dtype):
        raise TypeError(f"{name} of {dtype} gives {result}")
    return ufunc


def step_text(what: tuple[Any, ...]) -> str:
    """Return the text of an operation declared with `Communicator.step`: its name and values."""
    if what[0] == "thread":
        return (
            f"from thread {what[1]!r}, where only one thread of a rank may work on arrays in blocks at a "
            "time, in the same order on all ranks"
        )
    return f"{what[0]}({', '.join(str(value) for value in what[1:])})"


def check_rank(rank: int, size: int) -> int:
    """Return a rank as an int; raise `CommError` unless it is one of `size` ranks."""
    if not 0 <= rank < size:
        raise CommError(f"there is no rank {rank} among {size}")
    return int(rank)


def check_tag(tag: int) -> int:
    """Return a tag as an int; raise `CommError` if it is outside the range that MPI guarantees."""
    if not 0 <= tag <= INTERNAL_TAG:
        raise CommError(f"a tag lies between 0 and {INTERNAL_TAG - 1}, which {tag} does not")
    return int(tag)


def sendable(parts: Sequence[Array]) -> Sequence[Array]:
    """Return the windows unchanged; raise `TypeError` if their elements are Python objects."""
    for part in parts:
        if part.dtype.hasobject:
            raise TypeError(f"elements of dtype {part.dtype} are references into this process: not sent")
    return parts


def writable(parts: Sequence[Array]) -> Sequence[Array]:
    """Return the windows unchanged; raise `ValueError` if one is read-only."""
    for part in sendable(parts):
        if not part.flags.writeable:
            raise ValueError("a message cannot be received into an array that is read-only")
    return parts


def nbytes(parts: Sequence[Array]) -> int:
    """Return the number of bytes of a message."""
    return sum(part.nbytes for part in parts)


def message_text(parts: Sequence[Array]) -> str:
    """Return text with the size and dtypes of a message."""
    dtypes = ", ".join(sorted({str(part.dtype) for part in parts}))
    return f"{nbytes(parts):,} bytes of {dtypes}" if dtypes else "nothing"
