"""A program's arguments, converted to the types of its annotations, and its results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dcarray.api.array import ndarray, wrap
from dcarray.core.config import Options
from dcarray.core.store import COMPILED

from ..loops.entry.lists import ListElements, array_of, elements_of
from .annotations import Annotation, PassedAnnotation, ScalarAnnotation

__all__ = ["argument_of", "array_given", "device_of", "on_devices", "returned", "wrapped"]

_NUMBERS = (bool, int, float, complex)


def argument_of(
    program: str, name: str, annotation: Annotation | PassedAnnotation, value: Any
) -> tuple[Any, Annotation | PassedAnnotation]:
    """Return an argument and its type: that of its annotation; for a number of another type, its own."""

    def wrong(given: str) -> TypeError:
        return TypeError(f"{program}(): the argument {name} is expected to be {annotation}, not {given}")

    if isinstance(annotation, PassedAnnotation):
        if not isinstance(value, annotation.kind):
            raise wrong(f"{value!r} of type {type(value).__name__}")
        return value, annotation
    if isinstance(annotation, ScalarAnnotation):
        if type(value) is annotation.kind:
            return value, annotation
        if type(value) in _NUMBERS:
            return value, ScalarAnnotation(np.dtype(type(value)), type(value))
        if isinstance(value, np.generic) and value.dtype.char in COMPILED:
            return value, ScalarAnnotation(value.dtype, None)
        raise wrong(f"{value!r} of type {type(value).__name__}")

    elements = elements_of(value) if type(value) is list else value
    if elements is None:
        raise wrong("a list that is empty, or not of equally long lists of floats, or of ints")
    array = array_of(elements)
    if not isinstance(array, np.ndarray | ndarray):
        raise wrong(type(value).__name__)
    if array.dtype != annotation.dtype or len(array.shape) != len(annotation.shape):
        raise wrong(f"{array.dtype.name} of shape {tuple(array.shape)}")
    return elements, annotation


def array_given(value: Any) -> Any:
    """Return an argument as an array; None if it is no array and no list of numbers."""
    elements = elements_of(value) if type(value) is list else value
    array = elements if elements is None else array_of(elements)
    return array if isinstance(array, np.ndarray | ndarray) else None


def on_devices(values: Iterable[Any]) -> bool:
    """Whether an array is on a device."""
    return any(isinstance(value, ndarray) and value._device is not None for value in values)


def device_of(values: Iterable[Any], options: Options) -> Any:
    """Return the device of all arrays, or that of new ones if there are none; None if arrays are on several
    devices, or recordings choose it ("auto")."""
    arrays = [v for v in values if isinstance(v, np.ndarray | ndarray | ListElements)]
    there = {getattr(v, "_device", None) for v in arrays}
    if not there:
        from dcarray.offload.placing import device_of as device_named

        there = {device_named(options.device)}
    device = there.pop() if len(there) == 1 else None
    return device if device is not None and device.target else None


def wrapped(value: Any) -> Any:
    return wrap(value) if type(value) is np.ndarray else value


def returned(results: tuple[Any, ...], returns: str) -> Any:
    """Return the result of a call: nothing, one value, or a tuple, as ``returns`` says."""
    if returns == "none":
        return None
    return results[0] if returns == "one" else results
