"""Windows of a random array, drawn without the rest of it.

A bit generator that can be advanced gives any part of its stream directly.  Where every element takes the
same number of draws, a window of the array is a few parts of the stream, so that a rank draws only its own
block.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, SupportsIndex

import numpy as np

from dcarray.api.array import wrap

__all__ = ["block"]

Key = slice | SupportsIndex | EllipsisType
Draw = Callable[[int, int], Any]

_MOVABLE = (np.random.PCG64, np.random.PCG64DXSM, np.random.Philox)
_STEADY = ("random", "uniform", "triangular", "standard_exponential", "integers")
_CAN = (
    "random, uniform, triangular, standard_exponential with method='inv', and integers in a range whose "
    "length is a power of two"
)
_SKIP = 4000  # elements that are drawn in the time that it takes to advance a generator
_MOST_DRAWN_AT_ONCE = 1 << 20  # elements drawn at once where some of them are not used


def block(
    generator: np.random.Generator,
    method: str,
    shape: int | Iterable[int],
    window: Key | tuple[Key, ...] = ...,
    /,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Draw a window of a random array, without the other elements.

    ``block(g, "random", shape, window)`` gives the elements of ``g.random(shape)[window]``, bit for bit, and
    the state of ``g`` after it is the same.  So processes that call it with a window each share one array,
    and their generators stay equal.

    Parameters
    ----------
    generator : numpy.random.Generator
        One whose bit generator can be advanced: `PCG64`, `PCG64DXSM` or `Philox`.
    method : str
        A method that takes the same number of draws for every element: ``random``, ``uniform``,
        ``triangular``, ``standard_exponential`` with ``method="inv"``, or ``integers`` in a range whose
        length is a power of two.  Others, like ``normal``, reject some draws.
    shape : int or iterable of int
        The shape of the whole array.
    window : slice, int, ellipsis or tuple of them
        The window, as in ``array[window]``; by default the whole array.
    *args, **kwargs
        Further arguments of the method, as scalars; not ``size`` and ``out``.

    Returns
    -------
    ndarray
        An array with the shape of ``array[window]`` and the dtype of the method; a scalar if the window is
        one element
        without axes.

    Raises
    ------
    TypeError
        If ``generator`` is no `numpy.random.Generator`, or its bit generator cannot be advanced.
    ValueError
        If the method takes a varying number of draws for an element, or an argument is an array.
    IndexError
        If an array of this shape has no such window.

    Examples
    --------
    >>> import dcarray as dc
    >>> whole = dc.random.default_rng(7).random((4, 6))
    >>> part = dc.random.block(dc.random.default_rng(7), "random", (4, 6), (slice(1, 3), slice(2)))
    >>> bool((part == whole[1:3, :2]).all())
    True
    """
    if not isinstance(generator, np.random.Generator):
        raise TypeError(f"a numpy.random.Generator is needed, not a {type(generator).__name__}")
    bits = generator.bit_generator
    if type(bits) not in _MOVABLE:
        raise TypeError(f"{type(bits).__name__} cannot be advanced; PCG64, PCG64DXSM and Philox can")
    sizes = tuple(map(operator.index, shape)) if isinstance(shape, Iterable) else (operator.index(shape),)
    if min(sizes, default=0) < 0:
        raise ValueError("negative dimensions are not allowed")
    ranges, result = _lattice(sizes, window)
    local = np.random.Generator(type(bits)(0))
    call, use = _elements(local, method, args, kwargs)
    with bits.lock:
        start = bits.state
        _move(local.bit_generator, start, use.bits, -(-math.prod(sizes) // use.elements))
        bits.state = local.bit_generator.state

    def draw(first: int, count: int) -> Any:
        words, before = divmod(first, use.elements)
        _move(local.bit_generator, start, use.bits, words)
        return call(before + count)[before:]

    out = np.empty([len(r) for r in ranges], use.dtype)
    if out.size:
        strides = [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]
        _fill(out, ranges, strides, 0, draw)
    return out[(0,) * out.ndim] if result is None else wrap(out.reshape(result))


# ---- draws of a method -------------------------------------------------------------------------------
@dataclass(frozen=True)
class _StreamUse:
    """The part of the random stream that elements consume.

    Attributes
    ----------
    bits : int
        The length of a word of the stream: 32 or 64, or 0 where nothing is drawn.
    dtype : numpy.dtype
    elements : int
        The elements made from one word.  A call drops the rest of its last word.
    """

    bits: int
    dtype: np.dtype[Any]
    elements: int = 1


def _elements(
    generator: np.random.Generator, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Callable[[int], Any], _StreamUse]:
    """Return a function that draws a number of elements, and the part of the stream that these consume."""
    function: Callable[..., Any] = getattr(generator, method)
    if method not in _STEADY or (method == "standard_exponential" and kwargs.get("method") != "inv"):
        raise ValueError(f"{method} takes a varying number of draws for an element; these do not: {_CAN}")
    given = (*args, *kwargs.values())
    if "out" in kwargs or any(np.ndim(a) for a in given if not isinstance(a, type)):
        raise ValueError(f"the arguments of {method} must be scalars, and without out=")

    def call(count: int) -> Any:
        return function(*args, size=count, **kwargs)

    dtype: np.dtype[Any] = call(1).dtype
    if method != "integers":
        return call, _StreamUse(8 * dtype.itemsize, dtype)
    length = _length(*args, **kwargs)
    if length & (length - 1):
        raise ValueError(
            f"integers in a range of length {length} take a varying number of draws; {_CAN} do not"
        )
    if length == 1:
        return call, _StreamUse(0, dtype)
    if dtype.itemsize == 8:
        return call, _StreamUse(32 if length <= 1 << 32 else 64, dtype)
    return call, _StreamUse(32, dtype, 32 if dtype.kind == "b" else 4 // dtype.itemsize)


def _length(low: Any, high: Any = None, dtype: Any = None, endpoint: Any = False) -> int:
    """Return the length of the range of ``integers`` with these arguments."""
    low, high = (0, low) if high is None else (low, high)
    return int(high) - int(low) + bool(endpoint)


# ---- advancing ---------------------------------------------------------------------------------------
def _move(bits: Any, start: Mapping[str, Any], size: int, words: int) -> None:
    """Set a bit generator to the state in which ``words`` words of ``size`` bits were drawn after another.

    Words of 32 bits are halves of those of 64: the second one waits in the state, and is left there when
    words of 64 bits are drawn.
    """
    bits.state = start
    if size == 64:
        _draw(bits, words)
        if start["has_uint32"]:
            bits.state = {**bits.state, **{k: start[k] for k in ("has_uint32", "uinteger")}}
    elif size == 32 and words:
        if start["has_uint32"]:
            bits.state = {**start, "has_uint32": 0}
            words -= 1
        _draw(bits, words // 2)
        if words % 2:
            np.random.Generator(bits).integers(1 << 32, dtype=np.uint32)


def _draw(bits: Any, words: int) -> None:
    """Advance a bit generator by words of 64 bits."""
    if isinstance(bits, np.random.Philox):  # makes four words at once, and advances by four
        ready = min(words, 4 - bits.state["buffer_pos"])
        bits.random_raw(ready, output=False)
        blocks, words = divmod(words - ready, 4)
        if blocks:
            bits.advance(blocks)
        bits.random_raw(words, output=False)
    elif words:
        bits.advance(words)


# ---- windows -----------------------------------------------------------------------------------------
def _lattice(
    shape: tuple[int, ...], window: Key | tuple[Key, ...]
) -> tuple[list[range], tuple[int, ...] | None]:
    """Return the indices of a window along every axis, and its shape; None for a scalar."""
    keys = list(window) if isinstance(window, tuple) else [window]
    places = [k for k, key in enumerate(keys) if key is ...]
    if len(places) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if len(keys) - len(places) > len(shape):
        raise IndexError(f"too many indices: the array is {len(shape)}-dimensional")
    place = places[0] if places else len(keys)
    keys[place : place + 1] = [slice(None)] * (len(shape) - len(keys) + len(places))
    ranges, kept = [], []
    for n, key in zip(shape, keys, strict=True):
        if isinstance(key, slice):
            ranges.append(range(n)[key])
            kept.append(len(ranges[-1]))
        elif isinstance(key, SupportsIndex) and not isinstance(key, bool | np.bool_):
            k = range(n)[key]
            ranges.append(range(k, k + 1))
        else:
            raise IndexError("a window is made of slices, integers and an ellipsis")
    return ranges, None if not kept and not places else tuple(kept)


def _fill(out: Any, ranges: list[range], strides: list[int], origin: int, draw: Draw) -> None:
    """Draw the elements of a window, at once if they are close together in the stream, else recursively."""
    lowest = sum(min(r[0], r[-1]) * s for r, s in zip(ranges, strides, strict=True))
    highest = sum(max(r[0], r[-1]) * s for r, s in zip(ranges, strides, strict=True))
    span = highest - lowest + 1
    count = len(ranges[0]) if ranges else 1
    if span <= max(_MOST_DRAWN_AT_ONCE, out.size) and span <= max(_SKIP * count, out.size):
        drawn = draw(origin + lowest, span)
        first = sum(r[0] * s for r, s in zip(ranges, strides, strict=True)) - lowest
        steps = [r.step * s * drawn.itemsize for r, s in zip(ranges, strides, strict=True)]
        out[...] = np.lib.stride_tricks.as_strided(drawn[first:], out.shape, steps)
    elif span <= _SKIP * count and count > 1:
        half = count // 2
        _fill(out[:half], [ranges[0][:half], *ranges[1:]], strides, origin, draw)
        _fill(out[half:], [ranges[0][half:], *ranges[1:]], strides, origin, draw)
    else:
        for k, index in enumerate(ranges[0]):
            _fill(out[k, ...], ranges[1:], strides[1:], origin + index * strides[0], draw)
