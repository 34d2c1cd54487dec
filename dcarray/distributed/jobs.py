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

__all__ = ["begin", "entropy", "leads", "table"]


def begin() -> None:
    """Make this process one of many, if it is."""
    comm = communicator()
    if comm is None:
        return
    if comm.rank:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (until the process ends)
    np.random.seed(entropy(comm) % 2**32)


def leads() -> bool:
    """Is this the process that says what is to be said once?"""
    comm = communicator()
    return comm is None or comm.rank == 0


def entropy(comm: Communicator) -> int:
    """A number that nobody knows before, the same on all ranks."""
    from dcarray.comm.transport.agreement import broadcast_object

    return int(broadcast_object(comm, secrets.randbits(128), 0))


def table() -> str:
    """What each rank has sent for arrays in blocks, as text; empty where there are no ranks.

    All ranks ask for it."""
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
