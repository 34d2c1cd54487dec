"""Random numbers whose parameters are arrays: one number for each element, in order, as NumPy draws them."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from dcarray.ir.nodes import Compute, Window

from .draws import Draws
from .values import Data, RandomGenerator, Value, is_array

__all__ = ["drawn"]

_F8, _I8 = np.dtype(np.float64), np.dtype(np.int64)
_WHOLE = frozenset({"choice", "integers", "randint"})  # of which arrays mean something else
_INTEGERS = frozenset({"binomial", "geometric", "poisson"})


def drawn(
    d: Draws, g: RandomGenerator, name: str, method: Callable[..., Value], *args: Value, **named: Value
) -> Value:
    """Trace a random method whose parameters may be arrays, given ``method``, which traces it for numbers."""
    try:
        given = signature(method).bind(d, g, *args, **named).arguments
    except TypeError as error:
        raise d.scope.fail(f"arguments of {name} that are not understood: {error}") from error
    arrays = {key: value for key, value in given.items() if is_array(value) and value.shape}
    if not arrays or name in _WHOLE:
        return method(d, g, *args, **named)
    size = given.pop("size", None)
    shape = d.math.broadcast([array.shape for array in arrays.values()])
    if size is not None:
        wanted = d.arrays.shape(size)
        if not d.scope.need_same_shape(d.math.broadcast([shape, wanted]), wanted):
            raise d.scope.fail("parameters of random numbers do not fit their size")
        shape = wanted
    dtype = _I8 if name in _INTEGERS else _F8
    stored = {key: d.memory.array(array) for key, array in arrays.items()}

    def write(target: Window) -> None:
        places = [ix.offset for ix in target.index]
        elements = {key: _element(d, array, places) for key, array in stored.items()}
        number = method(**{**given, **elements})
        d.memory.emit(Compute(target, d.math.expr(number, dtype), loc=d.memory.loc))

    return d.numbers(shape, dtype, write)


def _element(d: Draws, array: Data, places: list[Any]) -> Value:
    """Return the element of an array that broadcasting puts at the index ``places``."""
    own = places[len(places) - len(array.shape) :]
    return d.arrays.getitem(array, tuple([0 if n == 1 else k for n, k in zip(array.shape, own, strict=True)]))
