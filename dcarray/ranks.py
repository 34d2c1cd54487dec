"""Which ranks run this program together, and the lock that whoever records or runs holds.

Nobody is asked for ranks, which starts MPI, unless a launcher has started this process or it simulates ranks.
"""

from __future__ import annotations

import os
import sys
import threading
from functools import cache
from typing import TYPE_CHECKING, Any

from .report import counters

if TYPE_CHECKING:
    from .comm.protocol import Communicator

__all__ = ["LOCK", "launched", "parted", "several", "simulated"]

# One lock for all threads: whoever records or runs holds it.  The calls under it are short, or kernels
# that use every core anyway, and an array may pass from thread to thread.
LOCK = threading.RLock()

# What launchers tell their processes, as `dcarray.comm.job` knows them, which is not imported for less.
_LAUNCHED = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK")


def several() -> Communicator | None:
    """All ranks, if there are more than one."""
    comm = simulated() or _job()
    return comm if comm is not None and comm.size > 1 else None


def simulated() -> Communicator | None:
    """The ranks of `dcarray.comm.run`, if this thread is one of them."""
    local: Any = sys.modules.get("dcarray.comm.local")
    return None if local is None else local.current.get()


def launched() -> bool:
    """Has a launcher started this process, perhaps as one of several ranks?"""
    return any(name in os.environ for name in _LAUNCHED)


@cache
def _job() -> Communicator | None:
    if not launched():
        return None
    from .comm.job import world

    return world()


class parted:
    """Communication, which is counted.

    A simulated rank that waits must not keep the others, which are threads, from the lock.
    """

    __slots__ = ("_before", "_comm", "_state")

    def __enter__(self) -> None:
        lock: Any = LOCK
        self._comm = comm = several()
        self._before = (0, 0, 0) if comm is None else _sent(comm)
        self._state = lock._release_save() if simulated() is not None and lock._is_owned() else None

    def __exit__(self, *exc: object) -> None:
        if self._state is not None:
            lock: Any = LOCK
            lock._acquire_restore(self._state)
        if self._comm is not None:
            messages, sent, collectives = self._before
            now = _sent(self._comm)
            counters.messages += now[0] - messages
            counters.sent += now[1] - sent
            counters.collectives += now[2] - collectives


def _sent(comm: Communicator) -> tuple[int, int, int]:
    counts = comm.counts
    return counts.messages_sent, counts.bytes_sent, counts.collectives
