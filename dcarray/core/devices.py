"""Operands on different devices: found at the call, before anything is recorded.

The device of an array is in its class (`dcarray.core.handle.Handle._device`).  Plain arrays, scalars and
arrays without axes may be combined with arrays on any device.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .handle import Handle

__all__ = ["common_device", "different_devices", "name_of"]


def name_of(device: Any) -> str:
    """Return the name of a device, ``"cpu"`` for None."""
    return "cpu" if device is None else str(device.name)


def different_devices(one: Any, two: Any) -> ValueError:
    """Return the error for operands on two devices."""
    first, second = name_of(one), name_of(two)
    return ValueError(
        f"operands on different devices, {first} and {second}: "
        f"x.to_device({first!r}) copies an array from one to the other"
    )


def _arrays(values: Iterable[Any], inside: int) -> Iterable[Handle]:
    for value in values:
        if isinstance(value, Handle):
            yield value
        elif inside and isinstance(value, (tuple, list)):
            yield from _arrays(value, inside - 1)
        elif inside and isinstance(value, dict):
            yield from _arrays(value.values(), inside - 1)


def common_device(default: Any, *values: Any) -> Any:
    """Return the device of the arrays with axes among values or in sequences; ``default``: there are none.

    Raises
    ------
    ValueError
        If there are several; the message names two.
    """
    seen: list[Any] = []
    for x in _arrays(values, 4):
        device = x._device
        if seen and seen[0] is device:
            continue
        if x._shape if x._small is None else x._small.shape:
            if seen:
                raise different_devices(seen[0], device)
            seen.append(device)
    return seen[0] if seen else default
