"""``python -m dcarray run`` as a job of many ranks, each of which runs the script.

What the script prints comes from rank 0 alone; errors come from every rank.  NumPy's generators that are not
seeded are seeded alike.
"""

from __future__ import annotations

import os
import secrets
import sys
from typing import TYPE_CHECKING

import numpy as np

from dcarray.core.counters import counters
from dcarray.core.processes import communicator

if TYPE_CHECKING:
    from dcarray.comm.transport.protocol import Communicator

__all__ = ["begin", "leads", "shared_seed", "table"]


def begin() -> None:
    """Set a rank's output and NumPy's global seed, if this process is a rank."""
    comm = communicator()
    if comm is None:
        return
    if comm.rank:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (until the process ends)
    np.random.seed(shared_seed(comm) % 2**32)


def leads() -> bool:
    """Whether this process prints for all ranks: it is rank 0, or the only one."""
    comm = communicator()
    return comm is None or comm.rank == 0


def shared_seed(comm: Communicator) -> int:
    """Return a random seed, the same on all ranks."""
    from dcarray.comm.transport.agreement import broadcast_object

    return int(broadcast_object(comm, secrets.randbits(128), 0))


def table() -> str:
    """Return a table of each rank's messages as text; empty where there are no ranks.  Collective."""
    comm = communicator()
    if comm is None:
        return ""
    own = np.array([counters.messages, counters.sent, counters.collectives])
    every = np.zeros((comm.size, own.size), own.dtype)
    every[comm.rank] = own
    comm.allreduce(every.copy(), every, "sum")
    lines = ["messages between ranks"]
    for rank, (messages, sent, calls) in enumerate(every.tolist()):
        lines.append(f"  rank {rank}: {messages:,} messages, {sent:,} bytes sent, {calls:,} collective calls")
    return "\n".join(lines)
