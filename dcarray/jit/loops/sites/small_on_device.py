"""Arrays on a device that are too small for it, as a loop's values: the processor runs the loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from dcarray.api.array import ndarray
from dcarray.core.handle import Handle, as_class, small

__all__ = ["SmallOnDevice"]


class SmallOnDevice:
    """The values of a loop's names with ordinary arrays for those on a device, all of which are small.

    Attributes
    ----------
    ordinary : tuple
        The values; arrays share the memory of those that they stand for.
    """

    __slots__ = ("_class", "_given", "ordinary")

    def __init__(self, values: Sequence[Any], cls: type[Handle]) -> None:
        self._class = cls
        self._given: dict[int, Any] = {}
        made: dict[int, Any] = {}
        for value in values:
            if isinstance(value, Handle) and value._device is not None and id(value) not in made:
                made[id(value)] = small(ndarray, value._small)  # type: ignore[arg-type]
                self._given[id(made[id(value)])] = value
        self.ordinary = tuple([made.get(id(value), value) for value in values])

    @classmethod
    def of(cls, values: Sequence[Any]) -> Self | None:
        """Return them if there are any, all of one device, and no large array beside them; else None."""
        placed = [v for v in values if isinstance(v, Handle) and v._device is not None]
        if not placed or any(v._small is None or v._device is not placed[0]._device for v in placed):
            return None
        return cls(values, type(placed[0]))

    def back(self, found: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return results with arrays on the device for ordinary ones."""
        known = [self._given.get(id(value), value) for value in found]
        return tuple([as_class(self._class, v) if type(v) is ndarray else v for v in known])
