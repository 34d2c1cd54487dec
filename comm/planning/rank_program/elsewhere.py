"""The interface by which messages are sent from, and received in, local arrays on devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from dcarray.comm.exchange.exchange_plan import PendingExchange, Transfer, box_view, is_fragmented
from dcarray.comm.exchange.redistribute import with_window_axes
from dcarray.comm.transport.protocol import Array

__all__ = ["Arriving", "Elsewhere", "direct_memory", "finish", "with_axes"]


class Elsewhere(Protocol):
    """A rank's local array whose elements may be on a device.

    Messages use the host's memory, or where MPI takes it (`direct_memory`) the device's.
    """

    def on_host(self, writing: bool = False) -> Array:
        """Return the elements in host memory, up to date; with ``writing``, the caller may write there."""

    def memory(self) -> Array:
        """Return the host's memory, on which `bring` and `take` have windows; it may be out of date."""

    def bring(self, windows: Sequence[Array]) -> None:
        """Copy newer elements of windows on the host's memory there, before they are sent."""

    def take(self, windows: Sequence[Array]) -> None:
        """Make the elements in windows on the host's memory, which messages have written, the newest."""

    def device_memory(self) -> Array | None:
        """Wait for the device, and return an array on its memory; None if MPI could not use that, or if it
        does not have the newest elements.  Only MPI may read or write its elements: the host cannot."""

    def written(self) -> None:
        """Note that the elements in the device's memory have been written to."""


Arriving = list[Callable[[], None]]
"""What is to be called when the messages of an exchange have arrived."""


def with_axes(array: Array, axes: Sequence[int | None] | None) -> Array:
    """Return an array with the axes of a moved window; ``axes`` is None if they are its own."""
    return array if axes is None else with_window_axes(array, axes)


def direct_memory(
    ends: Iterable[tuple[Any, Sequence[int | None] | None, Sequence[Transfer]]],
) -> list[Array] | None:
    """Return the arrays in the memory of devices between which MPI sends the messages of an exchange.

    Parameters
    ----------
    ends : iterable of (ndarray or Elsewhere, sequence or None, sequence of Transfer)
        For each exchanged array the local array, the axes of a moved window, and its part of the messages.

    Returns
    -------
    list of ndarray or None
        None if messages must go through the host: unless all local arrays are on devices, and each message
        is one contiguous piece of memory.
    """
    arrays: list[Array] = []
    peers: set[int] = set()
    for held, axes, transfers in ends:
        memory = None if isinstance(held, np.ndarray) else held.device_memory()
        if memory is None:
            return None
        memory = with_axes(memory, axes)
        for one in transfers:
            window = box_view(memory, one.boxes[0])
            whole = len(one.boxes) == 1 and window.flags.c_contiguous and not is_fragmented(window)
            if one.peer in peers or not whole:
                return None
            peers.add(one.peer)
        arrays.append(memory)
    return arrays


def finish(exchange: PendingExchange, arriving: Arriving) -> None:
    """Wait for the end of an exchange of messages, and let the arrays take what has arrived."""
    exchange.finish()
    for take in arriving:
        take()
