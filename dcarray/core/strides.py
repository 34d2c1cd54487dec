"""The order of arrays' axes in memory, and the orders that NumPy gives its results ("K" order).

A result in another order than C is a store in C order of the permuted axes, seen through a window that
permutes them back.  `Store.permuted` says whether views may be so; those of all other stores are in C order,
with or without gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from .handle import Handle

__all__ = [
    "axes_of", "c_strides", "columns_first", "contiguous", "in_c_order", "order_of", "order_of_copy",
    "order_of_joined", "reshaped_strides", "strides_of",
]  # fmt: skip


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return the axes of a reduction, normalised: all for None.  NumPy takes no lists or bools here."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, tuple) else (axis,)
    if any(isinstance(k, (list, bool, np.bool)) for k in given):
        raise TypeError(axis)
    return normalize_axis_tuple(given, ndim)


def strides_of(x: Any) -> tuple[int, ...]:
    """Return the strides in elements, without running pending work."""
    if type(x) is np.ndarray or x._small is not None:
        plain = x if type(x) is np.ndarray else x._small
        return tuple(s // plain.itemsize for s in plain.strides)
    store = x._store
    if not store.char:
        return strides_of(x._evaluated())
    steps = c_strides(store.shape) if store.strides is None else store.strides
    if x._index is None:
        return steps
    strides = [0] * len(x._shape)
    for (_, stride, axis), step in zip(x._index, steps, strict=True):
        if axis is not None:
            strides[axis] += stride * step
    return tuple(strides)


def c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides in elements of an array in C order."""
    strides = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def in_c_order(x: Any) -> bool:
    """Whether the memory is in C order."""
    return contiguous(x.shape, strides_of(x))


def columns_first(x: Any) -> bool:
    """Whether the memory is in Fortran order, and not in C order too."""
    shape, strides = x.shape, strides_of(x)
    return not contiguous(shape, strides) and contiguous(shape[::-1], strides[::-1])


def reshaped_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], wanted: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return the strides of a non-empty array seen in another shape; None if that takes a copy.

    Axes that are contiguous in memory merge into a run, and a run may be split into axes: the axes of the new
    shape must fall into groups, one for each run of old axes.
    """
    runs: list[tuple[int, int]] = []  # extent and stride, the innermost first
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n == 1:
            continue
        if runs and stride == runs[-1][0] * runs[-1][1]:
            runs[-1] = (n * runs[-1][0], runs[-1][1])
        else:
            runs.append((n, stride))
    new_strides = [0] * len(wanted)
    axes = [k for k, n in enumerate(wanted) if n != 1]
    for extent, stride in runs:
        size = 1
        while size < extent and axes:
            new_strides[axes[-1]] = stride * size
            size *= wanted[axes.pop()]
        if size != extent:
            return None
    return None if axes else tuple(new_strides)


def contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether these are the strides of memory in C order."""
    return (
        all(n == 1 or s == t for n, s, t in zip(shape, strides, c_strides(shape), strict=True)) or 0 in shape
    )


def order_of(operands: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the axes of the result of an element-wise operation, the outermost in memory first.

    Parameters
    ----------
    operands : tuple
        Handles, plain arrays and scalars.
    shape : tuple of int
        The shape of the result.

    Returns
    -------
    tuple of int or None
        None for C order.
    """
    if len(shape) < 2 or not any(map(_may_be_permuted, operands)):
        return None
    strides = [_steps(x, len(shape)) for x in operands if isinstance(x, (Handle, np.ndarray))]
    inner = _sorted_axes(reversed(range(len(shape))), lambda axis, other: _lies_inside(strides, axis, other))
    order = tuple(reversed(inner))
    return None if order == tuple(range(len(shape))) else order


def _sorted_axes(axes: Iterable[int], comes_first: Callable[[int, int], bool | None]) -> list[int]:
    """Return axes sorted by insertion, as in NumPy.  Two of unknown order stay as they are."""
    order: list[int] = []
    for axis in axes:
        position = len(order)
        for k in reversed(range(len(order))):
            first = comes_first(axis, order[k])
            if first is False:
                break
            if first:
                position = k
        order.insert(position, axis)
    return order


def order_of_joined(parts: list[Any], ndim: int) -> tuple[int, ...] | None:
    """Return the axes of a concatenation, the outermost in memory first; None for C order.

    NumPy sorts them by the parts' strides, zero included; if parts differ, C order is used.
    """
    steps = [strides_of(p) for p in parts]
    if ndim < 2 or all(contiguous(p.shape, s) for p, s in zip(parts, steps, strict=True)):
        return None

    def is_outside(axis: int, other: int) -> bool | None:
        said = [
            abs(s[axis]) > abs(s[other])
            for p, s in zip(parts, steps, strict=True)
            if p.shape[axis] != 1 and p.shape[other] != 1
        ]
        return all(said) if said else None

    order = _sorted_axes(range(ndim), is_outside)
    return None if order == list(range(ndim)) else tuple(order)


def order_of_copy(x: Handle) -> tuple[int, ...] | None:
    """Return the axes of a copy that keeps the order of a large array, outermost first; None: C order."""
    if x._index is None and x._store.strides is None:
        return None
    steps = strides_of(x)
    order = tuple(sorted(range(len(steps)), key=lambda k: -abs(steps[k])))
    return None if order == tuple(range(len(order))) else order


def _may_be_permuted(x: Any) -> bool:
    """Whether the axes of an operand may be in another order in memory than C's."""
    if isinstance(x, Handle) and x._small is None:
        return x._store.permuted
    a = x._small if isinstance(x, Handle) else x
    return isinstance(a, np.ndarray) and not a.flags.c_contiguous


def _lies_inside(strides: list[list[int]], axis: int, other: int) -> bool | None:
    """Whether the stride of ``axis`` is less than that of ``other`` in all operands that have both axes; None
    if none has."""
    said = [s[axis] < s[other] for s in strides if s[axis] and s[other]]
    return all(said) if said else None


def _steps(x: Any, ndim: int) -> list[int]:
    """Return the absolute strides of an operand along the axes of the result; 0 where it has one element."""
    own = [0 if n == 1 else abs(s) for n, s in zip(x.shape, strides_of(x), strict=True)]
    return [0] * (ndim - len(own)) + own
