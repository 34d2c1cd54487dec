"""The messages of one rank, given as boxes of its memory: their plan, their number, and their execution.

A plan is made without data and communication.  Both ends of a message list its boxes in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcarray.comm.layout.axes import Run
from dcarray.comm.transport.protocol import INTERNAL_TAG, Array, Communicator, Counts, Request

__all__ = [
    "Box", "Exchange", "PendingExchange", "Transfer", "box_view", "contiguous_buffers", "is_fragmented",
    "start_exchanges",
]  # fmt: skip

Box = tuple[Run, ...]


@dataclass(frozen=True)
class Transfer:
    """One message: the rank at its other end, and the boxes of this rank's memory that it contains, in
    order."""

    peer: int
    boxes: tuple[Box, ...]

    @property
    def elements(self) -> int:
        return sum(math.prod(run.size for run in box) for box in self.boxes)


@dataclass(frozen=True)
class Exchange:
    """All messages of one rank, at most one to and one from each peer.

    Parameters
    ----------
    rank : int
        The rank that the plan is for.
    sends, receives : tuple of Transfer
        The messages, none of them empty.
    local_copies : tuple of (Box, Box)
        Copies within the rank: the box that is read and the one that is written.
    """

    rank: int
    sends: tuple[Transfer, ...]
    receives: tuple[Transfer, ...]
    local_copies: tuple[tuple[Box, Box], ...] = ()

    def boxes_read(self) -> list[Box]:
        """Return the boxes of the array that is read."""
        return [box for one in self.sends for box in one.boxes] + [here for here, _ in self.local_copies]

    def boxes_written(self) -> list[Box]:
        """Return the boxes of the array that is written."""
        return [box for one in self.receives for box in one.boxes] + [there for _, there in self.local_copies]

    def counts(self, itemsize: int) -> Counts:
        """Return the numbers of messages and bytes of this plan for an array of items of `itemsize` bytes."""
        return Counts(
            messages_sent=len(self.sends),
            bytes_sent=sum(t.elements for t in self.sends) * itemsize,
            messages_received=len(self.receives),
            bytes_received=sum(t.elements for t in self.receives) * itemsize,
        )

    def run(self, comm: Communicator, source: Array, target: Array) -> None:
        """Run the exchange from `source` to `target`, which may be the same array."""
        start_exchanges(comm, [(self, source, target)]).finish()


@dataclass(frozen=True)
class PendingExchange:
    """An exchange in progress; `packed` has pairs of a window and the contiguous buffer in which it
    arrives."""

    comm: Communicator
    requests: tuple[Request, ...]
    packed: tuple[tuple[Array, Array], ...] = ()

    def finish(self) -> None:
        """Wait until all messages have arrived, and sent memory may be overwritten."""
        self.comm.waitall(self.requests)
        for part, arrived in self.packed:
            part[...] = arrived


def box_view(array: Array, box: Box) -> Array:
    """Return a view of a box of an array; an axis with a run of several intervals becomes two axes."""
    if all(run.repeats == 1 for run in box):
        places: tuple[Any, ...] = tuple(slice(run.start, run.start + run.length) for run in box)
        return array[(*places, ...)]
    begin: tuple[Any, ...] = tuple(slice(run.start, None) for run in box)
    corner = array[(*begin, ...)]  # an array, also where there are no axes
    shape: list[int] = []
    strides: list[int] = []
    for run, stride in zip(box, array.strides, strict=True):
        if run.repeats > 1:
            shape.append(run.repeats)
            strides.append(run.step * stride)
        if run.repeats == 1 or run.length > 1:
            shape.append(run.length)
            strides.append(stride)
    view: Any = np.lib.stride_tricks.as_strided(corner, shape, strides)
    return view  # type: ignore[no-any-return]


def start_exchanges(comm: Communicator, items: Iterable[tuple[Exchange, Array, Array]]) -> PendingExchange:
    """Begin exchanges of several arrays together, with one message for each pair of ranks.

    Parameters
    ----------
    comm : Communicator
        The ranks; all of them call this with as many items in the same order.
    items : iterable of (Exchange, ndarray, ndarray)
        The plans of this rank, each with the array to read and the one to write.

    Returns
    -------
    PendingExchange
        The exchange; its ``finish()`` must be called before the arrays are used.
    """
    held = list(items)
    sends: dict[int, list[Array]] = {}
    receives: dict[int, list[Array]] = {}
    for plan, source, target in held:
        _add_windows(sends, plan.sends, source)
        _add_windows(receives, plan.receives, target)
    packed: list[tuple[Array, Array]] = []
    for parts in receives.values():
        if any(map(is_fragmented, parts)):
            windows, parts[:] = parts[:], contiguous_buffers(parts)
            packed += zip(windows, parts, strict=True)
    for parts in sends.values():
        if any(map(is_fragmented, parts)):
            windows, parts[:] = parts[:], contiguous_buffers(parts)
            for part, copy in zip(windows, parts, strict=True):
                copy[...] = part
    requests = [comm.irecv(parts, peer, INTERNAL_TAG) for peer, parts in receives.items()]
    requests += [comm.isend(parts, peer, INTERNAL_TAG) for peer, parts in sends.items()]
    for plan, source, target in held:
        for here, there in plan.local_copies:
            box_view(target, there)[...] = box_view(source, here)
    return PendingExchange(comm, tuple(requests), tuple(packed))


def is_fragmented(part: Array) -> bool:
    """Whether a window consists of many pieces, each smaller than a cache line.

    NumPy copies such windows several times faster than MPI libraries process a derived type.
    """
    if part.ndim == 0 or part.size < 16:
        return False
    inner = part.shape[-1] if part.strides[-1] == part.itemsize else 1
    return bool(inner * part.itemsize < 64 and part.size > inner)


def contiguous_buffers(parts: Sequence[Array]) -> list[Array]:
    """Return a contiguous buffer for the elements of each window.

    The buffers are in one block of memory, so that one MPI datatype describes all messages of these sizes.
    """
    places, size = [], 0
    for part in parts:
        places.append(size)
        size += -(-part.nbytes // 16) * 16
    block = np.empty(size, np.uint8)
    return [
        block[at : at + part.nbytes].view(part.dtype).reshape(part.shape)
        for at, part in zip(places, parts, strict=True)
    ]


def _add_windows(into: dict[int, list[Array]], transfers: Sequence[Transfer], array: Array) -> None:
    for transfer in transfers:
        into.setdefault(transfer.peer, []).extend(box_view(array, box) for box in transfer.boxes)
