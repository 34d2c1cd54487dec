"""`numpy.arange` and `numpy.linspace` that make distributed arrays, with NumPy's bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dcarray.api.functions.common import new_array
from dcarray.core.config import current

__all__ = ["distributed_range"]


def distributed_range(name: str, args: tuple[Any, ...]) -> Any:
    """Return a large `numpy.arange` or `numpy.linspace` of plain numbers, distributed; None for any other
    call."""
    return {"arange": _arange, "linspace": _linspace}[name](*args)


def _arange(*given: Any) -> Any:
    start, stop, step = {1: (0, *given, 1), 2: (*given, 1), 3: given}.get(len(given), (None, None, None))
    kinds = {type(start), type(stop), type(step)}
    if not kinds <= {int, float} or not step:
        return None
    length = (stop - start) / step
    kind = np.dtype(float if float in kinds else int)
    places = _count_up(math.ceil(length), kind) if 1 < length < 2**62 else None
    if places is None:
        return None
    if kind.kind == "i":
        return places * step + start
    second = start + step
    ramp = places * (second - start) + start  # NumPy extrapolates the first two
    ramp[0], ramp[1] = start, second
    return ramp


def _linspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True, *more: Any) -> Any:
    plain = {type(start), type(stop)} <= {int, float} and type(num) is int and type(endpoint) is bool
    places = _count_up(num, np.dtype(float)) if plain and not more and num > 1 else None
    if places is None:
        return None
    parts, length = num - endpoint, float(stop) - float(start)
    step = length / parts
    ramp = (places * step if step else places / parts * length) + float(start)  # NumPy's order of operations
    if endpoint:
        ramp[-1] = float(stop)
    return ramp


def _count_up(size: int, kind: np.dtype[Any]) -> Any:
    """Return the distributed array of 0, 1, 2, ...; None if it is too small to be distributed."""
    if size <= current().distribute_above:
        return None
    array = new_array((size,), kind)
    held = array._store.remote
    (runs,) = held.layout.runs(held.comm.rank)
    for run in runs:
        held.block[...] = np.arange(run.start, run.start + run.length, dtype=kind)
    return array
