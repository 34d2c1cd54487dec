"""A communicator over MPI processes with mpi4py, which only the modules named mpi* import.

Strided windows of arrays are sent and received as MPI derived datatypes, without packing here.
"""

from __future__ import annotations

import atexit
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from types import TracebackType
from typing import Any

import numpy as np
from mpi4py import MPI

from .call_location import Location, caller, location_text, traceback_text
from .deadlock import AnyOf, MessageEnd
from .errors import CommError, MismatchError, RankError
from .mpi_persistent import MessageGroup, MpiPersistentMessages
from .mpi_requests import keep_until_done, wait_all
from .mpi_service import Job, abort
from .mpi_step_check import StepCheck, decode_words, encode_words, step_hash
from .mpi_types import absolute_type, buffer_of
from .protocol import (
    INTERNAL_TAG,
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

__all__ = ["MpiCommunicator", "world"]

# MPI's predefined operations where they agree with NumPy's.  Its maximum may drop a NaN, its logical ones
# give integers.
_PREDEFINED: dict[tuple[str, str], MPI.Op] = {
    **{("sum", kind): MPI.SUM for kind in "iufc"},
    **{("prod", kind): MPI.PROD for kind in "iufc"},
    **{("max", kind): MPI.MAX for kind in "iu"},
    **{("min", kind): MPI.MIN for kind in "iu"},
    **{("band", kind): MPI.BAND for kind in "iu"},
    **{("bor", kind): MPI.BOR for kind in "iu"},
    **{("bxor", kind): MPI.BXOR for kind in "iu"},
}


# ---- messages ----------------------------------------------------------------------------------------
class _Message:
    """A pending message, which keeps references to the arrays that MPI reads or writes."""

    def __init__(
        self,
        group: MpiCommunicator,
        request: MPI.Request,
        parts: Sequence[Array],
        peer: int,
        tag: int,
        sent: bool,
    ) -> None:
        self.request, self.parts, self.peer, self.sent = request, parts, peer, sent
        self.job = group.job
        if self.job is not None:
            mine, other = group.ranks[group.rank], group.ranks[peer]
            self.channel = (group.name, mine, other, tag) if sent else (group.name, other, mine, tag)
            begun = self.job.sent if sent else self.job.received
            begun[self.channel] += 1
            self.number = begun[self.channel]

    def wait(self) -> None:
        _wait_all([self])

    @property
    def nbytes(self) -> int:
        return nbytes(self.parts)

    @property
    def what(self) -> str:
        return message_text(self.parts)

    def need(self) -> MessageEnd:
        return MessageEnd(self.channel, self.number, self.sent, self.what)

    def __del__(self, keep: Callable[..., None] = keep_until_done) -> None:
        keep([self.request], self.parts)


def _wait_all(messages: Sequence[_Message]) -> None:
    wait_all(
        messages[0].job if messages else None,
        messages,
        [message.request for message in messages],
        lambda: [m.need() for m in messages if m.request != MPI.REQUEST_NULL],
    )


class MpiCommunicator:
    """A group of MPI processes; see `dcarray.comm.transport.protocol.Communicator`.

    Parameters
    ----------
    comm : MPI.Intracomm
    counts : Counts
        The counters of this rank's messages.
    name : object
        The identifier of the group: the same on all its ranks, and different from those of other groups.
    ranks : sequence of int
        The numbers in MPI_COMM_WORLD of the group's ranks.
    watch : StepCheck or None
        The check that ranks call the same operations; None: no check.
    """

    def __init__(
        self, comm: MPI.Intracomm, counts: Counts, name: Any, ranks: Sequence[int], watch: StepCheck | None
    ) -> None:
        self.counts = counts
        self.name, self.ranks = name, ranks
        self._comm, self._watch = comm, watch
        self.job = None if watch is None else watch.job
        self.rank: int = comm.rank
        self.size: int = comm.size
        self._subs: dict[tuple[int, ...], MpiCommunicator] = {}

    def isend(self, parts: Sequence[Array], dest: int, tag: int) -> Request:
        sendable(parts)
        if check_rank(dest, self.size) != self.rank:
            self.counts.message(True, nbytes(parts))
        return self._isend(parts, dest, check_tag(tag))

    def irecv(self, parts: Sequence[Array], source: int, tag: int) -> Request:
        writable(parts)
        if check_rank(source, self.size) != self.rank:
            self.counts.message(False, nbytes(parts))
        return self._irecv(parts, source, check_tag(tag))

    def check_order(self) -> None:
        """Raise the error if a mismatch or deadlock of the job has been found, before a message begins."""
        if self.job is not None:
            self.job.check_order()

    def _isend(self, parts: Sequence[Array], dest: int, tag: int) -> _Message:
        self.check_order()
        return _Message(self, self._comm.Isend(buffer_of(parts), dest, tag), parts, dest, tag, True)

    def _irecv(self, parts: Sequence[Array], source: int, tag: int) -> _Message:
        self.check_order()
        return _Message(self, self._comm.Irecv(buffer_of(parts), source, tag), parts, source, tag, False)

    def persistent_messages(
        self, sends: Sequence[tuple[int, Sequence[Array]]], receives: Sequence[tuple[int, Sequence[Array]]]
    ) -> PersistentMessages | None:
        return MpiPersistentMessages(self, self._comm, sends, receives)

    def waitall(self, requests: Iterable[Request]) -> None:
        held = list(requests)
        _wait_all([request for request in held if isinstance(request, _Message)])
        for request in held:
            if isinstance(request, MessageGroup):
                request.wait()

    def ready(self, requests: Sequence[Request], wait: bool) -> list[int]:
        held = [request for request in requests if isinstance(request, _Message)]
        ready: list[int] = []

        def through() -> bool:
            ready[:] = [k for k, message in enumerate(held) if message.request.Get_status()]
            return bool(ready)

        if not wait:
            through()
        elif self.job is not None:
            self.job.wait(through, lambda: [AnyOf([message.need() for message in held])])
        else:
            while not through():
                pass
        return ready

    def step(self, what: tuple[Any, ...], where: Location | None = None) -> None:
        if self._watch is not None:
            self._watch.step(what, where)

    def share(self, what: tuple[Any, ...], bits: int, where: Location | None = None) -> int:
        self.counts.collective(-(-SHARED_BITS // 8))
        if self._watch is not None:
            return self._watch.step_and_wait(what, bits, where)
        words = encode_words(step_hash(what), bits)
        self._comm.Allreduce(MPI.IN_PLACE, [words, 4, MPI.INT64_T], MPI.BOR)
        combined = decode_words(words)
        if combined is None:
            at = location_text(where or caller())
            raise MismatchError(f"rank {self.rank} calls {step_text(what)} ({at}) where another one does not")
        return combined

    def _synchronise(self, what: tuple[Any, ...]) -> None:
        """Wait until all ranks are about to perform the same operation, so that none blocks inside MPI."""
        if self._watch is not None:
            self._watch.step_and_wait(what)

    # ---- collective operations -------------------------------------------------------------------
    def bcast(self, array: Array, root: int) -> None:
        sendable([array]) if self.rank == root else writable([array])
        check_rank(root, self.size)
        self.counts.collective(array.nbytes)
        self._synchronise(("bcast", root, array.nbytes, array.dtype))
        self._comm.Bcast(buffer_of([array]), root)

    def reduce(self, array: Array, out: Array | None, op: str, root: int) -> None:
        operation, kind = _reduction_operation(op, array.dtype)
        check_rank(root, self.size)
        self.counts.collective(array.nbytes)
        self._synchronise(("reduce", root, op, array.shape, array.dtype))
        if self.rank != root:
            here = np.ascontiguousarray(array)
            self._comm.Reduce([here, here.size, kind], None, operation, root)
        else:
            assert out is not None
            total = array.copy(order="C")
            self._comm.Reduce(MPI.IN_PLACE, [total, total.size, kind], operation, root)
            out[...] = total

    def allreduce(self, array: Array, out: Array, op: str) -> None:
        operation, kind = _reduction_operation(op, array.dtype)
        self.counts.collective(array.nbytes)
        self._synchronise(("allreduce", op, array.shape, array.dtype))
        total = (
            out if out.flags.c_contiguous and out.dtype == array.dtype else np.empty_like(array, order="C")
        )
        if total is not array:
            total[...] = array
        self._comm.Allreduce(MPI.IN_PLACE, [total, total.size, kind], operation)
        if total is not out:
            out[...] = total

    def allgather(self, array: Array, out: Array) -> None:
        sendable([array])
        self.counts.collective(array.nbytes)
        here = np.ascontiguousarray(array).reshape(-1)
        total = out if out.flags.c_contiguous else np.empty_like(out, order="C")
        into = total.reshape(-1)
        self._synchronise(("allgather", array.shape, array.dtype))
        if here.nbytes:
            self._comm.Allgather(here.view(np.uint8), into.view(np.uint8))
        if total is not out:
            out[...] = total

    def alltoallw(self, sends: Sequence[Sequence[Array]], receives: Sequence[Sequence[Array]]) -> None:
        for rank in range(self.size):
            sendable(sends[rank])
            writable(receives[rank])
            if rank != self.rank:
                for sent, parts in ((True, sends[rank]), (False, receives[rank])):
                    if nbytes(parts):
                        self.counts.message(sent, nbytes(parts))
        self._synchronise(("alltoallw",))
        send_types, receive_types = ([absolute_type(parts) for parts in one] for one in (sends, receives))
        counts, displacements = [1] * self.size, [0] * self.size
        self._comm.Alltoallw(
            [MPI.BOTTOM, counts, displacements, send_types],
            [MPI.BOTTOM, counts, displacements, receive_types],
        )
        for kind in send_types + receive_types:
            kind.Free()

    def barrier(self) -> None:
        if self._watch is None:
            self._comm.Barrier()
        else:
            self._synchronise(("barrier",))

    # ---- groups ----------------------------------------------------------------------------------
    def sub(self, ranks: Sequence[int]) -> Communicator:
        group = tuple(check_rank(r, self.size) for r in ranks)
        if self.rank not in group or len(set(group)) != len(group):
            raise CommError(f"rank {self.rank} asks for a communicator of the ranks {group}")
        if group not in self._subs:
            if self._watch is not None:
                self._meet_group(group)
            handle = self._comm.Create_group(self._comm.Get_group().Incl(list(group)))
            name, ranks = (self.name, group), tuple(self.ranks[rank] for rank in group)
            watch = None if self.job is None else StepCheck(self.job, name, ranks, handle.Idup())
            self._subs[group] = MpiCommunicator(handle, self.counts, name, ranks, watch)
        return self._subs[group]

    def _meet_group(self, group: Sequence[int]) -> None:
        """Wait until all ranks of a new group are about to create its communicator.

        They send a message to the group's first rank, which answers all of them.
        """
        nothing: list[Array] = []
        first, others = group[0], group[1:]
        if self.rank == first:
            _wait_all([self._irecv(nothing, rank, INTERNAL_TAG) for rank in others])
            _wait_all([self._isend(nothing, rank, INTERNAL_TAG) for rank in others])
        else:
            _wait_all([self._isend(nothing, first, INTERNAL_TAG), self._irecv(nothing, first, INTERNAL_TAG)])

    def abort(self, code: int) -> None:
        abort(code)


# ---- reductions --------------------------------------------------------------------------------------
def _reduction_operation(name: str, dtype: np.dtype[Any]) -> tuple[MPI.Op, MPI.Datatype]:
    """Return the MPI operation and element type of a reduction."""
    ufunc = reduction_ufunc(name, dtype)
    predefined = _PREDEFINED.get((name, dtype.kind))
    # MPI has no float16 everywhere, and knows the machine's byte order only.
    if predefined is not None and dtype.isnative and dtype.char != "e":
        return predefined, MPI.Datatype.fromcode(dtype.char)
    return _ufunc_operation(ufunc), _element_type(dtype)


@cache
def _element_type(dtype: np.dtype[Any]) -> MPI.Datatype:
    """Return an MPI datatype of an element, whose MPI name is the dtype's text (``dtype.str``)."""
    datatype = MPI.BYTE.Create_contiguous(dtype.itemsize).Commit()
    datatype.Set_name(dtype.str)
    return datatype


@cache
def _ufunc_operation(ufunc: np.ufunc) -> MPI.Op:
    """Return the MPI operation that applies a ufunc to datatypes of `_element_type`.

    The maximum of two zeros, or two NaNs, is the first one, so ``maximum`` and ``minimum`` do not commute:
    with different orders the sign of the result could differ between ranks.
    """

    def combine(left: MPI.buffer, right: MPI.buffer, kind: MPI.Datatype) -> None:
        dtype: np.dtype[Any] = np.dtype(kind.Get_name())
        into: Array = np.frombuffer(right, dtype)
        ufunc(np.frombuffer(left, dtype), into, out=into)

    return MPI.Op.Create(combine, commute=ufunc not in (np.maximum, np.minimum))


# ---- the world ---------------------------------------------------------------------------------------
def world(watched: bool) -> MpiCommunicator:
    """Return the communicator of all processes of the job; from then on, one that fails ends all others.

    Parameters
    ----------
    watched : bool
        Check the ranks' operations, and end waits for a failed rank; the value of the first call counts.

    Raises
    ------
    CommError
        When MPI has not been initialised, or has been finalised.
    """
    if not MPI.Is_initialized() or MPI.Is_finalized():
        raise CommError("MPI is not initialised (mpi4py.rc.initialize is off, or it has been finalised)")
    if (known := _WORLD.get("world")) is None:
        with _MAKING:  # two threads would make two, in an order that differs between ranks
            known = _WORLD.get("world") or _world(watched)
    return known


_WORLD: dict[str, MpiCommunicator] = {}
_MAKING = threading.Lock()


def _world(watched: bool) -> MpiCommunicator:
    job, watch, size = None, None, MPI.COMM_WORLD.size
    if size > 1 and watched:
        job = Job()
        watch = StepCheck(job, (), range(size), MPI.COMM_WORLD.Idup())
        job.exit_watcher.install()
        atexit.register(job.end)
    if size > 1:
        _end_on_exceptions(job)
    ranks = _WORLD["world"] = MpiCommunicator(MPI.COMM_WORLD, Counts(), (), range(size), watch)
    return ranks


def _end_on_exceptions(job: Job | None) -> None:
    """Install the exception hook that ends all ranks when an exception ends this one."""
    previous, who = sys.excepthook, f"rank {MPI.COMM_WORLD.rank} of {MPI.COMM_WORLD.size}"

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        text = "".join(traceback.format_exception(kind, error, trace))
        if isinstance(error, RankError) and job is not None:  # the failed rank shows its traceback
            why = str(error).splitlines()[0].rstrip(":")
            _write_stderr(f"{who} ended at {traceback_text(trace)}: {why}\n")
        elif previous is sys.__excepthook__:
            _write_stderr(f"{who} failed:\n{text}")
        else:
            _write_stderr(f"{who} failed:\n")
            previous(kind, error, trace)
        status = 130 if isinstance(error, KeyboardInterrupt) else 1
        if job is None or MPI.Is_finalized():
            abort(status)
        else:
            job.fail(error, f"rank {job.rank} failed:\n{text}", status)

    sys.excepthook = hook


def _write_stderr(text: str) -> None:
    """Write text to standard error in one call, so that the output of several ranks does not mix."""
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()
