"""The interface by which messages are sent from, and received in, local arrays on devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dcarray.comm.exchange.exchange_plan import PendingExchange
from dcarray.comm.transport.protocol import Array

__all__ = ["Arriving", "Elsewhere", "finish"]


class Elsewhere(Protocol):
    """A rank's local array whose elements may be on a device, while messages use the host's memory."""

    def on_host(self, writing: bool = False) -> Array:
        """Return the elements in host memory, up to date; with ``writing``, the caller may write there."""

    def memory(self) -> Array:
        """Return the host's memory, on which `bring` and `take` have windows; it may be out of date."""

    def bring(self, windows: Sequence[Array]) -> None:
        """Copy newer elements of windows on the host's memory there, before they are sent."""

    def take(self, windows: Sequence[Array]) -> None:
        """Make the elements in windows on the host's memory, which messages have written, the newest."""


Arriving = list[tuple[Elsewhere, list[Array]]]
"""Local arrays, each with the windows on its host memory to which an exchange of messages writes."""


def finish(exchange: PendingExchange, arriving: Arriving) -> None:
    """Wait for the end of an exchange of messages, and let the arrays take what has arrived."""
    exchange.finish()
    for held, windows in arriving:
        held.take(windows)
