"""The interface through which lower packages call `dcarray.offload`.

It is called only for arrays on a device, or to make one, so that a program without devices never loads
`offload`.
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
        """Return why a recording runs on the device that it does, for explanations; "" if there was no
        choice."""

    def selected(self, x: Any, mask: Any) -> Any:
        """Return the elements of an array that a mask selects, gathered on its device; None: the host has
        to."""

    def reserved(self, store: Any, device: Any) -> bool:
        """Whether a store without elements already has a buffer on the device."""

    def settle(self, rec: Any) -> None:
        """Mark, at a recording's end, the buffers that it has used as work pending on their arrays'
        memory."""

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
        """Return a value in which arrays on the device replace ordinary arrays."""

    def synchronise(self) -> None:
        """Wait for the work in the queues of all devices that arrays are on."""

    def moved(self, x: Any, name: str) -> Any:
        """Return an array on a device: itself, or a copy."""


@cache
def device_backend() -> DeviceBackend:
    """Return the backend of devices."""
    return cast("DeviceBackend", open_door("devices"))
