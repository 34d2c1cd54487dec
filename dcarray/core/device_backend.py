"""The interface through which lower packages call `dcarray.offload`.

Only who has met an array on a device, or was asked for one, calls it: a program without devices never loads
that package.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, cast

from . import open_door

if TYPE_CHECKING:
    from .config import Options

__all__ = ["DeviceBackend", "device_backend"]


class DeviceBackend(Protocol):
    """The functions of `dcarray.offload.backend`."""

    def run(self, executor: Any, rec: Any, options: Options) -> Callable[[], None]:
        """Run a recording on its device."""

    def planning_options(self, rec: Any, options: Options) -> Options:
        """The options by which a recording on a device is planned."""

    def remark(self, rec: Any, options: Options) -> str:
        """Why a recording runs where it does, if there was a choice."""

    def selected(self, x: Any, mask: Any) -> Any:
        """Return the elements of an array that a mask selects, gathered on its device; None if the host is to
        do it."""

    def reserved(self, store: Any, device: Any) -> bool:
        """Whether a device has made a buffer for a store that has no elements yet."""

    def settle(self, rec: Any) -> None:
        """Mark the buffers that a recording has used as pending, at its end."""

    def created(self, name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the results of a function that makes arrays, on a device."""

    def converted(self, name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the first argument as an array on a device."""

    def from_dlpack(self, x: Any, device: str, copy: bool | None) -> Any:
        """An array of another library's elements, on a device."""

    def drawn(
        self, name: str, method: str, generator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return the numbers that a method of a generator draws, on a device; None if the host is to draw
        them."""

    def place(self, name: str, value: Any) -> Any:
        """Return a value, its ordinary arrays on a device."""

    def synchronise(self) -> None:
        """Wait for the work in the queues of all devices that arrays are on."""

    def moved(self, x: Any, name: str) -> Any:
        """Return an array on a device: itself, or a copy."""


@cache
def device_backend() -> DeviceBackend:
    """Return the backend of devices."""
    return cast("DeviceBackend", open_door("devices"))
