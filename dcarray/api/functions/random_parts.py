"""Uniform random numbers drawn by several threads, a part by each: the same bits as NumPy's stream.

A bit generator that can be advanced by any number of steps serves these, since each number takes one step.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from dcarray.core import parts

__all__ = ["FUNCTIONS", "asked_for", "draw"]

FUNCTIONS = {"random": 1.4e-9, "uniform": 2e-9}
"""Methods of generators, and the seconds for a number."""

_GENERATORS = (np.random.PCG64, np.random.PCG64DXSM)


def draw(name: str, generator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the numbers that a method of a generator draws, and advance the generator; None if only NumPy
    can."""
    bits: Any = getattr(generator, "bit_generator", None)
    if type(generator) is not np.random.Generator or type(bits) not in _GENERATORS:
        return None
    asked = asked_for(name, args, kwargs)
    if asked is None:
        return None
    shape, bounds = asked
    size = math.prod(shape)
    number = parts.number_of_parts(FUNCTIONS[name] * size, size)
    if number < 2:
        return None
    with bits.lock:
        return _drawn(bits, shape, bounds, parts.cut(size, number))


def asked_for(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the shape and the bounds of the numbers that a call of a method draws; None for calls that are
    not served here."""
    names, asked_of = _CALLS[name]
    given = dict(zip(names, args, strict=False))
    if len(args) > len(names) or not given.keys().isdisjoint(kwargs) or not kwargs.keys() <= set(names):
        return None
    return asked_of(**given, **kwargs)


def _random(size: Any = None, dtype: Any = np.float64) -> Any:
    """Return the shape of the numbers that `numpy.random.Generator.random` draws; None for other calls."""
    return (_shape(size), None) if dtype in (np.float64, float, "d", "f8") and _shape(size) else None


def _uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
    """Return the shape and the bounds of the numbers that `numpy.random.Generator.uniform` draws; else
    None."""
    numbers = type(low) in (int, float) and type(high) in (int, float)
    if not numbers or not _shape(size) or not 0 <= high - low < math.inf:
        return None
    return _shape(size), (low, high)


def _shape(size: Any) -> tuple[int, ...] | None:
    shape = (size,) if type(size) is int else size
    valid = type(shape) is tuple and all([type(n) is int and n >= 0 for n in shape])
    return shape if valid else None


_CALLS: dict[str, tuple[tuple[str, ...], Any]] = {
    "random": (("size", "dtype"), _random),
    "uniform": (("low", "high", "size"), _uniform),
}


def _drawn(bits: Any, shape: tuple[int, ...], bounds: Any, pieces: list[slice]) -> Any:
    """Return the numbers, each piece of them by a generator that has been advanced to its begin."""
    before = bits.state
    result = np.empty(shape, np.float64)
    numbers = result.reshape(-1)

    def job(piece: slice, one: Any) -> None:
        if bounds is None:
            one.random(out=numbers[piece])
        else:
            numbers[piece] = one.uniform(*bounds, piece.stop - piece.start)

    jobs = []
    for piece in pieces:
        advanced = type(bits)(0)
        advanced.state = before
        jobs.append(partial(job, piece, np.random.Generator(advanced.advance(piece.start))))
    if not parts.run(jobs):
        return None
    after = bits.advance(len(numbers)).state
    # half of a number that was drawn before stays for the next small one
    bits.state = after | {name: before[name] for name in ("has_uint32", "uinteger")}
    return result
