"""``packbits`` and ``unpackbits`` of distributed arrays."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.axes import BlockAxis
from dcarray.comm.layout.derived_layouts import even_blocks, with_whole_axes
from dcarray.comm.layout.grid import ProcessGrid
from dcarray.comm.layout.layouts import Block, Layout

__all__ = ["packbits", "unpackbits"]


def packbits(x: DistArray, axis: int, bitorder: Any) -> DistArray:
    """Return bytes of eight elements each along an axis, like ``numpy.packbits``."""
    return _apply(x, axis, 8, lambda own: np.packbits(own, axis, bitorder))


def unpackbits(x: DistArray, axis: int, count: int | None, bitorder: Any) -> DistArray:
    """Return the bits of bytes along an axis, like ``numpy.unpackbits``; `count` must be None for a cut
    axis."""
    return _apply(x, axis, 1, lambda own: np.unpackbits(own, axis, count, bitorder))


def _apply(x: DistArray, axis: int, unit: int, function: Callable[[Any], Any]) -> DistArray:
    """Return `function` of the lines along an axis; a vector is first cut at multiples of `unit` elements."""
    if x.ndim > 1:
        aligned = x.redistribute(even_blocks(with_whole_axes(x.layout, {axis})))
        values = function(np.ascontiguousarray(aligned.local))
        shape = [*x.shape[:axis], values.shape[axis], *x.shape[axis + 1 :]]
        return DistArray(x.comm, Layout(shape, aligned.layout.grid, aligned.layout.axes), values)
    ranks = x.comm.size
    units = BlockAxis(-(-x.shape[0] // unit), ranks)
    ends = [min(unit * units.start(part), x.shape[0]) for part in range(ranks + 1)]
    sizes = tuple(high - low for low, high in pairwise(ends))
    values = function(x.redistribute(Layout(x.shape, ProcessGrid((ranks,)), [Block(0, sizes)])).local)
    after = tuple(-(-n // 8) if unit == 8 else 8 * n for n in sizes)
    return DistArray(x.comm, Layout((sum(after),), ProcessGrid((ranks,)), [Block(0, after)]), values)
