"""Index expressions of distributed arrays: integer arrays and masks, alone and with slices."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.comm.algorithms.mask_selection import nonzero
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.distributed.function_dispatch import dist_array_of

__all__ = ["Key", "along_axis", "parsed"]

Item = Any  # slice | int | DistArray | None


@dataclass(frozen=True)
class Key:
    """A parsed index expression: exactly one of the attributes is set.

    Attributes
    ----------
    mask : DistArray or None
        A mask of the array's first axes.
    rows : (DistArray, int) or None
        Integers along one axis, and all of the other axes.
    items : list of slice, int, DistArray or None; or None
        As `dcarray.comm.algorithms.fancy_indexing.resolve_key` takes them.
    """

    mask: DistArray | None = None
    rows: tuple[DistArray, int] | None = None
    items: list[Item] | None = None


def parsed(shape: tuple[int, ...], key: Any) -> Key | None:
    """An index expression with at least one integer array or mask; None for any other, and for invalid
    ones."""
    items = list(key) if type(key) is tuple else [key]
    given = [_item(item) for item in items]
    if any(item is _OTHER for item in given):
        return None
    if len(given) == 1 and _is_mask(given[0]) and given[0].shape == shape[: given[0].ndim]:
        return Key(mask=given[0])
    taken = sum(_axes(item) for item in given)
    dots = [k for k, item in enumerate(given) if item is ...]
    if taken > len(shape) or len(dots) > 1:
        return None
    at = dots[0] if dots else len(given)
    given[at : at + 1] = [slice(None)] * (len(shape) - taken)
    found = _without_masks(shape, given)
    if found is None or not _in_order(shape, found):
        return None
    indices = [(k, item) for k, item in enumerate(found) if not isinstance(item, slice)]
    everything = all(item == slice(None) for item in found if isinstance(item, slice))
    if len(indices) == 1 and everything:
        return Key(rows=(indices[0][1], indices[0][0]))
    return Key(items=found)


def along_axis(shape: tuple[int, ...], index: DistArray, axis: int) -> list[Item] | None:
    """The key of `numpy.take_along_axis`, or None if NumPy would not accept index and shape."""
    if index.dtype.kind not in "iu" or index.ndim != len(shape):
        return None
    if any(m not in (1, n) for k, (m, n) in enumerate(zip(index.shape, shape, strict=True)) if k != axis):
        return None
    places = [
        np.arange(n).reshape([-1 if k == j else 1 for j in range(len(shape))]) for k, n in enumerate(shape)
    ]
    return [index if k == axis else DistArray.replicated(at, index.comm) for k, at in enumerate(places)]


_OTHER: Any = object()


def _item(item: Any) -> Item:
    """An item of an index expression, arrays as `DistArray`; `_OTHER` for an unsupported one."""
    if item is None or item is ... or type(item) is int:
        return item
    if isinstance(item, slice):
        try:
            return slice(
                *(None if s is None else operator.index(s) for s in (item.start, item.stop, item.step))
            )
        except TypeError:
            return _OTHER
    if isinstance(item, np.integer):
        return int(item)
    if type(item) is list:
        item = np.asarray(item)
        if not item.size:
            item = item.astype(np.intp)
    if type(item) not in (np.ndarray, ndarray) or item.dtype.kind not in "biu":
        return _OTHER
    if not item.ndim:
        return _OTHER if item.dtype.kind == "b" else int(item)
    return dist_array_of(item) or _OTHER


def _is_mask(item: Any) -> bool:
    return getattr(item, "dtype", None) == np.bool_


def _axes(item: Item) -> int:
    """The number of axes that an item indexes."""
    if item is None or item is ...:
        return 0
    return int(item.ndim) if _is_mask(item) else 1


def _without_masks(shape: tuple[int, ...], given: list[Item]) -> list[Item] | None:
    """The items with masks replaced by the indices of their true elements."""
    found: list[Item] = []
    axis = 0
    for item in given:
        if _is_mask(item):
            if item.shape != shape[axis : axis + item.ndim]:
                return None
            found += nonzero(item)
        else:
            found.append(item)
        axis += _axes(item)
    return found


def _in_order(shape: tuple[int, ...], items: list[Item]) -> bool:
    """Whether there is an index array, integers are within bounds, and index shapes broadcast."""
    axis, shapes = 0, []
    for item in items:
        if item is None:
            continue
        if isinstance(item, int) and not -shape[axis] <= item < shape[axis]:
            return False
        if isinstance(item, slice) and item.step == 0:
            return False
        if not isinstance(item, (int, slice)):
            shapes.append(item.shape)
        axis += 1
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return bool(shapes)
