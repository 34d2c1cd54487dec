"""Accelerated code with wrapped arrays: on devices, and where several ranks run a program.

There ``np.zeros`` has to make an array on the device, or in blocks over the ranks.  So during a call the
global names of NumPy in the code of the module's functions mean dcarray.  On the processor, in one process,
this is not used: arrays are NumPy's own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import FunctionType
from typing import Any

import numpy as np

from dcarray.api.array import ndarray, wrap
from dcarray.core import config
from dcarray.core.device_backend import device_backend
from dcarray.core.processes import communicator

from .loops.entry.bound_names import INSIDE
from .patching import GENERATORS, module_names, wrap_generator

__all__ = ["call_wrapped", "is_needed"]


def is_needed() -> bool:
    """Whether accelerated code has wrapped arrays now."""
    return config.current().device != "cpu" or communicator() is not None


def call_wrapped(
    function: Callable[..., Any], inner: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a function with wrapped arrays.  During the call, NumPy means dcarray in the functions of the
    module of the function ``inner``.

    Plain arrays among the arguments are wrapped, sharing their memory, and what the call writes to them is in
    place when it returns.  Without wrapped arguments the result has plain arrays, evaluated.
    """
    scope = module_names(inner.__globals__)
    conversion = _Conversion()
    args = tuple([conversion.to_wrapped(a) for a in args])
    kwargs = {k: conversion.to_wrapped(v) for k, v in kwargs.items()}
    given = tuple(conversion.pairs.values())
    keep = conversion.had_wrapped or (not given and bool(INSIDE.get()))
    token = scope.inside()
    try:
        result = function(*args, **kwargs)
    finally:
        INSIDE.reset(token)
        for wrapped, argument in given:  # its owner may look at it, and change it, from now on
            now = wrapped._writable()
            if now is not argument:
                _copy_attributes(argument, now)
    if keep:
        return result
    for value in (*args, *kwargs.values()):
        if type(value) is list or type(value) is dict:
            conversion.to_plain(value)
    _evaluate(result)
    return conversion.to_plain(result)


class _Conversion:
    """Conversion between the plain and the wrapped arrays of one call: arguments in, results out."""

    __slots__ = ("by_plain", "generators", "had_wrapped", "pairs", "visited")

    def __init__(self, given: Collection[tuple[Any, Any]] = ()) -> None:
        # wrapped and plain array, also of those that were converted back
        self.pairs: dict[int, tuple[Any, Any]] = {id(pair[0]): pair for pair in given}
        self.by_plain: dict[int, Any] = {}  # by the plain array: one that is given twice stays one
        self.generators: dict[int, tuple[Any, Any]] = {}  # dcarray's and NumPy's random generators
        self.had_wrapped = False
        self.visited: set[int] = set()

    def to_wrapped(self, value: Any) -> Any:
        """Return an argument with wrapped arrays and generators in place of plain ones."""
        kind = type(value)
        if kind is np.ndarray:
            if (known := self.by_plain.get(id(value))) is not None:
                return known
            wrapped = wrap(value)
            name = config.current().device
            if name != "cpu":
                wrapped = device_backend().place(name, wrapped)
            self.pairs[id(wrapped)] = wrapped, value
            self.by_plain[id(value)] = wrapped
            return wrapped
        if kind is tuple:
            return tuple([self.to_wrapped(v) for v in value])
        if kind is ndarray or _is_on_device(value):
            self.had_wrapped = True
        elif kind.__name__ in GENERATORS and (wrapped := wrap_generator(value)) is not value:
            self.generators[id(wrapped)] = wrapped, value
            return wrapped
        return value

    def to_plain(self, value: Any) -> Any:
        """Return a result with plain arrays in place of wrapped ones; lists and dictionaries are changed."""
        kind = type(value)
        if kind is ndarray or _is_on_device(value):
            known = self.pairs.get(id(value))
            if known is None:  # an array that occurs twice stays one
                plain = value._small if kind is ndarray else None  # as `unwrap_result` has it
                known = value, np.asarray(value) if type(plain) is not np.ndarray else plain
                self.pairs[id(value)] = known
            return known[1]
        if id(value) in self.generators:
            return self.generators[id(value)][1]
        if kind is list or kind is dict:
            if id(value) not in self.visited:
                self.visited.add(id(value))
                for k, v in enumerate(value) if kind is list else value.items():
                    plain = self.to_plain(v)
                    if plain is not v:
                        value[k] = plain
        elif isinstance(value, tuple):
            items = [self.to_plain(v) for v in value]
            if any(a is not b for a, b in zip(items, value, strict=True)):
                return value._make(items) if hasattr(value, "_make") else tuple(items)
        return value


def _is_on_device(value: Any) -> bool:
    """Whether a value is an array on a device."""
    return isinstance(value, ndarray) and value._device is not None


def _copy_attributes(given: np.ndarray[Any, Any], now: np.ndarray[Any, Any]) -> None:
    """Give a plain argument the shape and the writeable flag that its wrapped array has after the call."""
    if now.shape != given.shape and now.size == given.size and np.may_share_memory(now, given):
        given.shape = now.shape
    if now.flags.writeable != given.flags.writeable:
        given.flags.writeable = now.flags.writeable


def _evaluate(value: Any) -> None:
    """Run what is pending on an array, or on the arrays in a tuple."""
    if type(value) is ndarray or _is_on_device(value):
        value._evaluated()
    elif type(value) is tuple:
        for one in value:
            if type(one) is ndarray or _is_on_device(one):
                one._evaluated()
