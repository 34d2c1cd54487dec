"""Windows: affine views of a store, as tuples of integers, composed once for every view that a user makes.

A window is ``None`` (all of the store) or one ``(offset, stride, axis)`` per store axis, as in
``dcarray.ir.Index``; the window's own shape is kept beside it.
"""

from __future__ import annotations

from contextlib import suppress
from types import EllipsisType
from typing import Any

import numpy as np

from dcarray.lowering.runtime.array_memory import address_of

from .native import BUILT

Index = tuple[tuple[int, int, int | None], ...]

_BASIC = frozenset({slice, int, type(None), EllipsisType})


def is_basic(key: Any) -> bool:
    """Whether a key is basic indexing, as far as its Python types tell."""
    if type(key) is tuple:
        for k in key:  # noqa: SIM110 - a generator costs three times as much
            if type(k) not in _BASIC:
                return False
        return True
    return type(key) in _BASIC


def identity(ndim: int) -> Index:
    return _IDENTITIES[ndim] if ndim < 9 else tuple((0, 1, k) for k in range(ndim))


_IDENTITIES: list[Index] = [tuple((0, 1, k) for k in range(n)) for n in range(9)]


def slice_window(shape: tuple[int, ...], index: Index | None, key: tuple[Any, ...]) -> Any:
    """Return `getitem` for a key of slices with step 1; None for any other key."""
    out = []
    maps: list[tuple[int, int, int | None]] = []
    for axis, k in enumerate(key):
        if type(k) is not slice:
            return None
        start, stop, step = k.indices(shape[axis])
        if step != 1 or stop <= start:
            return None
        maps.append((start, 1, axis))
        out.append(stop - start)
    for axis in range(len(key), len(shape)):
        maps.append((0, 1, axis))
        out.append(shape[axis])
    return tuple(out), tuple(maps) if index is None else apply(index, maps)


index_window: Any = None  # `getitem` for the most common keys, in C
if BUILT:  # the same in C
    from dcarray._native.extension import slice_window  # noqa: F401

    with suppress(ImportError):  # what was built before has none
        from dcarray._native.extension import index_window


def getitem(shape: tuple[int, ...], index: Index, key: Any) -> tuple[tuple[int, ...], Index]:
    """Return the window that basic indexing selects.

    Raises
    ------
    IndexError
        As NumPy's, for too many indices or an integer out of bounds.
    TypeError, ValueError
        As NumPy's, for a slice that has no integers, or a step of 0.
    """
    try:
        short = None if index_window is None else index_window(shape, index, key)
    except (TypeError, ValueError):  # of a slice: NumPy counts the indices first
        short = None
    if short is not None:
        return short[0], short[1]
    if type(key) is not tuple:
        key = (key,)
    given = 0
    ellipsis = -1
    for position, k in enumerate(key):
        if k is Ellipsis:
            if ellipsis >= 0:
                raise IndexError("an index can only have a single ellipsis ('...')")
            ellipsis = position
        elif k is not None:
            given += 1
    ndim = len(shape)
    if given > ndim:
        raise IndexError(f"too many indices for array: array is {ndim}-dimensional, but {given} were indexed")
    out: list[int] = []
    maps: list[tuple[int, int, int | None]] = []  # old axis -> (start, step, new axis)
    axis = 0
    for k in key:
        if type(k) is slice:
            start, stop, step = k.indices(shape[axis])
            if step > 0:
                n = (stop - start + step - 1) // step if stop > start else 0
            else:
                n = (start - stop - step - 1) // -step if start > stop else 0
            maps.append((start if n else 0, step, len(out)))
            out.append(n)
            axis += 1
        elif k is None:
            out.append(1)
        elif k is Ellipsis:
            for _ in range(ndim - given):
                maps.append((0, 1, len(out)))
                out.append(shape[axis])
                axis += 1
        else:
            n = shape[axis]
            if not -n <= k < n:
                raise IndexError(f"index {k} is out of bounds for axis {axis} with size {n}")
            maps.append((k + n if k < 0 else k, 0, None))
            axis += 1
    while axis < ndim:
        maps.append((0, 1, len(out)))
        out.append(shape[axis])
        axis += 1
    return tuple(out), apply(index, maps)


def apply(index: Index, maps: list[tuple[int, int, int | None]]) -> Index:
    """Compose an index with a map of its axes: each becomes ``start + step * i[new axis]``."""
    result: list[tuple[int, int, int | None]] = []
    for offset, stride, axis in index:
        if axis is None:
            result.append((offset, stride, axis))
        else:
            start, step, new = maps[axis]
            result.append((offset + stride * start, 0 if new is None else stride * step, new))
    return tuple(result)


def transpose(shape: tuple[int, ...], index: Index, axes: tuple[int, ...]) -> tuple[tuple[int, ...], Index]:
    """Return the window with its axes permuted: new axis ``k`` is old axis ``axes[k]``."""
    new_axis = {old: new for new, old in enumerate(axes)}
    return (
        tuple(shape[a] for a in axes),
        tuple((o, s, None if a is None else new_axis[a]) for o, s, a in index),
    )


def view(mem: np.ndarray[Any, Any], shape: tuple[int, ...], index: Index) -> np.ndarray[Any, Any]:
    """Return the ndarray of a window of ``mem``.  An axis that no index uses has stride 0."""
    key: list[Any] = []
    used: list[int] = []
    for offset, stride, axis in index:
        if axis is None:
            key.append(offset)
            continue
        n = shape[axis]
        end = offset + stride * n
        key.append(slice(offset, end if end >= 0 else None, stride) if n else slice(0, 0))
        used.append(axis)
    if len(set(used)) < len(used):
        return _diagonal(mem, shape, index)
    part = mem[(*key, Ellipsis)]
    if used != sorted(used):
        part = part.transpose(sorted(range(len(used)), key=used.__getitem__))
    if len(used) < len(shape):
        part = part[tuple(slice(None) if a in used else None for a in range(len(shape)))]
        if 0 in shape:
            part = part[tuple(slice(n) for n in shape)]
        if part.shape != shape:
            part = np.broadcast_to(part, shape)
    return part


def _diagonal(mem: np.ndarray[Any, Any], shape: tuple[int, ...], index: Index) -> np.ndarray[Any, Any]:
    """Return the view when one window axis walks along several store axes."""
    if 0 in shape:
        return np.broadcast_to(mem[(slice(0, 0),) * mem.ndim].reshape(-1), (*shape[:-1], 0)).reshape(shape)
    strides = [0] * len(shape)
    for (_, stride, axis), step in zip(index, mem.strides, strict=True):
        if axis is not None:
            strides[axis] += stride * step
    key: tuple[Any, ...] = (*(offset for offset, _, _ in index), Ellipsis)
    corner = mem[key]
    return np.lib.stride_tricks.as_strided(corner, shape, strides, writeable=mem.flags.writeable)


def find_window(mem: np.ndarray[Any, Any], part: np.ndarray[Any, Any]) -> Index | None:
    """Return the window of ``mem`` whose elements a view has; None if no window describes it."""
    item = mem.itemsize
    if 0 in part.shape or any(s <= 0 for s, n in zip(mem.strides, mem.shape, strict=True) if n > 1):
        return None
    left = address_of(part) - address_of(mem)
    maps: list[tuple[int, int, int | None]] = [(0, 0, None)] * mem.ndim
    free = [k for k, (s, n) in enumerate(zip(part.strides, part.shape, strict=True)) if s and n > 1]
    for k in sorted((k for k, n in enumerate(mem.shape) if n > 1), key=lambda k: -mem.strides[k]):
        step, n = mem.strides[k], mem.shape[k]
        offset, left = divmod(left, step)
        # the axis of the view that walks along this one, and stays in it
        for axis in free:
            stride, rest = divmod(part.strides[axis], step)
            if rest == 0 and 0 <= offset + stride * (part.shape[axis] - 1) < n:
                maps[k] = (offset, stride, axis)
                free.remove(axis)
                break
        else:
            maps[k] = (offset, 0, None)
        if not 0 <= offset < n:
            return None
    index = tuple(maps)
    if free or left or item != part.itemsize:
        return None
    same = view(mem, part.shape, index)
    strides = [(s, t) for s, t, n in zip(same.strides, part.strides, part.shape, strict=True) if n > 1]
    return index if address_of(same) == address_of(part) and all(s == t for s, t in strides) else None


def infer_shape(shape: tuple[int, ...], size: int) -> tuple[int, ...] | None:
    """Return a requested shape with its -1 replaced; None if it does not have ``size`` elements."""
    known = 1
    for n in shape:
        known *= n if n != -1 else 1
    if -1 not in shape:
        return shape if known == size and all(n >= 0 for n in shape) else None
    if shape.count(-1) > 1 or known <= 0 or size % known:
        return None
    return tuple(size // known if n == -1 else n for n in shape)


def reshape_unit_axes(shape: tuple[int, ...], index: Index, wanted: tuple[int, ...]) -> Index | None:
    """Return the window reshaped by adding and dropping axes of length 1 alone; else None."""
    old = [k for k, n in enumerate(shape) if n != 1]
    new = [k for k, n in enumerate(wanted) if n != 1]
    if [shape[k] for k in old] != [wanted[k] for k in new]:
        return None
    new_axis = dict(zip(old, new, strict=True))
    return tuple((o, s, new_axis[a]) if a in new_axis else (o, 0, None) for o, s, a in index)
