"""Sparse all-to-all exchanges: messages between some pairs of ranks, with sizes that only senders know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .protocol import INTERNAL_TAG, Array, Communicator, nbytes

__all__ = [
    "allgather", "ask_owners", "exchange_counts", "group_by_owner", "sparse_alltoall", "sparse_alltoallv",
]  # fmt: skip


def exchange_counts(comm: Communicator, counts: Sequence[int]) -> list[int]:
    """Exchange element counts: from those sent to each rank, return those received from each rank."""
    sent, received = np.array(counts, np.int64), np.zeros(comm.size, np.int64)
    places = [slice(k, k + 1) for k in range(comm.size)]
    comm.alltoallw([[sent[at]] for at in places], [[received[at]] for at in places])
    return [int(n) for n in received]


def sparse_alltoallv(
    comm: Communicator, sends: Sequence[Sequence[Array]], counts: Sequence[int]
) -> list[list[Array]]:
    """Exchange arrays with each rank, one message each way, where the receiver knows the sizes.

    Parameters
    ----------
    comm : Communicator
        The ranks; all of them call this.
    sends : sequence of sequences of ndarray
        For each rank the arrays to send: the same number for every rank, with dtypes and shapes that are the
        same on all ranks except for the first axis; its length is the same in all arrays to one rank.
    counts : sequence of int
        For each rank the length of the first axis of the arrays that it sends to this one.

    Returns
    -------
    list of lists of ndarray
        For each rank the arrays received from it; for this rank itself, the given ones without a copy.
    """
    received: list[list[Array]] = []
    requests = []
    for peer, count in enumerate(counts):
        if peer == comm.rank:
            received.append(list(sends[peer]))
            continue
        received.append([np.empty((count, *part.shape[1:]), part.dtype) for part in sends[peer]])
        if nbytes(received[peer]):
            requests.append(comm.irecv(received[peer], peer, INTERNAL_TAG))
    for step in range(1, comm.size):  # the next rank first, so that not all send to rank 0 at once
        peer = (comm.rank + step) % comm.size
        if nbytes(sends[peer]):
            requests.append(comm.isend(sends[peer], peer, INTERNAL_TAG))
    comm.waitall(requests)
    return received


def sparse_alltoall(comm: Communicator, sends: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """Exchange arrays with each rank like `sparse_alltoallv`, after an exchange of their lengths."""
    return sparse_alltoallv(comm, sends, exchange_counts(comm, [len(parts[0]) for parts in sends]))


def group_by_owner(owners: Array, values: Array, ranks: int) -> tuple[Array, list[Array], list[int]]:
    """Return the order that sorts values by owner (stable), the values of each owner, and their counts."""
    # NumPy sorts integers of 16 bits by their digits
    order = np.argsort(owners.astype(np.uint16) if ranks < 1 << 16 else owners, kind="stable")
    counts = np.bincount(owners, minlength=ranks)
    ends = np.cumsum([0, *counts])
    return order, [values[order[a:b]] for a, b in pairwise(ends)], [int(n) for n in counts]


def ask_owners(comm: Communicator, owners: Array, values: Array, answer: Callable[[Array], Array]) -> Array:
    """Send each value to the rank that owns it, and return the owners' answers in the order of the values.

    Parameters
    ----------
    comm : Communicator
        The ranks; each of them makes this call.
    owners, values : ndarray
        The values of this rank, such as positions, and the rank that owns each.
    answer : callable
        Called on each rank with the values it owns; returns an array with one answer for each.
    """
    order, groups, counts = group_by_owner(owners, values, comm.size)
    asked = sparse_alltoall(comm, [[group] for group in groups])
    replies = sparse_alltoallv(comm, [[answer(group)] for (group,) in asked], counts)
    sorted_answers = np.concatenate([part for (part,) in replies])
    answers = np.empty_like(sorted_answers)
    answers[order] = sorted_answers
    return answers


def allgather(comm: Communicator, value: Any) -> Array:
    """Return the values of all ranks, of one shape and dtype, stacked in the order of ranks."""
    here = np.asarray(value)
    table = np.empty((comm.size, *here.shape), here.dtype)
    comm.allgather(here, table)
    return table
