"""Arrays over many ranks put together, shifted round, turned and repeated, as copies between windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from dcarray.comm.exchange.dist_array import Piece, in_blocks
from dcarray.comm.exchange.window_copies import Window, copied, empty, everything
from dcarray.comm.layout.layouts import Block, Layout, Spec, Whole

from .reductions import normalised

__all__ = ["concatenate", "flip", "framed", "repeat", "roll", "stack", "tile"]


def concatenate(
    parts: Sequence[Piece], axis: int = 0, dtype: Any = None, casting: Any = "same_kind"
) -> Piece:
    """Arrays one after the other along an axis, like ``numpy.concatenate``.

    Parameters
    ----------
    parts : sequence of Piece
        At least one, all on the same ranks.
    axis : int
        Along which axis.
    dtype, casting : optional
        As for NumPy.

    Returns
    -------
    Piece
        In even blocks over the grid axes that cut the largest part.

    Raises
    ------
    ValueError, AxisError, TypeError
        As NumPy's, on all ranks.
    """
    trial = np.concatenate([_nothing(x.ndim, x.dtype) for x in parts], axis, dtype=dtype, casting=casting)
    (a,) = normalised(axis, parts[0].ndim)
    if any(x.shape[:a] + x.shape[a + 1 :] != parts[0].shape[:a] + parts[0].shape[a + 1 :] for x in parts):
        np.concatenate([np.broadcast_to(np.empty((), bool), x.shape) for x in parts], axis)  # NumPy's error
    shape = list(parts[0].shape)
    shape[a] = sum(x.shape[a] for x in parts)
    lead = max(parts, key=lambda x: (_cuts(x.layout), math.prod(x.shape)))
    result = empty(lead, _even(shape, lead.layout), trial.dtype)
    pairs, at = [], 0
    for x in parts:
        places = [range(n) for n in x.shape]
        places[a] = range(at, at + x.shape[a])
        at += x.shape[a]
        pairs.append((everything(_in(x, trial.dtype)), Window(result, tuple(places))))
    copied(pairs)
    return result


def stack(parts: Sequence[Piece], axis: int = 0, dtype: Any = None, casting: Any = "same_kind") -> Piece:
    """Arrays of one shape along a new axis, like ``numpy.stack``; parameters as for `concatenate`."""
    if any(x.shape != parts[0].shape for x in parts):
        raise ValueError("all input arrays must have the same shape")
    (a,) = normalised(axis, parts[0].ndim + 1)
    return concatenate([_expanded(x, a) for x in parts], a, dtype, casting)


def roll(x: Piece, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Piece:
    """The elements shifted round along some axes, like ``numpy.roll``.

    Parameters
    ----------
    x : Piece
        The array.
    shift : int or sequence of int
        By how much, for all axes or each; what is given several times for one axis adds up.
    axis : int, sequence of int or None
        Along which axes; None shifts the elements in C order.

    Returns
    -------
    Piece
        Cut as `x`, in even blocks where it is dealt out in turn.
    """
    if axis is None:
        flat = roll(x.ravelled(), shift, 0)
        return flat.reshaped(x.shape).moved(in_blocks(x.layout))
    axes = np.lib.array_utils.normalize_axis_tuple(axis, x.ndim, allow_duplicate=True)
    shifts = [0] * x.ndim
    for by, a in np.broadcast(shift, axes):
        shifts[a] += int(by)
    held = x.moved(in_blocks(x.layout))
    result = empty(x, held.layout)
    ways = []
    for by, n in zip(shifts, x.shape, strict=True):
        turn = by % n if n else 0
        both = [(range(n - turn), range(turn, n)), (range(n - turn, n), range(turn))]
        ways.append(both if turn else both[:1])
    copied(
        (Window(held, tuple(source for source, _ in way)), Window(result, tuple(target for _, target in way)))
        for way in product(*ways)
    )
    return result


def flip(x: Piece, axis: int | Sequence[int] | None = None) -> Piece:
    """The elements in reverse order along some axes or all, like ``numpy.flip``; cut as `x`."""
    axes = normalised(axis, x.ndim)
    held = x.moved(in_blocks(x.layout))
    result = empty(x, held.layout)
    places = tuple(range(n)[::-1] if a in axes else range(n) for a, n in enumerate(x.shape))
    copied([(Window(held, places), everything(result))])
    return result


def framed(x: Piece, widths: Sequence[tuple[int, int]]) -> Piece:
    """The array with room around it, filled with zeros.

    Parameters
    ----------
    x : Piece
        The array.
    widths : sequence of (int, int)
        Elements before and after, for each axis.

    Returns
    -------
    Piece
        In even blocks over the grid axes that cut `x`.
    """
    shape = [n + before + after for n, (before, after) in zip(x.shape, widths, strict=True)]
    result = empty(x, _even(shape, x.layout))
    result.block[...] = np.zeros((), x.dtype)
    held = x.moved(in_blocks(x.layout))
    places = [range(before, before + n) for n, (before, _) in zip(x.shape, widths, strict=True)]
    copied([(everything(held), Window(result, tuple(places)))])
    return result


def repeat(x: Piece, times: int, axis: int) -> Piece:
    """Each element so many times after itself along an axis, like ``numpy.repeat``; nothing travels."""
    if times < 0:
        raise ValueError("repeats may not contain negative values.")
    (a,) = normalised(axis, x.ndim)
    held = x.moved(in_blocks(x.layout))
    shape, specs = list(x.shape), list(held.layout.axes)
    shape[a] *= times
    spec, part = specs[a], held.layout.parts[a]
    if isinstance(spec, Block):
        specs[a] = Block(spec.grid_axis, tuple(part.size(k) * times for k in range(part.parts)))
    return Piece(x.comm, Layout(shape, x.layout.grid, specs), np.repeat(held.own, times, a))


def tile(x: Piece, times: Sequence[int]) -> Piece:
    """The array so many times beside itself along each axis, like ``numpy.tile``.

    Parameters
    ----------
    x : Piece
        The array.
    times : sequence of int
        For the last axes; missing ones are taken as one, and more than there are axes make new ones.

    Returns
    -------
    Piece
        In even blocks over the grid axes that cut `x`.
    """
    reps = [int(n) for n in times]
    reps = [1] * (x.ndim - len(reps)) + reps
    while x.ndim < len(reps):
        x = _expanded(x, 0)
    shape = [n * m for n, m in zip(x.shape, reps, strict=True)]
    np.empty(0).reshape([0, *(n for n in shape if n < 0)])  # NumPy's error for a negative number
    result, held = empty(x, _even(shape, x.layout)), x.moved(in_blocks(x.layout))
    pairs = []
    for way in product(*map(range, reps)):
        places = [range(k * n, (k + 1) * n) for k, n in zip(way, x.shape, strict=True)]
        pairs.append((everything(held), Window(result, tuple(places))))
    if pairs:
        copied(pairs)
    return result


# ---- layouts of results ------------------------------------------------------------------------------
def _even(shape: Sequence[int], like: Layout) -> Layout:
    """Even blocks over the grid axes that another layout uses."""
    axes: list[Spec] = [spec if isinstance(spec, Whole) else Block(spec.grid_axis) for spec in like.axes]
    return Layout(shape, like.grid, axes)


def _cuts(layout: Layout) -> int:
    return sum(not isinstance(spec, Whole) for spec in layout.axes)


def _in(x: Piece, dtype: np.dtype[Any]) -> Piece:
    """The array in a dtype, in blocks."""
    held = x.moved(in_blocks(x.layout))
    if held.dtype == dtype:
        return held
    bare = in_blocks(held.layout)
    return Piece(x.comm, bare, held.own.astype(dtype))


def _expanded(x: Piece, axis: int) -> Piece:
    """The array with a new axis of length one."""
    shape, specs, halo = list(x.shape), list(x.layout.axes), list(x.layout.halo)
    shape.insert(axis, 1)
    specs.insert(axis, Whole())
    halo.insert(axis, (0, 0))
    return Piece(x.comm, Layout(shape, x.layout.grid, specs, halo), np.expand_dims(x.block, axis))


def _nothing(ndim: int, dtype: Any) -> np.ndarray[Any, Any]:
    return np.empty((0,) * ndim, dtype)
