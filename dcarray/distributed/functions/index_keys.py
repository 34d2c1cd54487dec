"""Index expressions of distributed arrays: integer arrays and masks, alone and with slices."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.comm.algorithms.mask_selection import nonzero
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.distributed.function_dispatch import dist_operand, require, required_axis

__all__ = ["Key", "parse_key", "take_along_axis_key"]

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


def parse_key(shape: tuple[int, ...], key: Any) -> Key:
    """Return the parsed form of an index expression with at least one integer array or mask.

    Raises
    ------
    Unserved
        For any other, and for invalid ones.
    """
    given = [_item(item) for item in (key if type(key) is tuple else (key,))]
    if len(given) == 1 and _is_mask(given[0]) and given[0].shape == shape[: given[0].ndim]:
        return Key(mask=given[0])
    taken = sum(_axes(item) for item in given)
    dots = [k for k, item in enumerate(given) if item is ...]
    require(taken <= len(shape) and len(dots) <= 1)
    at = dots[0] if dots else len(given)
    given[at : at + 1] = [slice(None)] * (len(shape) - taken)
    items = _without_masks(shape, given)
    require(_is_valid(shape, items))
    indices = [(k, item) for k, item in enumerate(items) if not isinstance(item, slice)]
    if len(indices) == 1 and all(item == slice(None) for item in items if isinstance(item, slice)):
        return Key(rows=(indices[0][1], indices[0][0]))
    return Key(items=items)


def take_along_axis_key(shape: tuple[int, ...], indices: Any, axis: Any) -> list[Item]:
    """Return the key of `numpy.take_along_axis`; NumPy raises the error where index and shape do not fit."""
    index, axis = dist_operand(indices), required_axis(axis, len(shape))
    require(index.dtype.kind in "iu" and index.ndim == len(shape))
    pairs = enumerate(zip(index.shape, shape, strict=True))
    require(all(m in (1, n) for k, (m, n) in pairs if k != axis))
    places = [
        np.arange(n).reshape([-1 if k == j else 1 for j in range(len(shape))]) for k, n in enumerate(shape)
    ]
    return [index if k == axis else DistArray.replicated(at, index.comm) for k, at in enumerate(places)]


def _item(item: Any) -> Item:
    """Return an item of an index expression, arrays as `DistArray`."""
    if item is None or item is ... or type(item) is int:
        return item
    if isinstance(item, slice):
        return slice(*(None if s is None else operator.index(s) for s in (item.start, item.stop, item.step)))
    if isinstance(item, np.integer):
        return int(item)
    if type(item) is list:
        item = np.asarray(item)
        if not item.size:
            item = item.astype(np.intp)
    require(type(item) in (np.ndarray, ndarray) and item.dtype.kind in "biu")
    if item.ndim:
        return dist_operand(item)
    require(item.dtype.kind != "b")
    return int(item)


def _is_mask(item: Any) -> bool:
    return getattr(item, "dtype", None) == np.bool_


def _axes(item: Item) -> int:
    """Return the number of axes that an item indexes."""
    if item is None or item is ...:
        return 0
    return int(item.ndim) if _is_mask(item) else 1


def _without_masks(shape: tuple[int, ...], given: list[Item]) -> list[Item]:
    """Return the items with masks replaced by the indices of their true elements."""
    items: list[Item] = []
    axis = 0
    for item in given:
        if _is_mask(item):
            require(item.shape == shape[axis : axis + item.ndim])
            items += nonzero(item)
        else:
            items.append(item)
        axis += _axes(item)
    return items


def _is_valid(shape: tuple[int, ...], items: list[Item]) -> bool:
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
