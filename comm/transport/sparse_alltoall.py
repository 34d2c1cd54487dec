"""Messages whose sizes only their senders know: counts first, then one message for each pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .protocol import INTERNAL_TAG, Array, Communicator, nbytes

__all__ = ["allgather", "exchange_counts", "order_by_owner", "sparse_alltoall", "sparse_alltoallv"]


def exchange_counts(comm: Communicator, counts: Sequence[int]) -> list[int]:
    """How many elements each rank sends to this one, from how many this one sends to each."""
    going, coming = np.array(counts, np.int64), np.zeros(comm.size, np.int64)
    places = [slice(k, k + 1) for k in range(comm.size)]
    comm.alltoallw([[going[at]] for at in places], [[coming[at]] for at in places])
    return [int(n) for n in coming]


def sparse_alltoallv(
    comm: Communicator, sends: Sequence[Sequence[Array]], counts: Sequence[int]
) -> list[list[Array]]:
    """Send some arrays to each rank, all in one message, where the sizes are known at both ends.

    Parameters
    ----------
    comm : Communicator
        The ranks; all of them call this.
    sends : sequence of sequences of ndarray
        For each rank the arrays that go there: as many for every rank, and on all of them of the same dtypes
        and shapes but for the first axis, which is as long in all that go to one rank.
    counts : sequence of int
        For each rank the length of what comes from it.

    Returns
    -------
    list of lists of ndarray
        For each rank the arrays that have come from it; this rank's own are those given.
    """
    got: list[list[Array]] = []
    requests = []
    for peer, count in enumerate(counts):
        if peer == comm.rank:
            got.append(list(sends[peer]))
            continue
        got.append([np.empty((count, *part.shape[1:]), part.dtype) for part in sends[peer]])
        if nbytes(got[peer]):
            requests.append(comm.irecv(got[peer], peer, INTERNAL_TAG))
    for step in range(1, comm.size):  # the next rank first, so that not all send to rank 0 at once
        peer = (comm.rank + step) % comm.size
        if nbytes(sends[peer]):
            requests.append(comm.isend(sends[peer], peer, INTERNAL_TAG))
    comm.waitall(requests)
    return got


def sparse_alltoall(comm: Communicator, sends: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """Send some arrays to each rank, as `sparse_alltoallv` does, of sizes that the others do not know."""
    return sparse_alltoallv(comm, sends, exchange_counts(comm, [len(parts[0]) for parts in sends]))


def order_by_owner(owners: Array, ranks: int) -> Array:
    """The order in which elements are in that of the ranks that own them, and else in their own."""
    # NumPy sorts integers of 16 bits by their digits
    return np.argsort(owners.astype(np.uint16) if ranks < 1 << 16 else owners, kind="stable")


def allgather(comm: Communicator, value: Any) -> Array:
    """A value of every rank, in the order of ranks; arrays are of one shape and dtype everywhere."""
    here = np.asarray(value)
    table = np.empty((comm.size, *here.shape), here.dtype)
    comm.allgather(here, table)
    return table
