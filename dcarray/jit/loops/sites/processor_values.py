"""The values of loops that run on the processor although a device is involved: their arrays on the device are
small, or of the device ``"auto"``; or they get no arrays, and make some, which the option ``device`` puts on
a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from dcarray.api.array import ndarray, wrap
from dcarray.core.device_backend import device_backend
from dcarray.core.handle import Handle, as_class

__all__ = ["ProcessorValues"]


class ProcessorValues:
    """The values of a loop's names, with ordinary arrays on the same memory for those of a device.

    Attributes
    ----------
    ordinary : tuple
        The values.
    """

    __slots__ = ("_class", "_given", "ordinary")

    def __init__(self, values: Sequence[Any], cls: type[Handle]) -> None:
        self._class = cls
        self._given: dict[int, Any] = {}
        ordinary: dict[int, Any] = {}
        for value in values:
            if isinstance(value, Handle) and value._device is not None and id(value) not in ordinary:
                ordinary[id(value)] = as_class(ndarray, value)
                self._given[id(ordinary[id(value)])] = value
        self.ordinary = tuple([ordinary.get(id(value), value) for value in values])

    @classmethod
    def of(cls, values: Sequence[Any], option: str) -> Self | None:
        """Return the values of a loop if the processor may work on all its arrays of devices, else None.  It
        may if they are small and of one device, or of ``"auto"``, where each recording chooses its device.
        If there is no array, ``option``, the option ``device``, says where new arrays are."""
        wrapped = [v for v in values if issubclass(type(v), Handle)]
        if not wrapped and option != "cpu":
            # of the current default device: its class shows where new arrays are
            return cls(values, type(device_backend().place(option, wrap(np.zeros(())))))
        placed = [v for v in wrapped if v._device is not None]
        if not placed or any(v._device is not placed[0]._device for v in placed):
            return None
        chosen = not placed[0]._device.target
        return cls(values, type(placed[0])) if chosen or all(v._small is not None for v in placed) else None

    def back(self, results: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return results with arrays of the device in place of ordinary ones."""
        known = [self._given.get(id(value), value) for value in results]
        return tuple([as_class(self._class, v) if type(v) is ndarray else v for v in known])
