"""Views of arrays that may lie in blocks, that no window says: other shapes and dtypes.

Each is a store of its own that knows which elements of which other store it has; see
`dcarray.distributed.reshape` for how recordings work on them.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from . import shard
from .handle import Handle, large
from .store import Origin, Store, compiles
from .strides import c_strides, contiguous, reshaped, strides_of
from .window import Index

__all__ = ["element", "part_of_complex", "seen_as"]


def seen_as(x: Handle, shape: tuple[int, ...], dtype: np.dtype[Any] | None = None) -> Any:
    """A view of an array in another shape, without looking at its memory.

    Parameters
    ----------
    x : Handle
        A large array.
    shape : tuple of int
        Of as many elements of the new dtype.
    dtype : dtype, optional
        As what the bytes are seen; as large as the array's, or it goes into that several times.

    Returns
    -------
    Handle or None
        None if there is no such view, or if it is not known to be one.
    """
    store = x._store
    head = store.family
    into = store.dtype if dtype is None else dtype
    several, rest = divmod(store.dtype.itemsize, into.itemsize)
    if rest or not several or not store.size or not store.char or not compiles(into):
        return None
    if head.strides is not None or (store is not head and store.origin is None):
        return None  # memory that is not in the order of blocks
    index = x._index
    if index is not None and not _apart(x._shape, index):
        return None
    counts, strides = x._shape, strides_of(x)
    if several > 1:
        counts, strides = (*counts, several), (*(several * s for s in strides), 1)
    found = reshaped(counts, strides, shape)
    if found is None or 0 in shape:
        return None
    offset = several * (_offset(store) + _first(store, index))
    other = _known(head, into, shape, found, offset)
    if other is None:
        other = Store(shape, into, head)
        other.origin = Origin(store, x._shape, index)
        if not contiguous(shape, found):
            other.strides = found
            steps = [abs(s) for s, n in zip(found, shape, strict=True) if s and n > 1]
            other.permuted = steps != sorted(steps, reverse=True)
        head.views[into.char, shape, found, offset] = other
    pending = head.dirty
    if head.mem is None and pending is not None and not pending.done:
        pending.run(head)  # recordings know what they make by one shape
    y = large(type(x), other, shape, None)
    y._readonly = x._readonly
    return y


def part_of_complex(x: Handle, which: int) -> Any:
    """The real (0) or imaginary (1) part of a large complex array; None if it is not known where it is."""
    real = np.dtype(x.dtype.char.lower())
    pairs = seen_as(x, (*x._shape, 2), real)
    return None if pairs is None else pairs[..., which]


def element(store: Store, place: tuple[int, ...]) -> Any:
    """One element of a view of a family that lies in blocks, on all ranks."""
    head = store.family
    strides = store.strides or c_strides(store.shape)
    at = _offset(store) + sum(s * k for s, k in zip(strides, place, strict=True))
    several = head.dtype.itemsize // store.dtype.itemsize
    there, inside = divmod(at, several)
    where = tuple(int(k) for k in np.unravel_index(there, head.shape))
    return np.asarray([shard.element(head, where)], head.dtype).view(store.dtype)[inside]


def _known(
    head: Store, dtype: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> Store | None:
    """The store that has this geometry already."""
    if dtype == head.dtype and shape == head.shape and offset == 0 and contiguous(shape, strides):
        return head
    if head.views is None:
        head.views = WeakValueDictionary()
    found: Store | None = head.views.get((dtype.char, shape, strides, offset))
    return found


def _apart(shape: tuple[int, ...], index: Index) -> bool:
    """Does each axis of a window walk along one axis of its store, or have one element?"""
    axes = [axis for _, stride, axis in index if axis is not None]
    walked = {axis for _, stride, axis in index if axis is not None and stride}
    return len(set(axes)) == len(axes) and all(n == 1 or a in walked for a, n in enumerate(shape))


def _first(store: Store, index: Index | None) -> int:
    """Where the first element of a window lies in its store's memory, in elements from that of the store."""
    if index is None:
        return 0
    strides = store.strides or c_strides(store.shape)
    return sum(o * s for (o, _, _), s in zip(index, strides, strict=True))


def _offset(store: Store) -> int:
    """Where the first element of a store lies in the memory of its family, in elements of its dtype."""
    if store.origin is None:
        return 0
    parent, _, index = store.origin
    several = parent.dtype.itemsize // store.dtype.itemsize
    return several * (_offset(parent) + _first(parent, index))
