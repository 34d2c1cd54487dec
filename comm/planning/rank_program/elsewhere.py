"""The interface by which messages are sent from, and received in, local arrays on devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from dcarray.comm.exchange.exchange_plan import PendingExchange
from dcarray.comm.exchange.redistribute import with_window_axes
from dcarray.comm.transport.protocol import Array

__all__ = ["Arriving", "Elsewhere", "finish", "with_axes"]


class Elsewhere(Protocol):
    """A rank's local array whose elements may be on a device.  Messages use the host's memory."""

    def on_host(self, writing: bool = False) -> Array:
        """Return the elements in host memory, up to date; with ``writing``, the caller may write there."""

    def memory(self) -> Array:
        """Return the host's memory, on which `bring` and `take` have windows; it may be out of date."""

    def bring(self, windows: Sequence[Array]) -> None:
        """Copy newer elements of windows on the host's memory there, before they are sent."""

    def take(self, windows: Sequence[Array]) -> None:
        """Make the elements in windows on the host's memory, which messages have written, the newest."""


Arriving = list[Callable[[], None]]
"""What is to be called when the messages of an exchange have arrived."""


def with_axes(array: Array, axes: Sequence[int | None] | None) -> Array:
    """Return an array with the axes of a moved window; ``axes`` is None if they are its own."""
    return array if axes is None else with_window_axes(array, axes)


def finish(exchange: PendingExchange, arriving: Arriving) -> None:
    """Wait for the end of an exchange of messages, and let the arrays take what has arrived."""
    exchange.finish()
    for take in arriving:
        take()
