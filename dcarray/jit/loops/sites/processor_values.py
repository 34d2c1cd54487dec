"""Values of loops that the processor runs, and that have to do with arrays on a device: over small ones, on
``"auto"``, and those that make arrays of none, which are on the device of the option."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from dcarray.api.array import ndarray, wrap
from dcarray.core.device_backend import device_backend
from dcarray.core.handle import Handle, as_class

__all__ = ["ProcessorValues"]


class ProcessorValues:
    """The values of a loop's names with ordinary arrays of the same memory for those on a device.

    Attributes
    ----------
    ordinary : tuple
        The values.
    """

    __slots__ = ("_class", "_given", "ordinary")

    def __init__(self, values: Sequence[Any], cls: type[Handle]) -> None:
        self._class = cls
        self._given: dict[int, Any] = {}
        made: dict[int, Any] = {}
        for value in values:
            if isinstance(value, Handle) and value._device is not None and id(value) not in made:
                made[id(value)] = as_class(ndarray, value)
                self._given[id(made[id(value)])] = value
        self.ordinary = tuple([made.get(id(value), value) for value in values])

    @classmethod
    def of(cls, values: Sequence[Any], option: str) -> Self | None:
        """Return them if all arrays on devices are the processor's to work on: small ones of one device, or
        those of which recordings choose the device, or none, where the option ``device`` puts new arrays
        there; else None."""
        wrapped = [v for v in values if isinstance(v, Handle)]
        if not wrapped and option != "cpu":
            return cls(values, type(device_backend().place(option, _no_array())))
        placed = [v for v in wrapped if v._device is not None]
        if not placed or any(v._device is not placed[0]._device for v in placed):
            return None
        chosen = not placed[0]._device.target
        return cls(values, type(placed[0])) if chosen or all(v._small is not None for v in placed) else None

    def back(self, found: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return results with arrays on the device for ordinary ones."""
        known = [self._given.get(id(value), value) for value in found]
        return tuple([as_class(self._class, v) if type(v) is ndarray else v for v in known])


def _no_array() -> Any:
    """Return an array without axes, to see what class it gets."""
    return wrap(np.zeros(()))
