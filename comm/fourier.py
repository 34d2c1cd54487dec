"""Fourier transforms of arrays over many ranks: each along whole axes, with transpositions in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .layout import Layout, Whole
from .piece import Piece, in_blocks, uncut
from .protocol import Array

__all__ = ["along", "transformed"]


def along(x: Piece, axis: int, function: Callable[[Array], Any]) -> Piece:
    """A function of whole lines along one axis, which may make them longer or shorter.

    Parameters
    ----------
    x : Piece
        Of two axes at least, unless its axis is whole on every rank.
    axis : int
        The axis, not negative.
    function : callable
        From an array to one of the same shape, but for the extent along `axis`, which follows
        from that alone.

    Returns
    -------
    Piece
        Whole along `axis`; see `dcarray.comm.piece.uncut`.

    Raises
    ------
    LayoutError
        When an array of one axis is cut.
    """
    spec, part = x.layout.axes[axis], x.layout.parts[axis]
    whole = isinstance(spec, Whole) or part.parts == 1
    held = x.moved(in_blocks(x.layout) if whole else uncut(x.layout, [axis]))
    values = function(held.own)
    shape, axes = list(x.shape), list(held.layout.axes)
    shape[axis] = values.shape[axis]
    axes[axis] = Whole()
    return Piece(x.comm, Layout(shape, held.layout.grid, axes), values)


def transformed(x: Piece, steps: Sequence[tuple[int, Callable[[Array], Any]]]) -> Piece:
    """Functions of lines along several axes, one after the other.

    Parameters
    ----------
    x : Piece
        The array.
    steps : sequence of (int, callable)
        For each its axis and what `along` takes.

    Returns
    -------
    Piece
        As the last one leaves it: what was transposed for it is not brought back.
    """
    for axis, function in steps:
        x = along(x, axis, function)
    return x
