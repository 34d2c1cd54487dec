"""Persistent exchanges: if one is repeated with the same memory, its messages are prepared only once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dcarray.comm.transport.protocol import Array, Communicator, PersistentMessages

from .exchange_plan import (
    Box,
    Exchange,
    PendingExchange,
    box_view,
    contiguous_buffers,
    is_fragmented,
    start_exchanges,
)

__all__ = ["PersistentExchanges"]

_MAX_PREPARED = 8  # combinations of addresses

_Items = Sequence[tuple[Exchange, Array, Array]]
_Packed = tuple[int, Box, Array]  # number of the exchange, box of its array, contiguous buffer


@dataclass(frozen=True)
class _Prepared:
    """The prepared messages and buffers for one combination of addresses."""

    comm: Communicator
    persistent_messages: PersistentMessages
    packed_sends: tuple[_Packed, ...]
    packed_receives: tuple[_Packed, ...]


class PersistentExchanges:
    """The exchanges of one step of a program that is run repeatedly.

    Attributes
    ----------
    known : dict
        The prepared messages by the addresses, shapes and strides of arrays; None for those seen only once.
    """

    def __init__(self) -> None:
        self.known: dict[Any, _Prepared | None] = {}
        self._supported = True

    def start(self, comm: Communicator, items: _Items) -> PendingExchange:
        """Begin the exchanges, like `start_exchanges`."""
        key = tuple([(a.__array_interface__["data"][0], a.shape, a.strides) for x in items for a in x[1:]])
        ready = self.known.get(key)
        if ready is None or ready.comm is not comm:
            ready = self._prepare(comm, items, key)
            if ready is None:
                return start_exchanges(comm, items)
        for k, box, packed in ready.packed_sends:
            packed[...] = box_view(items[k][1], box)
        request = ready.persistent_messages.begin((items, ready))
        for plan, source, target in items:
            for here, there in plan.local_copies:
                box_view(target, there)[...] = box_view(source, here)
        arriving = tuple([(box_view(items[k][2], box), packed) for k, box, packed in ready.packed_receives])
        return PendingExchange(comm, (request,), arriving)

    def _prepare(self, comm: Communicator, items: _Items, key: Any) -> _Prepared | None:
        """Prepare the messages if their addresses are seen for the second time; else return None."""
        if not self._supported:
            return None
        if key not in self.known:
            if len(self.known) >= _MAX_PREPARED:
                self.known.clear()
            self.known[key] = None
            return None
        sends, packed_sends = _messages(items, True)
        receives, packed_receives = _messages(items, False)
        starter = comm.persistent_messages(sends, receives)
        if starter is None:
            self._supported = False
            return None
        prepared = self.known[key] = _Prepared(comm, starter, packed_sends, packed_receives)
        return prepared


def _messages(
    items: _Items, sent: bool
) -> tuple[tuple[tuple[int, tuple[Array, ...]], ...], tuple[_Packed, ...]]:
    """Return the windows to send to (or receive from) each rank, and those that are packed into buffers."""
    boxes: dict[int, list[tuple[int, Box, Array]]] = {}
    for k, (plan, source, target) in enumerate(items):
        for transfer in plan.sends if sent else plan.receives:
            array = source if sent else target
            boxes.setdefault(transfer.peer, []).extend(
                (k, box, box_view(array, box)) for box in transfer.boxes
            )
    messages: list[tuple[int, tuple[Array, ...]]] = []
    packed: list[_Packed] = []
    for peer, windows in boxes.items():
        parts = [part for _, _, part in windows]
        if any(map(is_fragmented, parts)):
            parts = contiguous_buffers(parts)
            packed += [(k, box, part) for (k, box, _), part in zip(windows, parts, strict=True)]
        messages.append((peer, tuple(parts)))
    return tuple(messages), tuple(packed)
