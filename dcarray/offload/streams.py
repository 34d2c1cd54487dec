"""Random numbers of NumPy's default generator, drawn on a device: the numbers, and the generator's state
afterwards, have the same bits as NumPy's.

Distributions are drawn here if each number takes one step of the generator, or half a step.  For other
distributions, the count of steps depends on the numbers, so NumPy draws them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.lowering.gpu import streams

from .arrays import array_class
from .auto import AutoDevice
from .buffer import least_elements
from .function_table import host, require
from .kernel_calls import Kernels
from .placing import device_of

__all__ = ["drawn"]

_WORD, _HALF = (1 << 64) - 1, 1 << 32


def drawn(name: str, method: str, generator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the numbers that a method of a generator draws, as an array on the device ``name``.

    Returns
    -------
    ndarray or None
        None if the host has to draw the numbers; then the generator is unchanged.
    """
    device, body = device_of(name), _METHODS.get(method)
    bits: Any = getattr(generator, "bit_generator", None)
    if body is None or device is None or isinstance(device, AutoDevice) or device.is_processor:
        return None
    if type(generator) is not np.random.Generator or type(bits) is not np.random.PCG64:
        return None
    try:
        with bits.lock:
            return body(Kernels(array_class(device)), bits, *args, **kwargs)
    except Exception:  # NumPy gives its own numbers, or its own error
        return None


def _words(k: Kernels, bits: Any, count: int) -> Any:
    """Return the generator's next ``count`` 64-bit numbers, on the device, without a change of its state."""
    state = bits.state["state"]
    first = (state["state"] * streams.MULTIPLIER + state["inc"]) % (1 << 128)
    digits = streams.digits_of(count)
    words = np.array([first >> 64, first & _WORD], np.uint64)
    return k.streamed(words, streams.jumps(state["inc"], digits), count, digits)


def _advance(bits: Any, steps: int, halves: int = 0) -> None:
    """Advance the generator by ``steps`` steps, then by ``halves`` draws of 32 bits.  With ``halves``, a
    32-bit half that the generator has kept from before is discarded first."""
    before, after = bits.state, type(bits)(0)
    after.state = before
    after.advance(steps)
    kept = {name: before[name] for name in ("has_uint32", "uinteger")}
    after.state = after.state | kept | ({"has_uint32": 0} if halves else {})
    np.random.Generator(after).integers(_HALF, size=halves, dtype=np.uint32)
    bits.state = after.state


def _uniform(k: Kernels, bits: Any, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    asked = _asked_for(method, args, kwargs)
    require(asked is not None)
    shape, bounds = asked
    count = math.prod(shape)
    require(count >= least_elements())
    reals = (_words(k, bits, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    if bounds is not None:
        low, high = map(float, bounds)
        reals = low + (high - low) * reals
    _advance(bits, count)
    return reals.reshape(shape)


def _asked_for(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the shape and the bounds of the numbers that a call of a method draws; None for other calls."""
    names, asked_of = _CALLS[name]
    given = dict(zip(names, args, strict=False))
    if len(args) > len(names) or not given.keys().isdisjoint(kwargs) or not kwargs.keys() <= set(names):
        return None
    return asked_of(**given, **kwargs)


def _asked_of_random(size: Any = None, dtype: Any = np.float64) -> Any:
    """Return the shape of the numbers that `numpy.random.Generator.random` draws; None for other calls."""
    return (_shape(size), None) if dtype in (np.float64, float, "d", "f8") and _shape(size) else None


def _asked_of_uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
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
    "random": (("size", "dtype"), _asked_of_random),
    "uniform": (("low", "high", "size"), _asked_of_uniform),
}


def _integers(
    k: Kernels, bits: Any, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64,
    endpoint: Any = False,
) -> Any:  # fmt: skip
    low, high = (0, low) if high is None else (low, high)
    shape = (size,) if type(size) is int else size
    require(type(shape) is tuple and all(type(n) is int for n in (low, high, *shape)))
    require(dtype in (np.int64, int) and type(endpoint) is bool)
    width, count = high - low + endpoint, math.prod(shape)
    require(1 < width < _HALF and abs(low) < 1 << 62 and min(shape) >= 0 and count >= least_elements())
    kept = bits.state["has_uint32"]  # half of a number that was drawn before
    words = _words(k, bits, -(-(count - kept) // 2))
    halves = k.fresh((2 * words.size + kept,), np.uint64)
    halves[:kept] = bits.state["uinteger"]
    halves[kept::2], halves[kept + 1 :: 2] = words & np.uint64(_HALF - 1), words >> np.uint64(32)
    spread = halves[:count] * np.uint64(width)
    few = np.uint64(_HALF % width)
    # then NumPy draws another number in its place
    require(not few or not host(((spread & np.uint64(_HALF - 1)) < few).any()))
    ints = low + (spread >> np.uint64(32)).astype(np.int64)
    _advance(bits, (count - kept - 1) // 2, 2 - (count - kept) % 2)
    return ints.reshape(shape)


def _of(method: str) -> Callable[..., Any]:
    return lambda k, bits, *args, **kwargs: _uniform(k, bits, method, args, kwargs)


_METHODS: dict[str, Callable[..., Any]] = {
    "random": _of("random"), "uniform": _of("uniform"), "integers": _integers,
}  # fmt: skip
