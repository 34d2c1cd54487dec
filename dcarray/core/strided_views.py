"""Views that no window describes, of another shape or dtype, of arrays that may be distributed.

Each is a store of its own, with the elements of another store as its origin; recordings work on them as
`dcarray.distributed.reshape` says.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from . import shard
from .handle import Handle, large
from .store import Origin, Store, compiles
from .strides import c_strides, contiguous, reshaped_strides, strides_of
from .window import Index

__all__ = ["element", "part_of_complex", "reinterpret"]


def reinterpret(x: Handle, shape: tuple[int, ...], dtype: np.dtype[Any] | None = None) -> Any:
    """Return a view of an array in another shape or dtype, made without access to its memory.

    Parameters
    ----------
    x : Handle
        A large array.
    shape : tuple of int
        The shape, of as many elements of the new dtype.
    dtype : dtype, optional
        The dtype to reinterpret the bytes in; its size must divide that of the array's dtype.

    Returns
    -------
    Handle or None
        None if there is no such view, or if that is not known.
    """
    store = x._store
    head = store.family
    into = store.dtype if dtype is None else dtype
    factor, rest = divmod(store.dtype.itemsize, into.itemsize)
    if rest or not factor or not store.size or not store.char or not compiles(into):
        return None
    if head.strides is not None or (store is not head and store.origin is None):
        return None  # memory that is not in C order
    index = x._index
    if index is not None and not _one_axis_each(x._shape, index):
        return None
    counts, strides = x._shape, strides_of(x)
    if factor > 1:
        counts, strides = (*counts, factor), (*(factor * s for s in strides), 1)
    new_strides = reshaped_strides(counts, strides, shape)
    if new_strides is None or 0 in shape:
        return None
    offset = factor * (_store_offset(store) + _window_offset(store, index))
    other = _existing_store(head, into, shape, new_strides, offset)
    if other is None:
        other = Store(shape, into, head)
        other.origin = Origin(store, x._shape, index)
        if not contiguous(shape, new_strides):
            other.strides = new_strides
            steps = [abs(s) for s, n in zip(new_strides, shape, strict=True) if s and n > 1]
            other.permuted = steps != sorted(steps, reverse=True)
        head.views[into.char, shape, new_strides, offset] = other
    pending = head.dirty
    if head.mem is None and pending is not None and not pending.done:
        pending.run(head)  # in a recording, an array that it makes has one shape
    y = large(type(x), other, shape, None)
    y._readonly = x._readonly
    return y


def part_of_complex(x: Handle, which: int) -> Any:
    """Return a view of the real (0) or imaginary (1) part of a large complex array; None if impossible."""
    real = np.dtype(x.dtype.char.lower())
    pairs = reinterpret(x, (*x._shape, 2), real)
    return None if pairs is None else pairs[..., which]


def element(store: Store, index: tuple[int, ...]) -> Any:
    """Return one element of a view of a distributed family, sent to all ranks."""
    head = store.family
    strides = store.strides or c_strides(store.shape)
    at = _store_offset(store) + sum(s * k for s, k in zip(strides, index, strict=True))
    factor = head.dtype.itemsize // store.dtype.itemsize
    there, inside = divmod(at, factor)
    where = tuple(int(k) for k in np.unravel_index(there, head.shape))
    return np.asarray([shard.element(head, where)], head.dtype).view(store.dtype)[inside]


def _existing_store(
    head: Store, dtype: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> Store | None:
    """Return the store of a family that has this geometry, or None."""
    if dtype == head.dtype and shape == head.shape and offset == 0 and contiguous(shape, strides):
        return head
    if head.views is None:
        head.views = WeakValueDictionary()
    store: Store | None = head.views.get((dtype.char, shape, strides, offset))
    return store


def _one_axis_each(shape: tuple[int, ...], index: Index) -> bool:
    """Whether each axis of a window walks along one axis of its store, or has one element."""
    axes = [axis for _, stride, axis in index if axis is not None]
    walked = {axis for _, stride, axis in index if axis is not None and stride}
    return len(set(axes)) == len(axes) and all(n == 1 or a in walked for a, n in enumerate(shape))


def _window_offset(store: Store, index: Index | None) -> int:
    """Return the offset of a window's first element in its store's memory, in elements."""
    if index is None:
        return 0
    strides = store.strides or c_strides(store.shape)
    return sum(o * s for (o, _, _), s in zip(index, strides, strict=True))


def _store_offset(store: Store) -> int:
    """Return the offset of a store's first element in the memory of its family, in elements of its dtype."""
    if store.origin is None:
        return 0
    parent, _, index = store.origin
    factor = parent.dtype.itemsize // store.dtype.itemsize
    return factor * (_store_offset(parent) + _window_offset(parent, index))
