"""Windows of arrays over many ranks, slices of any step, copied into windows of others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcarray.comm.layout.layouts import Block, Layout, Whole
from dcarray.ir.nodes import Index

from .dist_array import Piece, in_blocks
from .exchange_plan import start
from .redistribute import Side, move

__all__ = ["Window", "copied", "empty", "everything", "sliced"]


@dataclass(frozen=True)
class Window:
    """Some elements of an array: along each axis those at the places of a range.

    Parameters
    ----------
    piece : Piece
        The array, no axis of which that is not taken whole is dealt out in turn.
    places : tuple of range
        One for each axis, within it, of any step but zero.
    """

    piece: Piece
    places: tuple[range, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.places))

    def side(self) -> Side:
        """The window as one end of a move."""
        index = [
            Index(r.start if r else 0, r.step if len(r) > 1 else 1, a) for a, r in enumerate(self.places)
        ]
        return Side(self.piece.layout, index, self.shape)


def everything(x: Piece) -> Window:
    """All of an array."""
    return Window(x, tuple(range(n) for n in x.shape))


def copied(pairs: Iterable[tuple[Window, Window]]) -> None:
    """Copy windows into windows of the same shapes, all together: one message between any two ranks.

    Parameters
    ----------
    pairs : iterable of (Window, Window)
        What is read and what is written, at least one pair, of pieces on the same ranks and of one dtype; no
        element that is written may be read.
    """
    held = list(pairs)
    comm = held[0][0].piece.comm
    moves = [(move(a.side(), b.side(), comm.rank), a.piece.block, b.piece.block) for a, b in held]
    start(comm, moves).finish()


def sliced(x: Piece, key: Sequence[slice], layout: Layout | None = None) -> Piece:
    """Slices of any step along all axes, as an array of its own.

    Parameters
    ----------
    x : Piece
        The array.
    key : sequence of slice
        One for each axis.
    layout : Layout, optional
        Of the result; by default even blocks over the grid axes that cut `x`.

    Returns
    -------
    Piece
    """
    held = x.moved(in_blocks(x.layout))
    window = Window(held, tuple(range(*s.indices(n)) for s, n in zip(key, x.shape, strict=True)))
    specs = [spec if isinstance(spec, Whole) else Block(spec.grid_axis) for spec in held.layout.axes]
    found = empty(x, layout or Layout(window.shape, x.layout.grid, specs))
    copied([(window, everything(found))])
    return found


def empty(like: Piece, layout: Layout, dtype: Any = None) -> Piece:
    """A new array on the same ranks, by default of the same dtype."""
    shape = layout.local_shape(like.comm.rank)
    return Piece(like.comm, layout, np.empty(shape, like.dtype if dtype is None else dtype))
