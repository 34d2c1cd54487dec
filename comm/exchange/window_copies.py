"""Copies between windows of distributed arrays: slices of any step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcarray.comm.layout.derived_layouts import even_blocks, without_cyclic
from dcarray.comm.layout.layouts import Layout
from dcarray.ir.nodes import Index

from .dist_array import DistArray
from .exchange_plan import start_exchanges
from .redistribute import Side, move

__all__ = ["ArrayWindow", "copy_windows", "empty_like", "sliced", "whole_window"]


@dataclass(frozen=True)
class ArrayWindow:
    """A window of a distributed array: along each axis the elements at the indices of a range.

    Parameters
    ----------
    piece : DistArray
        The array; a cyclic axis must be taken whole.
    places : tuple of range
        A range within each axis, of any step but zero.
    """

    piece: DistArray
    places: tuple[range, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.places))

    def side(self) -> Side:
        """Return the window as the source or target of a move."""
        index = [
            Index(r.start if r else 0, r.step if len(r) > 1 else 1, a) for a, r in enumerate(self.places)
        ]
        return Side(self.piece.layout, index, self.shape)


def whole_window(x: DistArray) -> ArrayWindow:
    """Return the window of all elements of an array."""
    return ArrayWindow(x, tuple(range(n) for n in x.shape))


def copy_windows(pairs: Iterable[tuple[ArrayWindow, ArrayWindow]]) -> None:
    """Copy several windows to windows of the same shapes, with one message between any two ranks.

    Parameters
    ----------
    pairs : iterable of (ArrayWindow, ArrayWindow)
        Pairs of a source and a target, at least one, of arrays on the same ranks and of one dtype; no
        element that is written may be read.
    """
    held = list(pairs)
    comm = held[0][0].piece.comm
    moves = [(move(a.side(), b.side(), comm.rank), a.piece.block, b.piece.block) for a, b in held]
    start_exchanges(comm, moves).finish()


def sliced(x: DistArray, key: Sequence[slice], layout: Layout | None = None) -> DistArray:
    """Return slices of any step along all axes, as an array.

    Parameters
    ----------
    x : DistArray
        The array.
    key : sequence of slice
        One for each axis.
    layout : Layout, optional
        The layout of the result; by default even blocks over the grid axes that cut `x`.

    Returns
    -------
    DistArray
    """
    held = x.redistribute(without_cyclic(x.layout))
    window = ArrayWindow(held, tuple(range(*s.indices(n)) for s, n in zip(key, x.shape, strict=True)))
    result = empty_like(x, layout or even_blocks(held.layout, window.shape))
    copy_windows([(window, whole_window(result))])
    return result


def empty_like(like: DistArray, layout: Layout, dtype: Any = None) -> DistArray:
    """Return a new array on the same ranks, by default of the same dtype."""
    shape = layout.local_shape(like.comm.rank)
    return DistArray(like.comm, layout, np.empty(shape, like.dtype if dtype is None else dtype))
