"""Reading of views of distributed arrays as new arrays, and writing them back.

A view is a window with axes in any order, interpreted as another dtype, and in another shape.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.exchange.redistribute import Side, move, with_window_axes
from dcarray.comm.exchange.window_copies import empty_like
from dcarray.comm.layout.derived_layouts import row_layout, without_cyclic
from dcarray.comm.layout.layouts import Layout, Whole
from dcarray.comm.transport.protocol import Communicator
from dcarray.ir.nodes import Index

__all__ = ["read_view", "write_view"]

Windowed = Sequence[tuple[int, int, int | None]]


def read_view(
    x: DistArray,
    shape: Sequence[int],
    index: Windowed | None,
    dtype: np.dtype[np.generic],
    wanted: Sequence[int],
) -> DistArray:
    """Return the elements of a view of an array in C order, as an array of its own.

    Parameters
    ----------
    x : DistArray
        The array.
    shape : sequence of int
        The shape of the window, which must not be empty.
    index : sequence of (int, int, int or None), optional
        For each axis of `x` the offset, the stride, and the axis of the window that goes along it (each at
        most once); None for all of `x`.
    dtype : dtype
        The dtype of the view; its size divides that of `x`.
    wanted : sequence of int
        The shape of the result.

    Returns
    -------
    DistArray
        The elements; they may share the memory of `x`.
    """
    if index is not None:
        aligned = x.redistribute(without_cyclic(x.layout))
        elements = empty_like(x, row_layout(_points(shape, index), x.comm.size))
        _copy(x.comm, (aligned, _side(aligned, shape, index)), (elements, Side.whole(elements.layout)))
        x = elements
    return _in_shape(_view_as(x, dtype), wanted)


def write_view(x: DistArray, shape: Sequence[int], index: Windowed | None, values: DistArray) -> DistArray:
    """Return an array with the elements of a view replaced: the inverse of `read_view`.

    Parameters
    ----------
    x : DistArray
        The array, which is changed in place or replaced.
    shape, index
        As for `read_view`.
    values : DistArray
        The new elements, in the form that `read_view` returns.

    Returns
    -------
    DistArray
        The array, in its layout.
    """
    points = tuple(x.shape if index is None else _points(shape, index))
    ratio = x.dtype.itemsize // values.dtype.itemsize
    given = _in_shape(values, points if ratio == 1 else (*points, ratio))
    if ratio > 1:  # the parts of an element must lie together
        axes = [*without_cyclic(given.layout).axes[:-1], Whole()]
        given = given.redistribute(Layout(given.shape, given.layout.grid, axes))
        layout = Layout(points, given.layout.grid, axes[:-1])
        block = given.block.reshape(-1).view(x.dtype).reshape(layout.local_shape(x.comm.rank))
        given = DistArray(x.comm, layout, block)
    else:
        given = DistArray(x.comm, given.layout, given.block.view(x.dtype))
    if index is None:
        return given.redistribute(x.layout)
    aligned = x.redistribute(without_cyclic(x.layout))
    _copy(x.comm, (given, Side.whole(given.layout)), (aligned, _side(aligned, shape, index)))
    return aligned.redistribute(x.layout)


def _in_shape(x: DistArray, shape: Sequence[int]) -> DistArray:
    return x if x.shape == tuple(shape) else x.reshape(shape)


def _view_as(x: DistArray, dtype: np.dtype[np.generic]) -> DistArray:
    """Return the same bytes as elements of another dtype; if that is smaller, there is a new last axis."""
    ratio = x.dtype.itemsize // dtype.itemsize
    block = np.ascontiguousarray(x.block)
    if ratio == 1:
        return DistArray(x.comm, x.layout, block.view(dtype).reshape(x.block.shape))
    at = x.layout
    layout = Layout((*at.shape, ratio), at.grid, [*at.axes, Whole()], [*at.halo, (0, 0)])
    return DistArray(x.comm, layout, block.reshape(-1).view(dtype).reshape(*x.block.shape, ratio))


def _points(shape: Sequence[int], index: Windowed) -> tuple[int, ...]:
    """Return the shape of a window, with an axis of length one for each index without an axis."""
    return (*shape, *(1 for _, _, axis in index if axis is None))


def _side(x: DistArray, shape: Sequence[int], index: Windowed) -> Side:
    """Return a window as the source or target of a move."""
    points, more, places = _points(shape, index), len(shape), []
    for offset, stride, axis in index:
        if axis is None:
            places.append(Index(offset, 1, more))
            more += 1
        else:
            places.append(Index(offset, stride if points[axis] > 1 else 1, axis))
    return Side(x.layout, places, points)


def _copy(comm: Communicator, source: tuple[DistArray, Side], target: tuple[DistArray, Side]) -> None:
    """Copy one window to another; each is given as an array and a side of a move."""
    plan = move(source[1], target[1], comm.rank)
    plan.run(comm, *(with_window_axes(x.block, side.view) for x, side in (source, target)))
