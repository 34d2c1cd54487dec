"""Concatenation, rolling, padding, repetition and tiling of distributed arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.exchange.window_copies import ArrayWindow, copy_windows, empty_like, whole_window
from dcarray.comm.layout.derived_layouts import even_blocks, without_cyclic
from dcarray.comm.layout.layouts import Block, Layout, Whole

from .reductions import normalised_axes

__all__ = ["concatenate", "pad_with_zeros", "repeat", "roll", "tile"]


def concatenate(
    parts: Sequence[DistArray], axis: int = 0, dtype: Any = None, casting: Any = "same_kind"
) -> DistArray:
    """Return arrays one after the other along an axis, like ``numpy.concatenate``.

    Parameters
    ----------
    parts : sequence of DistArray
        At least one, all on the same ranks.
    axis : int
        The axis.
    dtype, casting : optional
        As for NumPy.

    Returns
    -------
    DistArray
        The result, in even blocks over the grid axes that cut the largest part.

    Raises
    ------
    ValueError, AxisError, TypeError
        As NumPy's, on all ranks.
    """
    trial = np.concatenate([_empty(x.ndim, x.dtype) for x in parts], axis, dtype=dtype, casting=casting)
    (a,) = normalised_axes(axis, parts[0].ndim)
    if any(x.shape[:a] + x.shape[a + 1 :] != parts[0].shape[:a] + parts[0].shape[a + 1 :] for x in parts):
        np.concatenate([np.broadcast_to(np.empty((), bool), x.shape) for x in parts], axis)  # NumPy's error
    shape = list(parts[0].shape)
    shape[a] = sum(x.shape[a] for x in parts)
    largest = max(parts, key=lambda x: (_cut_axes(x.layout), math.prod(x.shape)))
    result = empty_like(largest, even_blocks(largest.layout, shape), trial.dtype)
    pairs, begin = [], 0
    for x in parts:
        places = [range(n) for n in x.shape]
        places[a] = range(begin, begin + x.shape[a])
        begin += x.shape[a]
        pairs.append((whole_window(_cast(x, trial.dtype)), ArrayWindow(result, tuple(places))))
    copy_windows(pairs)
    return result


def roll(x: DistArray, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> DistArray:
    """Return the elements shifted cyclically along some axes, like ``numpy.roll``.

    Parameters
    ----------
    x : DistArray
        The array.
    shift : int or sequence of int
        The distance, for all axes or each; distances for the same axis add up.
    axis : int, sequence of int or None
        The axes; None shifts the elements in C order.

    Returns
    -------
    DistArray
        Distributed as `x`, with even blocks for cyclic axes.
    """
    if axis is None:
        flat = roll(x.ravel(), shift, 0)
        return flat.reshape(x.shape).redistribute(without_cyclic(x.layout))
    axes = np.lib.array_utils.normalize_axis_tuple(axis, x.ndim, allow_duplicate=True)
    shifts = [0] * x.ndim
    for by, a in np.broadcast(shift, axes):
        shifts[a] += int(by)
    aligned = x.redistribute(without_cyclic(x.layout))
    result = empty_like(x, aligned.layout)
    shifts_by_axis = []
    for by, n in zip(shifts, x.shape, strict=True):
        turn = by % n if n else 0
        both = [(range(n - turn), range(turn, n)), (range(n - turn, n), range(turn))]
        shifts_by_axis.append(both if turn else both[:1])
    copy_windows(
        (
            ArrayWindow(aligned, tuple(source for source, _ in parts_of_shift)),
            ArrayWindow(result, tuple(target for _, target in parts_of_shift)),
        )
        for parts_of_shift in product(*shifts_by_axis)
    )
    return result


def pad_with_zeros(x: DistArray, widths: Sequence[tuple[int, int]]) -> DistArray:
    """Return the array with a border of zeros.

    Parameters
    ----------
    x : DistArray
        The array.
    widths : sequence of (int, int)
        Elements before and after, for each axis.

    Returns
    -------
    DistArray
        In even blocks over the grid axes that cut `x`.
    """
    shape = [n + before + after for n, (before, after) in zip(x.shape, widths, strict=True)]
    result = empty_like(x, even_blocks(x.layout, shape))
    result.block[...] = np.zeros((), x.dtype)
    aligned = x.redistribute(without_cyclic(x.layout))
    places = [range(before, before + n) for n, (before, _) in zip(x.shape, widths, strict=True)]
    copy_windows([(whole_window(aligned), ArrayWindow(result, tuple(places)))])
    return result


def repeat(x: DistArray, times: int, axis: int) -> DistArray:
    """Return each element `times` times in a row along an axis, like ``numpy.repeat``; nothing is sent."""
    if times < 0:
        raise ValueError("repeats may not contain negative values.")
    (a,) = normalised_axes(axis, x.ndim)
    aligned = x.redistribute(without_cyclic(x.layout))
    shape, specs = list(x.shape), list(aligned.layout.axes)
    shape[a] *= times
    spec, part = specs[a], aligned.layout.parts[a]
    if isinstance(spec, Block):
        specs[a] = Block(spec.grid_axis, tuple(part.size(k) * times for k in range(part.parts)))
    return DistArray(x.comm, Layout(shape, x.layout.grid, specs), np.repeat(aligned.local, times, a))


def tile(x: DistArray, times: Sequence[int]) -> DistArray:
    """Return the array repeated along each axis, like ``numpy.tile``.

    Parameters
    ----------
    x : DistArray
        The array.
    times : sequence of int
        The repetitions along the last axes; missing ones are one, and more than there are axes add axes.

    Returns
    -------
    DistArray
        In even blocks over the grid axes that cut `x`.
    """
    reps = [int(n) for n in times]
    reps = [1] * (x.ndim - len(reps)) + reps
    while x.ndim < len(reps):
        x = _expand_dims(x, 0)
    shape = [n * m for n, m in zip(x.shape, reps, strict=True)]
    np.empty(0).reshape([0, *(n for n in shape if n < 0)])  # NumPy's error for a negative number
    result, aligned = empty_like(x, even_blocks(x.layout, shape)), x.redistribute(without_cyclic(x.layout))
    pairs = []
    for parts_of_shift in product(*map(range, reps)):
        places = [range(k * n, (k + 1) * n) for k, n in zip(parts_of_shift, x.shape, strict=True)]
        pairs.append((whole_window(aligned), ArrayWindow(result, tuple(places))))
    if pairs:
        copy_windows(pairs)
    return result


# ---- layouts of results ------------------------------------------------------------------------------
def _cut_axes(layout: Layout) -> int:
    return sum(not isinstance(spec, Whole) for spec in layout.axes)


def _cast(x: DistArray, dtype: np.dtype[Any]) -> DistArray:
    """Return the array with another dtype, redistributed so that no axis is dealt out cyclically."""
    aligned = x.redistribute(without_cyclic(x.layout))
    if aligned.dtype == dtype:
        return aligned
    bare = without_cyclic(aligned.layout)
    return DistArray(x.comm, bare, aligned.local.astype(dtype))


def _expand_dims(x: DistArray, axis: int) -> DistArray:
    """Return the array with a new axis of length one."""
    shape, specs, halo = list(x.shape), list(x.layout.axes), list(x.layout.halo)
    shape.insert(axis, 1)
    specs.insert(axis, Whole())
    halo.insert(axis, (0, 0))
    return DistArray(x.comm, Layout(shape, x.layout.grid, specs, halo), np.expand_dims(x.block, axis))


def _empty(ndim: int, dtype: Any) -> np.ndarray[Any, Any]:
    return np.empty((0,) * ndim, dtype)
