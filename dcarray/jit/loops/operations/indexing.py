"""Basic indexing with Python ints that are known exactly or by their ranges."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

from dcarray.ir import dims
from dcarray.ir.nodes import Dim, Index, Window

from .scope import Scope
from .values import Shape, Value, is_int

#: For each axis of an array its index as a function of a new domain, and the shape of that.
Selection = tuple[tuple[Index, ...], Shape]


def is_basic(key: Value) -> bool:
    """Whether a key is one of basic indexing."""
    keys = key if type(key) is tuple else (key,)
    return all(is_int(k) or k is None or isinstance(k, slice | EllipsisType) for k in keys)


def only_integers(key: Value, ndim: int) -> bool:
    """Whether a key selects one element."""
    keys = key if type(key) is tuple else (key,)
    return len(keys) == ndim and all(map(is_int, keys))


def select(scope: Scope, shape: Shape, key: Value) -> Selection:
    """Return the selection of basic indexing.

    Raises
    ------
    Untraceable
        If the key is not proved to be in bounds, or the result's shape is no affine function of loop
        variables.
    """
    keys = list(key) if type(key) is tuple else [key]
    given = sum(k is not None and k is not Ellipsis for k in keys)
    if given > len(shape) or sum(k is Ellipsis for k in keys) > 1:
        raise scope.fail("too many indices")
    if Ellipsis not in keys:
        keys.append(Ellipsis)
    place = next(n for n, k in enumerate(keys) if k is Ellipsis)
    keys[place : place + 1] = [slice(None)] * (len(shape) - given)
    amap: list[Index] = []
    out: list[Dim] = []
    for k in keys:
        if k is None:
            out.append(1)
            continue
        size = shape[len(amap)]
        if isinstance(k, slice):
            start, step, length = _slice(scope, k, size)
            amap.append(Index(start, step, len(out)))
            out.append(length)
        else:
            amap.append(Index(position(scope, k, size)))
    return tuple(amap), tuple(out)


def proved_position(scope: Scope, k: Dim, size: Dim) -> Dim | None:
    """Return an index as a non-negative one; None unless it is proved in bounds, and its sign is known."""
    if scope.nonneg(k) is True and scope.lt(k, size) is True:
        return k
    if scope.le(k, -1) is True and scope.need_le(-size, k):
        return dims.simplify(k + size)
    if scope.need_nonneg(k) and scope.need_le(k, size - 1):
        return k
    return None


def position(scope: Scope, k: Dim, size: Dim) -> Dim:
    """Return an index as a non-negative one; raises `Untraceable` unless it is proved to be in bounds."""
    place = proved_position(scope, k, size)
    if place is None:
        raise scope.fail("an index is not proved to be in bounds")
    return place


def _slice(scope: Scope, k: slice, size: Dim) -> tuple[Dim, int, Dim]:
    """Return the first element, the step and the length of a slice of an axis of length ``size``."""
    step: Any = 1 if k.step is None else k.step
    if not all(v is None or is_int(v) for v in (k.start, k.stop)) or type(step) is not int or not step:
        raise scope.fail("a slice's bounds are not plain integers")
    low, high = (0, size) if step > 0 else (-1, dims.simplify(size - 1))
    first, last = (low, high) if step > 0 else (high, low)
    start = first if k.start is None else _clip(scope, k.start, size, low, high)
    stop = last if k.stop is None else _clip(scope, k.stop, size, low, high)
    length = run_length(scope, start, stop, step)
    return (start, step, length) if type(length) is not int or length else (0, step, 0)


def run_length(scope: Scope, start: Dim, stop: Dim, step: int) -> Dim:
    """Return the length of ``range(start, stop, step)``."""
    span = dims.simplify(stop - start if step > 0 else start - stop)
    if scope.le(span, 0) is True:
        return 0
    if not scope.need_nonneg(span):
        raise scope.fail("a slice's length is not known")
    if abs(step) == 1:
        return span
    length = scope.quotient(dims.simplify(span + abs(step) - 1), abs(step))
    if length is None:
        raise scope.fail("a slice's length is not an affine function of loop variables and sizes")
    return length


def _clip(scope: Scope, v: Dim, size: Dim, low: Dim, high: Dim) -> Dim:
    if scope.nonneg(v) is not True:
        if scope.le(v, -1) is True:
            v = dims.simplify(v + size)
        elif not scope.need_nonneg(v):
            raise scope.fail("the sign of a slice's bound is not known")
    if scope.le(v, low) is True:
        return low
    if scope.le(high, v) is True:
        return high
    if scope.need_le(low, v) and scope.need_le(v, high):
        return v
    raise scope.fail("it is not known whether a slice reaches beyond its axis")


def transposed(shape: Shape, axes: tuple[int, ...]) -> Selection:
    """Return the selection that permutes axes: new axis ``k`` is old axis ``axes[k]``."""
    place = {old: new for new, old in enumerate(axes)}
    return tuple(Index(0, 1, place[k]) for k in range(len(shape))), tuple(shape[a] for a in axes)


def flipped(shape: Shape, axes: tuple[int, ...]) -> Selection:
    """Return the selection that reverses axes."""
    amap = tuple(
        Index(dims.simplify(n - 1), -1, k) if k in axes else Index(0, 1, k) for k, n in enumerate(shape)
    )
    return amap, shape


def resized(scope: Scope, shape: Shape, wanted: Shape, proved: bool = False) -> Selection | None:
    """Return the selection that adds and drops axes of length 1; None if the reshape needs more.
    With ``proved`` sizes count as equal only if that is proved."""
    old = [k for k, n in enumerate(shape) if n != 1]
    new = [k for k, n in enumerate(wanted) if n != 1]
    same = scope.same_shape if proved else scope.need_same_shape
    if not same([shape[k] for k in old], [wanted[k] for k in new]):
        return None
    place = dict(zip(old, new, strict=True))
    return tuple(Index(0, 1, place[k]) if k in place else Index(0) for k in range(len(shape))), wanted


def basic_key(window: Window, shape: Shape) -> tuple[tuple[Any, ...], tuple[int, ...]] | None:
    """Return the basic indexing key, and the order of the axes of its result, that select a window of an
    array; None if no key does.  Bounds of slices are given as ``(start, stop, step)``."""
    keys: list[Any] = []
    places: list[int] = []
    for ix, size in zip(window.index, shape, strict=True):
        if not all(type(n) is int for n in (ix.offset, ix.stride, size)) or not 0 <= ix.offset < max(size, 1):
            return None
        if ix.axis is None:
            keys.append(ix.offset)
            continue
        count = window.shape[ix.axis]
        if type(count) is not int or ix.axis in places or not ix.stride or not count:
            return None
        last = ix.offset + (count - 1) * ix.stride
        if not 0 <= last < size:
            return None
        stop = last + (1 if ix.stride > 0 else -1)
        keys.append((ix.offset, stop if stop >= 0 else None, ix.stride))
        places.append(ix.axis)
    others = [k for k in range(len(window.shape)) if k not in places]
    if any(type(window.shape[k]) is not int or window.shape[k] != 1 for k in others):
        return None
    keys += [Ellipsis, *(None for _ in others)]  # so that even an element is an array
    order = [*places, *others]
    return tuple(keys), tuple(order.index(k) for k in range(len(order)))
