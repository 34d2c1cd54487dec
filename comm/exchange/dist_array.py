"""One rank's part of an array that lies over many ranks, and the layouts that algorithms bring it to."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcarray.comm.layout.grid import ProcessGrid, choose_grid
from dcarray.comm.layout.layouts import Block, Cyclic, Layout, Spec, Whole
from dcarray.comm.transport.errors import LayoutError
from dcarray.comm.transport.protocol import Array, Communicator

from .redistribute import redistribute

__all__ = ["Piece", "balanced", "in_blocks", "rows", "uncut"]


@dataclass(frozen=True, eq=False)
class Piece:
    """What a rank has of an array.

    Parameters
    ----------
    comm : Communicator
        The ranks; all of them hold a piece.
    layout : Layout
        Who has what.
    block : ndarray
        This rank's memory, halo included: of ``layout.local_shape(comm.rank)``.
    """

    comm: Communicator
    layout: Layout
    block: Array

    @classmethod
    def of(cls, whole: Any, layout: Layout, comm: Communicator) -> Piece:
        """This rank's part of an array that every rank has whole; nothing travels."""
        given = np.asarray(whole)
        block = np.zeros(layout.local_shape(comm.rank), given.dtype)
        copies = Layout.copies(layout.shape, layout.grid)
        redistribute(copies, layout, comm.rank).run(comm, given, block)
        return cls(comm, layout, block)

    @classmethod
    def copied(cls, whole: Any, comm: Communicator, grid: ProcessGrid | None = None) -> Piece:
        """An array that every rank has whole, as it is."""
        given = np.asarray(whole)
        return cls(comm, Layout.copies(given.shape, grid or ProcessGrid((comm.size,))), given)

    @property
    def shape(self) -> tuple[int, ...]:
        """The whole array's shape."""
        return self.layout.shape

    @property
    def ndim(self) -> int:
        return self.layout.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.block.dtype

    @property
    def own(self) -> Array:
        """This rank's elements, halo apart: a view."""
        owned: tuple[Any, ...] = self.layout.owned(self.comm.rank)
        return self.block[(*owned, ...)]

    def moved(self, layout: Layout) -> Piece:
        """The array in another layout; this very piece if it is the same, without halos."""
        if layout == self.layout:
            return self
        block = np.zeros(layout.local_shape(self.comm.rank), self.dtype)
        redistribute(self.layout, layout, self.comm.rank).run(self.comm, self.block, block)
        return Piece(self.comm, layout, block)

    def whole(self) -> Array:
        """All elements, on every rank."""
        return self.moved(Layout.copies(self.shape, self.layout.grid)).block

    def flat_rows(self) -> tuple[Piece, Layout]:
        """The array cut along its first axis only, and what its elements are in C order, as a layout."""
        laid = self.moved(rows(self.shape, self.comm.size))
        each = math.prod(self.shape[1:])
        first = laid.layout.parts[0] if self.ndim else None
        ranks = self.comm.size
        sizes = tuple((first.size(part) if first else int(part == 0)) * each for part in range(ranks))
        return laid, Layout((sum(sizes),), ProcessGrid((ranks,)), [Block(0, sizes)])

    def ravelled(self) -> Piece:
        """The elements in C order, on one axis; few ranks have some if the first axis is short."""
        laid, flat = self.flat_rows()
        here = laid.own.reshape(-1)
        return Piece(self.comm, flat, here if self.ndim or not self.comm.rank else here[:0])

    def reshaped(self, shape: Sequence[int]) -> Piece:
        """The same elements in C order in another shape of as many, cut along its first axis."""
        flat, goal = self.ravelled(), rows(shape, self.comm.size)
        if not goal.ndim:
            return Piece(self.comm, goal, flat.whole().reshape(()))
        each = math.prod(goal.shape[1:])
        sizes = tuple(goal.parts[0].size(part) * each for part in range(self.comm.size))
        there = flat.moved(Layout(flat.shape, flat.layout.grid, [Block(0, sizes)]))
        return Piece(self.comm, goal, there.block.reshape(goal.local_shape(self.comm.rank)))


# ---- layouts -----------------------------------------------------------------------------------------
def balanced(layout: Layout) -> Layout:
    """Even blocks instead of blocks of any size or dealt out in turn, and no halo."""
    axes = [spec if isinstance(spec, Whole) else Block(spec.grid_axis) for spec in layout.axes]
    return Layout(layout.shape, layout.grid, axes)


def in_blocks(layout: Layout) -> Layout:
    """The layout without halo, with even blocks for what is dealt out in turn."""
    axes = [Block(spec.grid_axis) if isinstance(spec, Cyclic) else spec for spec in layout.axes]
    return Layout(layout.shape, layout.grid, axes)


def rows(shape: Sequence[int], ranks: int) -> Layout:
    """The first axis in even blocks over all ranks: each has an interval of the elements in C order."""
    specs: list[Spec] = [Block(0), *[Whole()] * (len(shape) - 1)]
    return Layout(shape, ProcessGrid((ranks,)), specs[: len(shape)])


def uncut(layout: Layout, axes: Collection[int]) -> Layout:
    """A layout in which some axes are whole, for algorithms that need them so.

    Grid axes that cut them cut other axes instead, so that what travels stays within lines of the grid; where
    there are not enough that are long enough, all ranks are dealt out anew over the other axes.

    Raises
    ------
    LayoutError
        When there is no other axis.
    """
    specs: list[Spec] = [Whole() if a in axes else spec for a, spec in enumerate(in_blocks(layout).axes)]
    lost = [spec.grid_axis for a, spec in enumerate(layout.axes) if a in axes and not isinstance(spec, Whole)]
    lost = [g for g in lost if layout.grid.shape[g] > 1]
    if not lost:
        return Layout(layout.shape, layout.grid, specs)
    others = [a for a in range(layout.ndim) if a not in axes]
    if not others:
        raise LayoutError(f"all axes of an array of shape {layout.shape} are to be whole")
    free = sorted((a for a in others if isinstance(specs[a], Whole)), key=lambda a: -layout.shape[a])
    lost.sort(key=lambda g: -layout.grid.shape[g])
    if len(free) >= len(lost) and all(
        layout.shape[a] >= layout.grid.shape[g] for a, g in zip(free, lost, strict=False)
    ):
        for a, g in zip(free, lost, strict=False):
            specs[a] = Block(g)
        return Layout(layout.shape, layout.grid, specs)
    grid = choose_grid([layout.shape[a] for a in others], layout.grid.size)
    return Layout(
        layout.shape,
        grid,
        [Block(others.index(a)) if a in others else Whole() for a in range(layout.ndim)],
    )
