"""Local arrays whose elements may be in other memory than the host's, of which messages are sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dcarray.comm.exchange.exchange_plan import PendingExchange
from dcarray.comm.transport.protocol import Array

__all__ = ["Arriving", "Elsewhere", "finish"]


class Elsewhere(Protocol):
    """A local array whose elements may be in other memory than the host's, of which messages are sent."""

    def on_host(self, writing: bool = False) -> Array:
        """Return the elements on the host, for reading, or to be written to as well."""

    def memory(self) -> Array:
        """Return the host's memory, of which windows are brought and taken."""

    def bring(self, windows: Sequence[Array]) -> None:
        """Bring windows of the host's memory up to date."""

    def take(self, windows: Sequence[Array]) -> None:
        """Take windows of the host's memory that have been written to."""


Arriving = list[tuple[Elsewhere, list[Array]]]
"""Local arrays, with the windows of the host's memory that an exchange writes to."""


def finish(exchange: PendingExchange, arriving: Arriving) -> None:
    """Wait for the end of an exchange."""
    exchange.finish()
    for held, windows in arriving:
        held.take(windows)
