"""Exchanges that are repeated between the same places in memory: their messages are prepared once."""

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

_KEPT = 8  # combinations of addresses

_Held = Sequence[tuple[Exchange, Array, Array]]
_Packed = tuple[int, Box, Array]  # number of the exchange, box of its array, contiguous buffer


@dataclass(frozen=True)
class _Prepared:
    """The messages and buffers of one combination of addresses."""

    comm: Communicator
    persistent_messages: PersistentMessages
    going: tuple[_Packed, ...]
    coming: tuple[_Packed, ...]


class PersistentExchanges:
    """The exchanges of one step of a program, which is run repeatedly.

    Attributes
    ----------
    known : dict
        The prepared messages by the addresses, shapes and strides of arrays; None for those met once.
    """

    def __init__(self) -> None:
        self.known: dict[Any, _Prepared | None] = {}
        self._supported = True

    def start(self, comm: Communicator, held: _Held) -> PendingExchange:
        """Begin the exchanges, as `start_exchanges`."""
        key = tuple([(a.__array_interface__["data"][0], a.shape, a.strides) for x in held for a in x[1:]])
        found = self.known.get(key)
        if found is None or found.comm is not comm:
            found = self._prepare(comm, held, key)
            if found is None:
                return start_exchanges(comm, held)
        for k, box, packed in found.going:
            packed[...] = box_view(held[k][1], box)
        request = found.persistent_messages.begin((held, found))
        for plan, source, target in held:
            for here, there in plan.local_copies:
                box_view(target, there)[...] = box_view(source, here)
        arriving = tuple([(box_view(held[k][2], box), packed) for k, box, packed in found.coming])
        return PendingExchange(comm, (request,), arriving)

    def _prepare(self, comm: Communicator, held: _Held, key: Any) -> _Prepared | None:
        """Prepare the messages when their addresses are met for the second time."""
        if not self._supported:
            return None
        if key not in self.known:
            if len(self.known) >= _KEPT:
                self.known.clear()
            self.known[key] = None
            return None
        sends, going = _messages(held, True)
        receives, coming = _messages(held, False)
        starter = comm.persistent_messages(sends, receives)
        if starter is None:
            self._supported = False
            return None
        found = self.known[key] = _Prepared(comm, starter, going, coming)
        return found


def _messages(
    held: _Held, sent: bool
) -> tuple[tuple[tuple[int, tuple[Array, ...]], ...], tuple[_Packed, ...]]:
    """The windows that are sent to or received from each rank, and those that are packed in buffers."""
    boxes: dict[int, list[tuple[int, Box, Array]]] = {}
    for k, (plan, source, target) in enumerate(held):
        for transfer in plan.sends if sent else plan.receives:
            array = source if sent else target
            boxes.setdefault(transfer.peer, []).extend(
                (k, box, box_view(array, box)) for box in transfer.boxes
            )
    messages: list[tuple[int, tuple[Array, ...]]] = []
    packed: list[_Packed] = []
    for peer, found in boxes.items():
        parts = [part for _, _, part in found]
        if any(map(is_fragmented, parts)):
            parts = contiguous_buffers(parts)
            packed += [(k, box, part) for (k, box, _), part in zip(found, parts, strict=True)]
        messages.append((peer, tuple(parts)))
    return tuple(messages), tuple(packed)
