"""The communicator of the ranks that run this program, and the lock that a thread holds to record or run.

MPI is not started unless a launcher has started this process; ranks may also be simulated by threads.
"""

from __future__ import annotations

import os
import sys
import threading
from functools import cache
from typing import TYPE_CHECKING, Any

from dcarray.lowering.runtime.forks import held_in_forks

from .counters import counters

if TYPE_CHECKING:
    from dcarray.comm.transport.protocol import Communicator

__all__ = [
    "LOCK", "communicating", "communicator", "foreign_thread_error", "is_launched", "rank_on_node",
    "simulated",
]  # fmt: skip

# One lock for all threads, held to record and to run: the calls under it are short, or kernels that use every
# core anyway, and an array may pass from thread to thread.
LOCK = held_in_forks(threading.RLock())

# The thread that works on distributed arrays.
_turn: threading.Thread = threading.main_thread()

# Environment variables that launchers set, as `dcarray.comm.transport.world` knows them, which is imported
# only where one is set.
_LAUNCHED = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK")
# Those in which they say which rank of its node a process is: MPICH and Intel MPI, Open MPI, Slurm, MVAPICH.
_ON_NODE = ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MV2_COMM_WORLD_LOCAL_RANK")


def communicator() -> Communicator | None:
    """Return the communicator of all ranks, if there are several; else None."""
    comm = simulated() or _job()
    return comm if comm is not None and comm.size > 1 else None


def simulated() -> Communicator | None:
    """Return the communicator of `dcarray.comm.run`, if this thread is one of its ranks."""
    local: Any = sys.modules.get("dcarray.comm.transport.simulated_ranks")
    return None if local is None else local.current.get()


def foreign_thread_error() -> Exception:
    """Return the error for a thread that works on arrays of a simulated rank without being that rank."""
    from dcarray.comm.transport.errors import CommError

    return CommError(
        f"thread {threading.current_thread().name!r} is not the simulated rank whose array this is: only the "
        "thread that dcarray.comm.run has made a rank may work on arrays in blocks, or on what it has pending"
    )


def is_launched() -> bool:
    """Whether a launcher has started this process, perhaps as one of several ranks."""
    return any(name in os.environ for name in _LAUNCHED)


def rank_on_node() -> int:
    """Return the number of this rank among those of its node, as the launcher says; else among all."""
    comm = communicator()
    if simulated() is None:
        for name in _ON_NODE:
            if os.environ.get(name, "").isdecimal():
                return int(os.environ[name])
    return 0 if comm is None else comm.rank


@cache
def _job() -> Communicator | None:
    if not is_launched():
        return None
    from dcarray.comm.transport.world import world

    return world()


class communicating:
    """A context in which ranks communicate; counts the messages.

    A simulated rank that waits must not keep the others, which are threads, from the lock.  One thread of a
    process communicates at a time; when it changes, the ranks compare which thread it is.

    Raises
    ------
    MismatchError
        On all ranks, when threads communicate in different orders on different ranks.
    RuntimeError
        On all ranks, when several threads have the same name.
    """

    __slots__ = ("_before", "_comm", "_held", "_state")

    def __enter__(self) -> None:
        lock: Any = LOCK
        self._comm = comm = communicator()
        self._before = (0, 0, 0) if comm is None else _sent(comm)
        self._state, self._held = None, False
        if simulated() is not None:
            self._state = lock._release_save() if lock._is_owned() else None
        elif comm is not None:
            LOCK.acquire()
            self._held = True
            if threading.current_thread() is not _turn:
                try:
                    _take_turn(comm)
                except BaseException:
                    LOCK.release()
                    raise

    def __exit__(self, *exc: object) -> None:
        if self._state is not None:
            lock: Any = LOCK
            lock._acquire_restore(self._state)
        if self._held:
            LOCK.release()
        if self._comm is not None:
            messages, sent, collectives = self._before
            now = _sent(self._comm)
            counters.messages += now[0] - messages
            counters.sent += now[1] - sent
            counters.collectives += now[2] - collectives


def _take_turn(comm: Communicator) -> None:
    """Agree with the other ranks that this thread works on distributed arrays from now on.

    With different orders, ranks would exchange blocks of different threads' arrays.
    """
    global _turn
    me = threading.current_thread()
    alike = any(other is not me and other.name == me.name for other in threading.enumerate())
    if comm.share(("thread", me.name), int(alike)):
        raise RuntimeError(
            f"several threads named {me.name!r} work on arrays in blocks: ranks tell threads apart by their "
            "names, since only one thread of a rank may at a time, in the same order on all ranks"
        )
    _turn = me


def _sent(comm: Communicator) -> tuple[int, int, int]:
    counts = comm.counts
    return counts.messages_sent, counts.bytes_sent, counts.collectives
