"""NumPy views of windows: an affine window as a slice, a transpose or a diagonal of an array."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

NDArray = np.ndarray[Any, np.dtype[Any]]


class Geometry(NamedTuple):
    """The recipe for the view of one window of an array, all in ints.

    The view has one axis per axis of the domain, of one element where the window's index does not use
    it.  ``shape`` is the domain's, ``empty`` says that it has no points.
    """

    shape: tuple[int, ...]
    empty: bool
    key: tuple[Any, ...]
    order: tuple[int, ...] | None
    expand: tuple[Any, ...] | None
    axes: tuple[int, ...] | None  # of a view with diagonals: the domain axis of each sliced axis


def geometry(
    size: tuple[int, ...], shape: tuple[int, ...], index: list[tuple[int, int, int | None]]
) -> Geometry:
    """Return the geometry of a window with the domain ``shape`` and ``index`` on an array of ``size``; raise
    IndexError if it reaches out of the array."""
    if 0 in shape:
        return Geometry(shape, True, (), None, None, None)
    key: list[Any] = []
    axes: list[int] = []
    for count, (first, stride, axis) in zip(size, index, strict=True):
        if axis is None:
            last = first
            key.append(first)
        else:
            last = first + stride * (shape[axis] - 1)
            stop = last + 1 if stride > 0 else (last - 1 if last > 0 else None)
            key.append(slice(first, stop, stride))
            axes.append(axis)
        if not (0 <= first < count and 0 <= last < count):
            raise IndexError(f"a window reaches {first}..{last} of an axis of {count} elements")
    key.append(...)
    rank = len(shape)
    if axes == list(range(rank)):
        return Geometry(shape, False, tuple(key), None, None, None)
    if len(set(axes)) < len(axes):
        return Geometry(shape, False, tuple(key), None, None, tuple(axes))
    order = tuple(sorted(range(len(axes)), key=axes.__getitem__))
    expand = tuple(slice(None) if axis in axes else None for axis in range(rank))
    return Geometry(
        shape,
        False,
        tuple(key),
        None if order == tuple(range(len(axes))) else order,
        None if None not in expand else expand,
        None,
    )


def view(array: NDArray, how: Geometry) -> NDArray:
    """Return the view of an array that a geometry describes."""
    if how.empty:
        return np.empty(how.shape, array.dtype)
    part: NDArray = array[how.key]
    if how.axes is not None:
        return _diagonal(part, how.axes, len(how.shape))
    if how.order is not None:
        part = part.transpose(how.order)
    return part if how.expand is None else part[how.expand]


def _diagonal(sliced: NDArray, axes: tuple[int, ...], rank: int) -> NDArray:
    """Return the view of a sliced array in which several axes move with one axis of the domain."""
    shape, strides = [1] * rank, [0] * rank
    for axis, size, stride in zip(axes, sliced.shape, sliced.strides, strict=True):
        shape[axis] = size
        strides[axis] += stride
    part: NDArray = np.lib.stride_tricks.as_strided(sliced, shape, strides, writeable=sliced.flags.writeable)
    return part
